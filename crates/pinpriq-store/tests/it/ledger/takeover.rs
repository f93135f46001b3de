//! What the next owner of a log finds: how the tenure before has ended, and whether the engine has
//! lost something.

use pinpriq_proto::carried::{BucketHome, BucketOf, Carried, Level, QueueBucket, QueueBuckets};
use pinpriq_proto::command::{Command, Put, QueueCommand, Selection, Take, TakeMode, Wait};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{RATE, Rate, Value};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::durable::Loading;
use pinpriq_store::ledger::entry::EntryHeader;
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Seq, Term, Watermark, Writer};
use pinpriq_store::{Durable, Store, StoreError, Urgency};
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{Caller, sample_task};

const SHARD: u16 = 4;
const SECOND: u64 = 1_000;

fn store(engine: &FakeEngine, writer: u128, watermark: Option<Watermark>) -> LedgerStore {
    let ledger = Box::new(engine.ledger(SHARD, Writer(writer)));
    LedgerStore::new(ledger, LedgerOptions { watermark, ..LedgerOptions::default() })
}

fn load(engine: &FakeEngine, writer: u128) -> Loading {
    let store = Box::new(store(engine, writer, None));
    Loading::load(store, Limits::default(), 7).unwrap()
}

fn begin(loading: Loading, now: Timestamp) -> Durable {
    let incarnation = loading.loaded().header.incarnation + 1;
    loading.begin(now, incarnation).unwrap()
}

fn ask(durable: &mut Durable, now: Timestamp, command: &Command<'_>) -> Reply {
    durable.apply(now, ClientId(1), RequestId(1), command);
    durable.finish(now).unwrap();
    match durable.poll_output().unwrap() {
        (_, Output::Reply { reply, .. }) => reply,
        (_, other) => panic!("{other:?}"),
    }
}

/// Puts a task, and takes it for this long.
fn put_and_take(durable: &mut Durable, now: Timestamp, ttr_ms: u64) {
    ask(durable, now, &Command::Put(Put::new(b"jobs", b"p")));
    let reply = ask(
        durable,
        now,
        &Command::Take(Take {
            queues: &[b"jobs"],
            member: None,
            count: 1,
            wait: Wait::No,
            selection: Selection::DEFAULT,
            mode: TakeMode::Lease { ttr: Some(Span::from_ms(ttr_ms)) },
        }),
    );
    assert!(matches!(reply, Reply::Tasks { tasks, .. } if tasks.len() == 1));
}

/// When the lease of the only task ends after the next start `gap_ms` later, in milliseconds since
/// that start.
fn left_after(ttr_ms: u64, gap_ms: u64, in_order: bool) -> Option<u64> {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let loading = load(&engine, 1);
    assert!(!loading.loaded().is_takeover, "there was no owner before");
    let now = loading.moment(Timestamp::from_ms(1_000_000), Some(Span::ZERO));
    assert_eq!(now.ms(), 1_000_000, "nothing tells how long there was no owner");
    let mut durable = begin(loading, now);
    put_and_take(&mut durable, now, ttr_ms);
    if in_order {
        durable.close(now).unwrap();
    }
    drop(durable);
    let loading = load(&engine, 2);
    assert_eq!(loading.loaded().is_takeover, !in_order);
    assert_eq!(loading.loaded().header.now, now);
    let gap = Span::from_ms(gap_ms);
    let next = loading.moment(now.after(gap), Some(gap));
    assert_eq!(next, now.after(gap));
    let mut durable = begin(loading, next);
    let left = durable.engine().poll_timeout().map(|at| at.since(next).ms());
    if in_order {
        durable.close(next).unwrap();
    }
    drop(durable);
    // It is in the log, so the owner after the next one knows the same.
    let durable = begin(load(&engine, 3), next);
    assert_eq!(durable.engine().poll_timeout().map(|at| at.since(next).ms()), left);
    left
}

#[test]
fn a_lease_goes_on_after_a_takeover() {
    assert_eq!(left_after(30 * SECOND, 10 * SECOND, false), Some(20 * SECOND));
    assert_eq!(left_after(30 * SECOND, 29 * SECOND, false), Some(5 * SECOND));
    assert_eq!(left_after(30 * SECOND, 300 * SECOND, false), Some(5 * SECOND));
    assert_eq!(left_after(2 * SECOND, 10 * SECOND, false), Some(2 * SECOND));
}

#[test]
fn a_lease_has_the_time_that_is_left_after_an_orderly_end() {
    assert_eq!(left_after(30 * SECOND, 10 * SECOND, true), Some(20 * SECOND));
    assert_eq!(left_after(30 * SECOND, 29 * SECOND, true), Some(SECOND));
    assert_eq!(left_after(30 * SECOND, 300 * SECOND, true), None);
}

fn pops(durable: &mut Durable, now: Timestamp) -> usize {
    let (queues, selection) = (&[&b"paced"[..]][..], Selection::DEFAULT);
    let (count, wait, mode) = (9, Wait::No, TakeMode::Pop);
    let take = Take { queues, member: None, count, wait, selection, mode };
    match ask(durable, now, &Command::Take(take)) {
        Reply::Tasks { tasks, .. } => tasks.len(),
        other => panic!("{other:?}"),
    }
}

/// How many tasks the next owner hands out at once and half a second later, where two were of three
/// that may go each second.
fn popped_after(in_order: bool) -> (usize, usize) {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let now = Timestamp::from_ms(1_000_000);
    let mut durable = begin(load(&engine, 1), now);
    let rate = Value::Rate(Rate { count: 3, per: Span::from_ms(1_000) });
    let (queue, settings) = (&b"paced"[..], &[(RATE, rate)][..]);
    ask(&mut durable, now, &QueueCommand::Create { queue, settings }.into());
    for _ in 0..2 {
        ask(&mut durable, now, &Command::Put(Put::new(b"paced", b"p")));
    }
    assert_eq!(pops(&mut durable, now), 2);
    for _ in 0..9 {
        ask(&mut durable, now, &Command::Put(Put::new(b"paced", b"p")));
    }
    // Without this one it would be one more.
    assert_eq!(pops(&mut durable, now), 1);
    if in_order {
        durable.close(now).unwrap();
    }
    drop(durable);
    let next = now.after(Span::from_ms(400));
    let mut durable = begin(load(&engine, 2), next);
    (pops(&mut durable, next), pops(&mut durable, next.after(Span::from_ms(334))))
}

#[test]
fn a_rate_goes_on_after_an_orderly_end() {
    assert_eq!(popped_after(true), (1, 1));
    assert_eq!(popped_after(false), (0, 1), "nobody knows what was handed out last");
}

#[test]
fn what_is_left_to_the_next_owner_may_be_large() {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let bucket = |number: usize| QueueBucket {
        of: BucketOf::Key(format!("{number:0250}").into_bytes().into()),
        level: Level { tokens: -7, parts: number as u64 },
    };
    let of = BucketHome::Queue(b"q"[..].into());
    let queue = QueueBuckets { of, buckets: (0..10_000).map(bucket).collect() };
    let at = Timestamp::from_ms(70_000);
    let carried = Carried { at, limits: Vec::new(), queues: vec![queue] };
    let mut caller = Caller::start(Box::new(store(&engine, 1, None))).unwrap();
    let head = engine.head(SHARD);
    caller.store.leave(&carried);
    caller.store.close(at).unwrap();
    assert_eq!(engine.head(SHARD).0 - head.0, 4, "three pieces and the end");
    for writer in 2..4 {
        let loaded = store(&engine, writer, None).load(&mut |_, _| {}).unwrap();
        assert_eq!(loaded.carried.as_ref(), Some(&carried), "until somebody begins");
        assert!(!loaded.is_takeover);
    }
    let mut caller = Caller::start(Box::new(store(&engine, 4, None))).unwrap();
    assert_eq!(caller.loaded.carried, Some(carried));
    caller.store.close(at).unwrap();
    let loaded = store(&engine, 5, None).load(&mut |_, _| {}).unwrap();
    assert_eq!(loaded.carried, None, "it was of another tenure");
}

#[test]
fn time_does_not_leap_at_a_takeover() {
    let engine = FakeEngine::new(2, FakeKnobs::PERFECT);
    let now = Timestamp::from_ms(1_000_000);
    begin(load(&engine, 1), now).finish(now).unwrap();
    let loading = load(&engine, 2);
    let far = now.after(Span::from_ms(900 * SECOND));
    let moment = |since| loading.moment(far, since).since(now).ms();
    assert_eq!(moment(Some(Span::from_ms(7 * SECOND))), 12 * SECOND);
    assert_eq!(moment(None), 900 * SECOND);
    begin(loading, now).close(now).unwrap();
    let loading = load(&engine, 3);
    let moment = loading.moment(far, Some(Span::ZERO));
    assert_eq!(moment, far, "an owner that has ended says nothing about the time since");
}

#[test]
fn an_orderly_end_lasts_until_somebody_begins() {
    let engine = FakeEngine::new(3, FakeKnobs::PERFECT);
    let now = Timestamp::from_ms(1_000_000);
    begin(load(&engine, 1), now).close(now).unwrap();
    for writer in 2..5 {
        assert!(!load(&engine, writer).loaded().is_takeover, "no store has begun since");
    }
    drop(begin(load(&engine, 5), now));
    for writer in 6..8 {
        assert!(load(&engine, writer).loaded().is_takeover, "that one has not ended");
    }
}

#[test]
fn nothing_is_appended_behind_the_end() {
    let engine = FakeEngine::new(4, FakeKnobs::PERFECT);
    let mut caller = Caller::start(Box::new(store(&engine, 1, None))).unwrap();
    let now = Timestamp::from_ms(70_000);
    caller.store.close(now).unwrap();
    let head = engine.head(SHARD);
    caller.store.close(now).unwrap();
    let error = caller.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap_err();
    assert!(matches!(error, StoreError::OutOfOrder { .. }), "{error}");
    assert!(caller.turn().is_err());
    assert_eq!(engine.head(SHARD), head, "there is one end");
    let caller = Caller::start(Box::new(store(&engine, 2, None))).unwrap();
    assert_eq!(caller.loaded.header.now, now, "the end has its moment");
}

#[test]
fn the_watermark_is_the_last_entry_that_is_known() {
    let engine = FakeEngine::new(5, FakeKnobs::PERFECT);
    let mut fresh = store(&engine, 1, None);
    assert_eq!(fresh.watermark(), None);
    fresh.load(&mut |_, _| {}).unwrap();
    let term = fresh.tenure().unwrap().term;
    assert_eq!(fresh.watermark(), Some(Watermark { term, ..Watermark::default() }));
    let mut known = None;
    for writer in 2..5 {
        let mut caller = Caller::start(Box::new(store(&engine, writer, known))).unwrap();
        for _ in 0..3 {
            let number = caller.header.last_number + 1;
            caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
            assert_ne!(caller.store.watermark(), Some(last_of(&engine, 0)), "nothing is answered");
            caller.settle().unwrap();
            known = caller.store.watermark();
            assert_eq!(known, Some(last_of(&engine, caller.header.incarnation)));
        }
    }
}

/// The watermark of the last entry in the log.
fn last_of(engine: &FakeEngine, term: u64) -> Watermark {
    let (head, bytes) = engine.log(SHARD).pop().unwrap();
    let (_, checksum, _) = EntryHeader::open(&bytes).unwrap();
    Watermark { term: Term(term), head, checksum }
}

/// Appends this many entries, and returns the store.
fn append(engine: &FakeEngine, writer: u128, entries: u64) -> Caller<LedgerStore> {
    let mut caller = Caller::start(Box::new(store(engine, writer, None))).unwrap();
    for _ in 0..entries {
        let number = caller.header.last_number + 1;
        caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
        caller.settle().unwrap();
    }
    caller
}

fn is_refused(engine: &FakeEngine, known: Watermark) -> bool {
    match store(engine, 99, Some(known)).load(&mut |_, _| {}) {
        Ok(_) => false,
        Err(StoreError::RolledBack { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_engine_that_was_rolled_back_is_refused() {
    // The last entries are gone.
    let engine = FakeEngine::new(6, FakeKnobs::PERFECT);
    let known = append(&engine, 1, 5).store.watermark().unwrap();
    assert_eq!(known.head, Seq(6));
    assert!(!is_refused(&engine, known), "nothing is lost");
    engine.roll_back(SHARD, 2);
    assert!(is_refused(&engine, known));
    // Others have come in their place, as many or more.
    drop(append(&engine, 2, 1));
    assert_eq!(engine.head(SHARD), known.head);
    assert!(is_refused(&engine, known));
    drop(append(&engine, 3, 5));
    assert!(is_refused(&engine, known));
}

#[test]
fn an_engine_that_has_forgotten_a_tenure_is_refused() {
    let engine = FakeEngine::new(7, FakeKnobs::PERFECT);
    let mut former = append(&engine, 1, 3);
    let mut seized = store(&engine, 2, None);
    seized.load(&mut |_, _| {}).unwrap();
    let known = seized.watermark().unwrap();
    engine.roll_back(SHARD, 0);
    // What the former owner does now would have been refused.
    former.append(&[sample_task(70, "q", 10)], Urgency::Soon).unwrap();
    former.settle().unwrap();
    assert!(is_refused(&engine, known));
}

#[test]
fn a_term_is_begun_above_the_one_that_is_known() {
    let engine = FakeEngine::new(8, FakeKnobs::PERFECT);
    let known = append(&engine, 1, 3).store.watermark().unwrap();
    let known = Watermark { term: Term(known.term.0 + 40), ..known };
    let mut next = store(&engine, 2, Some(known));
    next.load(&mut |_, _| {}).unwrap();
    assert_eq!(next.tenure().unwrap().term, Term(known.term.0 + 1));
}
