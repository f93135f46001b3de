//! What a ledger on PostgreSQL says when the server is in trouble, and what is in the log then.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinpriq_store::ledger::{
    Answer, Appended, Call, Ledger, LedgerOptions, LedgerStore, Resolved, Seized, Seq, Tenure,
    Term, Trimmed,
};
use pinpriq_store::{Position, Store as _, Urgency};
use pinpriq_testing::stores::{Caller, sample_task};
use tokio_postgres::Client;

use crate::postgres::engine::Engine;

/// How often the server is asked for something that must happen, 10 ms apart.
const LOOKS_MAX: u32 = 3_000;

fn answer(ledger: &mut dyn Ledger) -> Answer {
    ledger.wait();
    ledger.poll().unwrap()
}

fn seize(ledger: &mut dyn Ledger) -> Seized {
    ledger.start(Call::Seize { at_least: Term(0) });
    let Answer::Seized(seized) = answer(ledger) else { panic!("no answer to a seize") };
    seized.unwrap()
}

fn start_append(ledger: &mut dyn Ledger, tenure: Tenure, seq: u64, bytes: &[u8]) {
    ledger.start(Call::Append { tenure, seq: Seq(seq), bytes: Arc::from(bytes) });
}

fn append(ledger: &mut dyn Ledger, tenure: Tenure, seq: u64, bytes: &[u8]) -> Appended {
    start_append(ledger, tenure, seq, bytes);
    let Answer::Appended(appended) = answer(ledger) else { panic!("no answer to an append") };
    appended
}

fn resolve(ledger: &mut dyn Ledger, tenure: Tenure, seq: u64) -> Resolved {
    ledger.start(Call::Resolve { tenure, seq: Seq(seq) });
    let Answer::Resolved(resolved) = answer(ledger) else { panic!("no answer to a resolve") };
    resolved
}

/// Waits until a query returns this value.
pub(crate) fn look(engine: &Engine, client: &Client, query: &str, expected: &str) {
    for _ in 0..LOOKS_MAX {
        if engine.sql(client, query).as_deref() == Some(expected) {
            return;
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    panic!("{query} never is {expected}");
}

/// How many commits wait for a standby.
pub(crate) const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// Cancels the waits for a standby, after which PostgreSQL reports success with a warning.
pub(crate) const CANCEL: &str = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
                      WHERE wait_event = 'SyncRep'";

/// Ends the sessions of all clients.
pub(crate) const END_SESSIONS: &str = "SELECT count(pg_terminate_backend(pid)) \
                      FROM pg_stat_activity WHERE application_name = 'pinpriq'";

/// How many statements of clients wait for a lock.
pub(crate) const STUCK: &str = "SELECT count(*) FROM pg_stat_activity \
                      WHERE application_name = 'pinpriq' AND wait_event_type = 'Lock'";

/// Makes commits wait for a standby that there is not. The server does so some time after it was
/// told, so other commits are made until one waits.
pub(crate) fn isolate(engine: &Engine, client: &Client) {
    engine.sql(client, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    engine.sql(client, "SELECT pg_reload_conf()");
    for _ in 0..LOOKS_MAX {
        let other = engine.client();
        let commit = async move { other.simple_query("COMMENT ON SCHEMA s IS 'x'").await.unwrap() };
        let commit = engine.runtime.spawn(commit);
        while !commit.is_finished() {
            if engine.sql(client, WAITING).as_deref() == Some("1") {
                engine.sql(client, CANCEL);
                engine.runtime.block_on(commit).unwrap();
                return;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
    }
    panic!("commits never wait");
}

/// Lets commits go on alone.
pub(crate) fn end_isolation(engine: &Engine, client: &Client) {
    engine.sql(client, "ALTER SYSTEM RESET synchronous_standby_names");
    engine.sql(client, "SELECT pg_reload_conf()");
}

#[test]
fn an_append_whose_wait_was_cancelled_is_unknown() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    assert_eq!(append(&mut *ledger, tenure, 1, b"safe"), Appended::Done);
    let client = engine.client();
    isolate(&engine, &client);
    start_append(&mut *ledger, tenure, 2, b"not safe");
    look(&engine, &client, WAITING, "1");
    engine.sql(&client, CANCEL);
    assert_eq!(answer(&mut *ledger), Answer::Appended(Appended::Unknown));
    assert_eq!(
        engine.sql(&client, "SELECT head FROM s.shard").as_deref(),
        Some("2"),
        "readers see it"
    );
    // A resolve is a commit too, and must not trust what it sees.
    ledger.start(Call::Resolve { tenure, seq: Seq(2) });
    look(&engine, &client, WAITING, "1");
    engine.sql(&client, CANCEL);
    assert_eq!(answer(&mut *ledger), Answer::Resolved(Resolved::Unknown));
    // The same holds for a trim and for a seizure.
    ledger.start(Call::Trim { tenure, before: Seq(2) });
    look(&engine, &client, WAITING, "1");
    engine.sql(&client, CANCEL);
    assert_eq!(answer(&mut *ledger), Answer::Trimmed(Trimmed::Unknown));
    let mut other = engine.ledger(&postgres, 1, 2);
    other.start(Call::Seize { at_least: Term(0) });
    look(&engine, &client, WAITING, "1");
    engine.sql(&client, CANCEL);
    assert!(matches!(answer(&mut *other), Answer::Seized(Err(_))));
    end_isolation(&engine, &client);
    assert_eq!(resolve_patiently(&mut *ledger, tenure, 2), Resolved::Fenced);
    assert_eq!(seize(&mut *other).head, Seq(2));
}

#[test]
fn a_store_counts_no_batch_whose_wait_was_cancelled() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let store = LedgerStore::new(engine.ledger(&postgres, 1, 1), LedgerOptions::default());
    let mut caller = Caller::start(Box::new(store)).unwrap();
    caller.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
    caller.settle().unwrap();
    let before = caller.reached;
    let client = engine.client();
    isolate(&engine, &client);
    caller.append(&[sample_task(2, "q", 10)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    // First the append, then one resolve after the other.
    for _ in 0..4 {
        for _ in 0..LOOKS_MAX {
            if engine.sql(&client, WAITING).as_deref() == Some("1") {
                break;
            }
            caller.header.now = caller.store.poll_timeout().unwrap_or(caller.header.now);
            caller.turn().unwrap();
            thread::park_timeout(Duration::from_millis(10));
        }
        engine.sql(&client, CANCEL);
        look(&engine, &client, WAITING, "0");
        caller.turn().unwrap();
        assert_eq!(caller.reached, before, "nothing is acknowledged that may be lost");
    }
    end_isolation(&engine, &client);
    caller.store.finish(caller.header.now).unwrap();
    caller.turn().unwrap();
    assert!(caller.reached > before && caller.reached >= Position(3));
}

/// Resolves until there is an answer.
fn resolve_patiently(ledger: &mut dyn Ledger, tenure: Tenure, seq: u64) -> Resolved {
    let mut answers = (0..20).map(|_| resolve(ledger, tenure, seq));
    answers.find(|resolved| *resolved != Resolved::Unknown).unwrap()
}

fn bodies(ledger: &mut dyn Ledger) -> Vec<Vec<u8>> {
    ledger.start(Call::Read { from: Seq(1), bytes: 1_000 });
    let Answer::Read(Ok(entries)) = answer(ledger) else { panic!("nothing is read") };
    entries.into_iter().map(|(_, body)| body).collect()
}

#[test]
fn silence_is_unknown_and_nothing_is_cancelled() {
    let Some(engine) = Engine::start(&[]) else { return };
    let mut options = engine.options("s");
    options.call_timeout = Duration::from_secs(1);
    let (postgres, _) = engine.connect(options).unwrap();
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    let mut client = engine.client();
    for (seq, bytes) in [(1, &b"first"[..]), (2, b"second")] {
        // While another session holds the row, the append and some resolves get stuck.
        let held = engine.runtime.block_on(client.transaction()).unwrap();
        let lock = held.simple_query("SELECT 1 FROM s.shard FOR UPDATE");
        engine.runtime.block_on(lock).unwrap();
        assert_eq!(append(&mut *ledger, tenure, seq, bytes), Appended::Unknown);
        assert_eq!(resolve(&mut *ledger, tenure, seq), Resolved::Unknown);
        assert_eq!(resolve(&mut *ledger, tenure, seq), Resolved::Unknown);
        engine.runtime.block_on(held.rollback()).unwrap();
        // The stuck ones go on, in any order.
        if resolve_patiently(&mut *ledger, tenure, seq) == Resolved::Absent {
            assert_eq!(append(&mut *ledger, tenure, seq, bytes), Appended::Done);
        }
    }
    assert_eq!(append(&mut *ledger, tenure, 3, b"third"), Appended::Done);
    assert_eq!(bodies(&mut *ledger), [&b"first"[..], b"second", b"third"]);
}

#[test]
fn a_renewal_keeps_its_connection() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    assert_eq!(append(&mut *ledger, tenure, 1, b"first"), Appended::Done);
    let client = engine.client();
    let sessions = "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity \
                    WHERE application_name = 'pinpriq'";
    let before = engine.sql(&client, sessions);
    for _ in 0..5 {
        assert_eq!(resolve(&mut *ledger, tenure, 1), Resolved::Committed);
    }
    assert_eq!(engine.sql(&client, sessions), before);
    assert_eq!(append(&mut *ledger, tenure, 2, b"second"), Appended::Done);
}

#[test]
fn a_copy_of_an_append_that_comes_after_its_resolve_changes_nothing() {
    let Some(engine) = Engine::start(&[]) else { return };
    let mut options = engine.options("s");
    options.call_timeout = Duration::from_secs(1);
    let (postgres, _) = engine.connect(options).unwrap();
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    // From now on the statement is prepared, so the next append is sent as a whole.
    assert_eq!(append(&mut *ledger, tenure, 1, b"first"), Appended::Done);
    let (mut client, other) = (engine.client(), engine.client());
    // The append waits for the table of the entries. The resolve does not need it.
    let held = engine.runtime.block_on(client.transaction()).unwrap();
    let lock = held.simple_query("LOCK TABLE s.entry IN EXCLUSIVE MODE");
    engine.runtime.block_on(lock).unwrap();
    assert_eq!(append(&mut *ledger, tenure, 2, b"late"), Appended::Unknown);
    assert_eq!(engine.sql(&other, STUCK).as_deref(), Some("1"));
    assert_eq!(resolve_patiently(&mut *ledger, tenure, 2), Resolved::Absent);
    engine.runtime.block_on(held.rollback()).unwrap();
    // Its session ends after it, since no server listens.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pinpriq'";
    look(&engine, &other, sessions, "1");
    assert_eq!(engine.sql(&other, "SELECT head FROM s.shard").as_deref(), Some("1"));
    assert_eq!(append(&mut *ledger, tenure, 2, b"again"), Appended::Done);
    assert_eq!(bodies(&mut *ledger), [&b"first"[..], b"again"]);
}

#[test]
fn a_copy_of_a_resolve_that_comes_late_ends_no_tenure() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    let client = engine.client();
    for (seq, byte) in (1..).zip([b"a", b"b", b"c"]) {
        engine.sql(&client, "UPDATE s.shard SET beat = beat + 1");
        assert_eq!(append(&mut *ledger, tenure, seq, byte), Appended::Done);
    }
}

#[test]
fn a_session_that_somebody_ended_is_replaced() {
    let Some((engine, postgres)) = Engine::connected() else { return };
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    let client = engine.client();
    for seq in 1..=20 {
        engine.sql(&client, END_SESSIONS);
        match append(&mut *ledger, tenure, seq, b"x") {
            Appended::Done => {}
            Appended::Unknown => match resolve(&mut *ledger, tenure, seq) {
                Resolved::Committed => {}
                Resolved::Absent => {
                    assert_eq!(append(&mut *ledger, tenure, seq, b"x"), Appended::Done);
                }
                other => panic!("entry {seq} is {other:?}"),
            },
            other => panic!("entry {seq} is {other:?}"),
        }
    }
    assert_eq!(seize(&mut *ledger).head, Seq(20));
}

#[test]
fn what_was_done_outlives_a_server_that_is_killed() {
    let Some(mut engine) = Engine::start(&[]) else { return };
    let options = engine.options("s");
    let (postgres, _) = engine.connect(options).unwrap();
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    let body = |seq: u64| vec![u8::try_from(seq % 251).unwrap(); 100 + 37 * (seq % 97) as usize];
    let mut seq = 0;
    for round in 1..=3 {
        for _ in 0..40 * round {
            seq += 1;
            assert_eq!(append(&mut *ledger, tenure, seq, &body(seq)), Appended::Done);
        }
        // One is under way when everything ends.
        seq += 1;
        start_append(&mut *ledger, tenure, seq, &body(seq));
        if round % 2 == 0 {
            thread::yield_now();
        }
        engine.kill();
        let appended = answer(&mut *ledger);
        assert_eq!(resolve(&mut *ledger, tenure, seq), Resolved::Unknown, "no server is there");
        engine.restart();
        let resolved = resolve(&mut *ledger, tenure, seq);
        match (appended, resolved) {
            (_, Resolved::Committed) => {}
            (Answer::Appended(Appended::Unknown), Resolved::Absent) => {
                assert_eq!(append(&mut *ledger, tenure, seq, &body(seq)), Appended::Done);
            }
            other => panic!("entry {seq} is {other:?}"),
        }
    }
    let mut next = 1;
    while next <= seq {
        ledger.start(Call::Read { from: Seq(next), bytes: 50_000 });
        let Answer::Read(Ok(entries)) = answer(&mut *ledger) else { panic!("nothing is read") };
        assert!(!entries.is_empty(), "entry {next} is gone");
        for (at, bytes) in entries {
            assert_eq!((at, bytes), (Seq(next), body(next)));
            next += 1;
        }
    }
}

#[test]
fn a_standby_that_does_not_answer_takes_no_more_connections_than_a_few() {
    let Some(engine) = Engine::start(&[]) else { return };
    let mut options = engine.options("s");
    options.call_timeout = Duration::from_millis(500);
    let (postgres, _) = engine.connect(options).unwrap();
    let mut ledger = engine.ledger(&postgres, 1, 1);
    let tenure = seize(&mut *ledger).tenure;
    assert_eq!(append(&mut *ledger, tenure, 1, b"first"), Appended::Done);
    let client = engine.client();
    isolate(&engine, &client);
    assert_eq!(append(&mut *ledger, tenure, 2, b"second"), Appended::Unknown);
    for _ in 0..8 {
        assert_eq!(resolve(&mut *ledger, tenure, 2), Resolved::Unknown);
    }
    let active = "SELECT count(*) FROM pg_stat_activity \
                  WHERE application_name = 'pinpriq' AND state = 'active'";
    assert_eq!(engine.sql(&client, active).as_deref(), Some("2"));
    end_isolation(&engine, &client);
    look(&engine, &client, active, "0");
    assert_eq!(resolve(&mut *ledger, tenure, 2), Resolved::Committed);
    assert_eq!(append(&mut *ledger, tenure, 3, b"third"), Appended::Done);
}
