//! Looks at queues with more tasks than one look goes through.

use std::collections::BTreeSet;

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Command, Put, QueueCommand, QueueName, Selection, Take, TakeMode, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::{BEHIND_MAX, LOOKED_MAX, LOOKED_STEPS_MAX, Limits, STEPS_PER_TIMEOUT};
use pinpriq_proto::looking::{LeasePlace, LeaseShown, Leases, Reason, Scan};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{Assignment, RANKING, Value};
use pinpriq_proto::shares::ShareShown;
use pinpriq_proto::task::{Bytes, COST_USUAL, ClientId, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};

const QUEUE: QueueName<'_> = QueueName { name: b"jobs", member: None };
const WORKER: ClientId = ClientId(1);
const NOW: Timestamp = Timestamp::from_ms(1_000);

fn started() -> Engine {
    let mut engine = Engine::new(Limits { topic_lanes_max: usize::MAX, ..Limits::default() }, 5);
    engine.start(NOW, 1, Header::default());
    engine
}

fn ask(engine: &mut Engine, now: Timestamp, command: Command<'_>) -> Reply {
    engine.apply(now, WORKER, RequestId(7), &command);
    match engine.poll_output() {
        Some(Output::Reply { reply, .. }) => reply,
        other => panic!("no reply but {other:?}"),
    }
}

fn put_many(engine: &mut Engine, count: usize, priority: impl Fn(usize) -> i64) {
    for index in 0..count {
        let put = Put {
            priority: Some(priority(index)),
            terms: Terms { key: Some(b"k"), ..Terms::NONE },
            ..Put::new(QUEUE.name, b"")
        };
        ask(engine, NOW, Command::Put(put));
    }
}

fn explain(engine: &mut Engine, id: usize) -> Vec<Reason> {
    let id = id.to_string();
    let explain = Command::Explain { queue: QUEUE, id: Some(id.as_bytes()) };
    match ask(engine, NOW, explain) {
        Reply::Explained(explanation) => explanation.reasons,
        other => panic!("no explanation but {other:?}"),
    }
}

/// Scans to the end. Returns the numbers that came, and how many pages there were.
fn scan(engine: &mut Engine, key: Option<&[u8]>) -> (Vec<u64>, usize) {
    let (mut numbers, mut pages, mut after) = (Vec::new(), 0, 0);
    loop {
        let scan = Scan { queue: QUEUE, after, count: LOOKED_MAX, state: None, key, batch: None };
        let Reply::Scanned { tasks, next } = ask(engine, NOW, Command::Scan(scan)) else {
            panic!("no page")
        };
        numbers.extend(tasks.iter().map(|task| task.number));
        pages += 1;
        let Some(next) = next.map(u64::from) else { return (numbers, pages) };
        assert!(next > after, "a page goes on");
        after = next;
    }
}

/// Looks at all leases. Returns them, and how many pages there were.
fn leases(engine: &mut Engine, now: Timestamp) -> (Vec<LeaseShown>, usize) {
    let (all, cursors) = leases_within(engine, now, &[NamePattern::beginning(b"")]);
    let (mut plain, mut after): (Vec<LeaseShown>, Option<LeasePlace>) = (Vec::new(), None);
    for cursor in &cursors {
        let after_now = after.as_ref().map(LeasePlace::borrowed);
        let look = Leases { queue: None, after: after_now, count: LOOKED_MAX };
        let (leases, next) = page(ask(engine, now, Command::Leases(look)));
        plain.extend(leases);
        assert_eq!(next.as_ref(), Some(cursor));
        after = next;
    }
    let after_now = after.as_ref().map(LeasePlace::borrowed);
    let look = Leases { queue: None, after: after_now, count: LOOKED_MAX };
    let (leases, next) = page(ask(engine, now, Command::Leases(look)));
    plain.extend(leases);
    assert_eq!((&plain, next), (&all, None), "all names show everything");
    (plain, cursors.len() + 1)
}

/// Looks at all leases within names. Returns them, and where the pages after the first one began.
fn leases_within(
    engine: &mut Engine,
    now: Timestamp,
    names: &[NamePattern<'_>],
) -> (Vec<LeaseShown>, Vec<LeasePlace>) {
    let (mut all, mut cursors): (Vec<LeaseShown>, Vec<LeasePlace>) = (Vec::new(), Vec::new());
    loop {
        let after = cursors.last().map(LeasePlace::borrowed);
        let look = Command::Leases(Leases { queue: None, after, count: LOOKED_MAX });
        let (leases, next) = page(ask(engine, now, Command::Within { names, command: &look }));
        all.extend(leases);
        let Some(next) = next else { return (all, cursors) };
        assert!(cursors.last().is_none_or(|last| *last < next), "a page goes on");
        cursors.push(next);
    }
}

fn page(reply: Reply) -> (Vec<LeaseShown>, Option<LeasePlace>) {
    match reply {
        Reply::Leases { leases, next } => (leases, next.map(|next| *next)),
        other => panic!("no page but {other:?}"),
    }
}

fn take_all(engine: &mut Engine, ttr: u64) {
    take(engine, u32::MAX, ttr);
}

fn take(engine: &mut Engine, count: u32, ttr: u64) {
    let take = Take {
        queues: &[QUEUE.name],
        member: None,
        count,
        wait: Wait::No,
        selection: Selection::DEFAULT,
        mode: TakeMode::Lease { ttr: Some(Span::from_ms(ttr)) },
    };
    ask(engine, NOW, Command::Take(take));
}

#[test]
fn behind_is_exact_up_to_ten_thousand() {
    let mut engine = started();
    put_many(&mut engine, BEHIND_MAX + 2, |_| 0);
    for (id, behind) in [
        (2, 1),
        (BEHIND_MAX, BEHIND_MAX - 1),
        (BEHIND_MAX + 1, BEHIND_MAX),
        (BEHIND_MAX + 2, BEHIND_MAX),
    ] {
        let at_least = behind as u64;
        let expected = [Reason::Behind { at_least }, Reason::NoConsumer];
        assert_eq!(explain(&mut engine, id), expected, "{id}");
    }
    assert_eq!(explain(&mut engine, 1), [Reason::NoConsumer, Reason::Next]);
}

#[test]
fn turns_ahead_are_exact_up_to_ten_thousand() {
    let mut engine = started();
    let fair: [Assignment<'_>; 1] = [(RANKING, Value::Word(1))];
    let queue = QUEUE.name;
    ask(&mut engine, NOW, QueueCommand::Create { queue, settings: &fair }.into());
    put_many(&mut engine, BEHIND_MAX + 2, |_| 0);
    let terms = Terms::NONE.with(Some(b"quiet".as_slice()), COST_USUAL);
    ask(&mut engine, NOW, Command::Put(Put { terms, ..Put::new(queue, b"") }));
    let (last, quiet) = (BEHIND_MAX + 2, BEHIND_MAX + 3);
    for (id, share, ahead) in [
        (2, "k", 2),
        (BEHIND_MAX - 1, "k", BEHIND_MAX - 1),
        (last, "k", BEHIND_MAX),
        (quiet, "quiet", 1),
    ] {
        let (share, ahead) = (share.as_bytes().into(), ahead as u64);
        let expected = [Reason::ShareTurn { share, ahead }, Reason::NoConsumer];
        assert_eq!(explain(&mut engine, id), expected, "{id}");
    }
}

/// Looks at the shares until there is no further page. Returns them, and how many pages were empty.
fn shares(engine: &mut Engine, top: bool) -> (Vec<ShareShown>, usize) {
    let (mut all, mut empty, mut from): (Vec<ShareShown>, usize, Option<Bytes>) =
        (Vec::new(), 0, None);
    loop {
        let look = QueueCommand::Shares { queue: QUEUE, count: 2, from: from.as_deref(), top };
        let Reply::Shares { shares, next } = ask(engine, NOW, look.into()) else {
            panic!("no page")
        };
        empty += usize::from(shares.is_empty());
        assert!(shares.len() <= 2);
        all.extend(shares);
        from = next;
        if from.is_none() {
            return (all, empty);
        }
    }
}

#[test]
fn shares_of_many_tasks_are_counted_bit_by_bit() {
    let mut engine = started();
    put_many(&mut engine, 12_000, |index| [5, -1, 0][index % 3]);
    let look = QueueCommand::Shares { queue: QUEUE, count: 2, from: None, top: false };
    ask(&mut engine, NOW, look.into());
    // What changes in between is counted once, whether it was reached already or not.
    take(&mut engine, 5_000, 10);
    put_many(&mut engine, 3, |_| 0);
    let names = |shares: &[ShareShown]| -> Vec<_> {
        shares.iter().map(|it| (it.share.to_vec(), it.ready, it.taken)).collect()
    };
    let (all, empty) = shares(&mut engine, true);
    assert_eq!(empty, 1, "the third look is the last one");
    assert_eq!(names(&all), [(b"k".to_vec(), 7_003, 5_000)]);
    for (index, share) in ["", "a", "z", "b"].into_iter().enumerate() {
        let terms = Terms::NONE.with(Some(share.as_bytes()).filter(|_| index > 0), COST_USUAL);
        ask(&mut engine, NOW, Command::Put(Put { terms, ..Put::new(QUEUE.name, b"") }));
    }
    let (all, empty) = shares(&mut engine, false);
    assert_eq!((all.len(), empty), (5, 0));
    assert!(all.is_sorted_by_key(|shown| shown.share.clone()));
    engine.check();
}

#[test]
fn scan_sees_each_of_many_tasks_once_by_seq() {
    let mut engine = started();
    let count = 3 * LOOKED_MAX as usize + 7;
    put_many(&mut engine, count, |index| [5, -1, i64::MAX, 0][index % 4]);
    let (numbers, pages) = scan(&mut engine, None);
    assert_eq!(numbers, (1..=count as u64).collect::<Vec<_>>());
    assert_eq!(pages, 4);
}

#[test]
fn scan_for_a_key_that_is_not_there_ends_its_pages_early() {
    let mut engine = started();
    put_many(&mut engine, 2 * LOOKED_STEPS_MAX + 1, |_| 0);
    assert_eq!(scan(&mut engine, Some(b"other")), (Vec::new(), 3));
}

#[test]
fn lease_that_is_over_is_never_shown() {
    let mut engine = started();
    put_many(&mut engine, STEPS_PER_TIMEOUT + 500, |_| 0);
    take_all(&mut engine, 10);
    let over = NOW.after(Span::from_ms(10));
    let before = Timestamp::from_ms(over.ms() - 1);
    assert_eq!(leases(&mut engine, before).0.len(), STEPS_PER_TIMEOUT + 500);
    // One call fires only some of the deadlines.
    assert_eq!(leases(&mut engine, over), (Vec::new(), 1));
    engine.check();
}

#[test]
fn leases_are_found_behind_many_queues() {
    let mut engine = started();
    for index in 0..LOOKED_STEPS_MAX {
        let name = format!("idle {index}");
        ask(&mut engine, NOW, Command::Put(Put::new(name.as_bytes(), b"")));
    }
    put_many(&mut engine, 2 * LOOKED_MAX as usize, |_| 0);
    take_all(&mut engine, 10);
    let (all, pages) = leases(&mut engine, NOW);
    let places: BTreeSet<&LeasePlace> = all.iter().map(|lease| &lease.place).collect();
    assert_eq!((places.len(), all.len()), (2 * LOOKED_MAX as usize, 2 * LOOKED_MAX as usize));
    assert_eq!(pages, 3, "one ends after many queues, and two are full");
}

#[test]
fn queues_that_do_not_match_cost_a_look_no_step() {
    let mut engine = started();
    for index in 0..LOOKED_STEPS_MAX {
        let name = format!("idle {index}");
        ask(&mut engine, NOW, Command::Put(Put::new(name.as_bytes(), b"")));
    }
    put_many(&mut engine, 3, |_| 0);
    take_all(&mut engine, 10);
    let (all, cursors) = leases_within(&mut engine, NOW, &[NamePattern::exactly(QUEUE.name)]);
    assert_eq!((all.len(), cursors), (3, Vec::new()));
}

/// Lets many members and then one more join topics, and takes a task of the last one.
fn with_lanes(others: usize, topic: &[u8]) -> Engine {
    let mut engine = started();
    let mut join = |topic: &[u8], member: &[u8]| {
        let join = MemberCommand::Join { topic, member, lease: None };
        ask(&mut engine, NOW, Command::Member(join));
    };
    for index in 0..others {
        join(b"hidden", format!("m{index}").as_bytes());
    }
    join(topic, b"last");
    let publish = Publish {
        topic,
        payload: b"",
        terms: Terms::NONE,
        priority: Some(0),
        deadline: Deadline::OfLane,
    };
    ask(&mut engine, NOW, Command::Publish(publish));
    ask(
        &mut engine,
        NOW,
        Command::Take(Take {
            queues: &[topic],
            member: Some(b"last"),
            count: 1,
            wait: Wait::No,
            selection: Selection::DEFAULT,
            mode: TakeMode::Lease { ttr: None },
        }),
    );
    engine
}

#[test]
fn cursor_does_not_tell_a_topic_that_is_not_shown() {
    let mut engine = with_lanes(LOOKED_STEPS_MAX + 1, b"news");
    let (all, cursors) = leases_within(&mut engine, NOW, &[NamePattern::exactly(b"news")]);
    assert_eq!(all.len(), 1);
    assert_eq!(cursors.len(), 1, "a look ends after many lanes");
    assert_eq!(&*cursors[0].queue, b"");
}

#[test]
fn lease_comes_once_although_another_shard_has_a_lane_of_that_number() {
    let mut engine = with_lanes(0, b"news");
    let (all, _) = leases(&mut engine, NOW);
    let [LeaseShown { place, .. }] = &all[..] else { panic!("not one lease") };
    let (lane, seq) = (place.lane, 0);
    for (queue, count) in [(&b"a"[..], 1), (b"news", 1), (b"olds", 0)] {
        let after = Some(LeasePlace { lane, queue, seq });
        let look = Leases { queue: None, after, count: 10 };
        let (shown, _) = page(ask(&mut engine, NOW, Command::Leases(look)));
        assert_eq!(shown.len(), count, "{}", queue.escape_ascii());
    }
}
