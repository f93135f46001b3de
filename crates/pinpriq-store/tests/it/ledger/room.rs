//! Room on an engine that several logs share: what is low becomes enough again, whichever log made
//! room, and though nothing is appended meanwhile.

use pinpriq_proto::change::Change;
use pinpriq_proto::command::{Command, Put};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Writer};
use pinpriq_store::{Durable, Reclaims as _, Room, Store as _, Urgency};
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{Caller, sample_task};

/// The bytes of all logs together.
const ENGINE_BYTES: u64 = 2_000_000;

/// How soon a store knows that there is room again.
const SOON_MS: u64 = 1_500;

fn engine() -> FakeEngine {
    FakeEngine::new(1, FakeKnobs { bytes_max: ENGINE_BYTES, ..FakeKnobs::PERFECT })
}

fn start(engine: &FakeEngine, shard: u16) -> Caller<LedgerStore> {
    let ledger = Box::new(engine.ledger(shard, Writer(u128::from(shard) + 1)));
    Caller::start(Box::new(LedgerStore::new(ledger, LedgerOptions::default()))).unwrap()
}

fn room(caller: &mut Caller<LedgerStore>) -> Room {
    caller.store.room(&Default::default)
}

fn put(caller: &mut Caller<LedgerStore>) {
    let number = caller.header.last_number + 1;
    caller.append(&[sample_task(number, "q", 20_000)], Urgency::Soon).unwrap();
    caller.settle().unwrap();
}

/// Puts until the store says that room is low.
fn fill(caller: &mut Caller<LedgerStore>) {
    while room(caller) == Room::Enough {
        put(caller);
        assert!(caller.header.last_number < 1_000, "room is never low");
    }
}

/// Removes all tasks but those below this number.
fn drain(caller: &mut Caller<LedgerStore>, from: u64) {
    let known: Vec<u64> = caller.fold.tasks.keys().copied().filter(|it| *it >= from).collect();
    for number in known {
        caller.append(&[Change::Gone(number)], Urgency::Soon).unwrap();
        caller.settle().unwrap();
    }
}

/// Lets a while pass in which the store is driven only when it wants to be. Returns how often it
/// was.
fn wait(caller: &mut Caller<LedgerStore>) -> u32 {
    let end = caller.header.now.after(Span::from_ms(SOON_MS));
    let mut times = 0;
    loop {
        // An answer of the engine wakes its caller too.
        for _ in 0..4 {
            caller.turn().unwrap();
        }
        let due = caller.store.poll_timeout().filter(|due| *due <= end);
        let Some(due) = due else { break };
        caller.header.now = caller.header.now.max(due);
        times += 1;
        assert!(times < 20, "it is driven without a pause");
    }
    caller.header.now = end;
    times
}

#[test]
fn a_full_log_that_was_drained_has_room_though_nothing_is_appended() {
    let engine = engine();
    let mut caller = start(&engine, 0);
    for round in 0..3 {
        fill(&mut caller);
        drain(&mut caller, 0);
        wait(&mut caller);
        assert_eq!(room(&mut caller), Room::Enough, "round {round}");
        assert_eq!(wait(&mut caller), 0, "with enough room nothing is asked");
    }
}

#[test]
fn room_that_others_have_made_is_noticed_though_nothing_is_appended() {
    let engine = engine();
    let (mut idle, mut other) = (start(&engine, 0), start(&engine, 1));
    put(&mut idle);
    fill(&mut other);
    // An owner that begins asks at once.
    drop(idle);
    let mut idle = start(&engine, 0);
    idle.settle().unwrap();
    wait(&mut idle);
    assert!(room(&mut idle) > Room::Enough, "the room of one log is that of all");
    assert!(wait(&mut idle) > 0);
    assert!(room(&mut idle) > Room::Enough, "no room was made yet");
    drain(&mut other, 0);
    wait(&mut other);
    wait(&mut idle);
    assert_eq!(room(&mut idle), Room::Enough);
}

#[test]
fn while_room_is_low_one_old_task_holds_no_room_that_others_need() {
    let engine = engine();
    let mut caller = start(&engine, 0);
    put(&mut caller);
    fill(&mut caller);
    drain(&mut caller, 2);
    assert_eq!(caller.fold.tasks.len(), 1);
    wait(&mut caller);
    wait(&mut caller);
    assert_eq!(room(&mut caller), Room::Enough);
}

#[test]
fn who_is_refused_hears_that_the_engine_is_full_and_not_a_disk() {
    let engine = engine();
    let ledger = Box::new(engine.ledger(0, Writer(1)));
    let store = Box::new(LedgerStore::new(ledger, LedgerOptions::default()));
    let start = Timestamp::from_ms(1_000);
    let (mut durable, _) = Durable::open(store, Limits::default(), start, 1).unwrap();
    let now = durable.now();
    let payload = vec![7; 20_000];
    let refusal = (1..1_000).find_map(|request| {
        let put = Command::Put(Put::new(b"q", &payload));
        durable.apply(now, ClientId(1), RequestId(request), &put);
        durable.commit().unwrap();
        // The entry, and what the engine says of its room.
        for _ in 0..4 {
            durable.drive(now).unwrap();
        }
        match durable.poll_output() {
            Some((_, Output::Reply { reply: Reply::Refused(refusal), .. })) => Some(refusal),
            _ => None,
        }
    });
    let sentence = "the engine under the cluster is nearly full, by --cluster-bytes-max or its \
                    own quota: finish some, try again";
    assert_eq!(refusal.unwrap().sentence, sentence);
}
