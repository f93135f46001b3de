//! The engine in memory: what only it promises. That it keeps the promises of all engines is
//! checked by their suite, and its troubles by the store's tests and the simulator of clusters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pinpriq_store::ledger::{
    Answer, Appended, Call, Ledger, Resolved, Seized, Seq, Tenure, Term, Trimmed, Writer,
};
use pinpriq_testing::ledgers::Happened;
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs, FakeLedger};

const SHARD: u16 = 3;

fn ask(ledger: &mut FakeLedger, call: Call) -> Answer {
    ledger.start(call);
    ledger.wait();
    ledger.poll().expect("after a wait there is an answer")
}

fn seize(ledger: &mut FakeLedger) -> Option<Seized> {
    match ask(ledger, Call::Seize { at_least: Term(0) }) {
        Answer::Seized(seized) => seized.ok(),
        other => panic!("{other:?}"),
    }
}

fn append(tenure: Tenure, seq: u64) -> Call {
    Call::Append { tenure, seq: Seq(seq), bytes: Arc::from([7; 36]) }
}

/// An engine with a ledger that has seized its shard.
fn owned(knobs: FakeKnobs) -> (FakeEngine, FakeLedger, Tenure) {
    let engine = FakeEngine::new(1, knobs);
    let mut ledger = engine.ledger(SHARD, Writer(1));
    let tenure = seize(&mut ledger).expect("nothing is lost").tenure;
    (engine, ledger, tenure)
}

#[test]
fn a_full_engine_still_trims_and_seizes() {
    let knobs = FakeKnobs { bytes_max: 250, ..FakeKnobs::PERFECT };
    let (engine, mut ledger, tenure) = owned(knobs);
    for (seq, expected) in
        [(1, Appended::Done), (2, Appended::Done), (3, Appended::Full), (3, Appended::Full)]
    {
        assert_eq!(ask(&mut ledger, append(tenure, seq)), Answer::Appended(expected));
    }
    assert_eq!(engine.head(SHARD), Seq(2));
    let tenure = seize(&mut ledger).expect("a seize needs no room").tenure;
    let trim = Call::Trim { tenure, before: Seq(2) };
    assert_eq!(ask(&mut ledger, trim), Answer::Trimmed(Trimmed::Done));
    assert_eq!(ask(&mut ledger, append(tenure, 3)), Answer::Appended(Appended::Done));
}

#[test]
fn nothing_of_a_writer_that_is_cut_off_reaches_the_engine() {
    let (engine, mut ledger, tenure) = owned(FakeKnobs::PERFECT);
    engine.cut(Writer(1), true);
    assert_eq!(ask(&mut ledger, append(tenure, 1)), Answer::Appended(Appended::Unknown));
    assert_eq!(seize(&mut ledger), None);
    assert!(engine.log(SHARD).is_empty());
    assert_eq!(engine.tenure(SHARD), Some(tenure));
    let other = seize(&mut engine.ledger(SHARD, Writer(2))).expect("another writer").tenure;
    engine.cut(Writer(1), false);
    let resolve = Call::Resolve { tenure, seq: Seq(1) };
    assert_eq!(ask(&mut ledger, resolve), Answer::Resolved(Resolved::Fenced));
    assert_eq!(engine.tenure(SHARD), Some(other));
}

#[test]
fn a_copy_that_comes_after_its_resolve_is_stopped() {
    let mut stopped = 0;
    for seed in 0..50 {
        let engine = FakeEngine::new(seed, FakeKnobs::PERFECT);
        let mut ledger = engine.ledger(SHARD, Writer(1));
        let tenure = seize(&mut ledger).expect("nothing is lost").tenure;
        engine.set_knobs(FakeKnobs { lost_later: 100, ..FakeKnobs::PERFECT });
        assert_eq!(ask(&mut ledger, append(tenure, 1)), Answer::Appended(Appended::Unknown));
        engine.set_knobs(FakeKnobs::PERFECT);
        let resolved = ask(&mut ledger, Call::Resolve { tenure, seq: Seq(1) });
        let in_flight = engine.in_flight();
        while engine.in_flight() > 0 {
            engine.step();
        }
        let entries = engine.log(SHARD).len();
        match resolved {
            Answer::Resolved(Resolved::Absent) => assert_eq!(entries, 0, "seed {seed}"),
            Answer::Resolved(Resolved::Committed) => assert_eq!(entries, 1, "seed {seed}"),
            other => panic!("{other:?}"),
        }
        stopped += in_flight;
    }
    assert!(stopped > 0, "no copy came after its resolve");
}

#[test]
fn an_engine_that_loses_its_newest_entries_knows_the_old_tenure_again() {
    let (engine, mut ledger, old) = owned(FakeKnobs::PERFECT);
    assert_eq!(ask(&mut ledger, append(old, 1)), Answer::Appended(Appended::Done));
    let new = seize(&mut ledger).expect("nothing is lost").tenure;
    assert_eq!(ask(&mut ledger, append(new, 2)), Answer::Appended(Appended::Done));
    engine.roll_back(SHARD, 1);
    assert_eq!((engine.head(SHARD), engine.tenure(SHARD)), (Seq(1), Some(old)));
    let last = engine.history(SHARD).pop();
    assert_eq!(last, Some(Happened::RolledBack { head: Seq(1), fence: Some(old) }));
    assert_eq!(ask(&mut ledger, append(new, 2)), Answer::Appended(Appended::Fenced));
    engine.roll_back(SHARD, 9);
    assert_eq!((engine.head(SHARD), engine.tenure(SHARD)), (Seq(0), None));
}

#[test]
fn without_a_poll_or_a_step_nothing_happens() {
    let (engine, mut ledger, tenure) = owned(FakeKnobs::PERFECT);
    ledger.start(append(tenure, 1));
    assert_eq!((engine.in_flight(), engine.head(SHARD)), (1, Seq(0)));
    engine.step();
    assert_eq!((engine.in_flight(), engine.head(SHARD)), (0, Seq(1)));
    assert_eq!(ledger.poll(), Some(Answer::Appended(Appended::Done)));
}

/// Returns what it says of a call that must not be made.
fn objection(ledger: &mut FakeLedger, call: Call) -> String {
    let caught = catch_unwind(AssertUnwindSafe(|| ledger.start(call)));
    let said = caught.expect_err("it objects");
    *said.downcast::<String>().expect("a sentence")
}

#[test]
fn two_appends_under_way_are_a_bug() {
    let (_, mut ledger, tenure) = owned(FakeKnobs::PERFECT);
    ledger.start(append(tenure, 1));
    let said = objection(&mut ledger, append(tenure, 2));
    assert!(said.contains("two calls of the kind Append are under way"), "{said}");
}

#[test]
fn an_append_after_an_unknown_one_is_a_bug() {
    let (engine, mut ledger, tenure) = owned(FakeKnobs::PERFECT);
    engine.set_knobs(FakeKnobs { lost_never: 100, ..FakeKnobs::PERFECT });
    assert_eq!(ask(&mut ledger, append(tenure, 1)), Answer::Appended(Appended::Unknown));
    let said = objection(&mut ledger, append(tenure, 1));
    assert!(said.contains("entry 1 is appended while entry 1 is unknown"), "{said}");
}
