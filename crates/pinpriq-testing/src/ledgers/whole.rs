//! Cases about the whole: several shards, several calls under way, and room.

use super::{ANNA, BELA, Bench, Case, Hand, seized};
use crate::Dice;
use pinpriq_store::ledger::interface::{Answer, Appended, Call, Seq, Term, Trimmed};

pub(super) const CASES: &[Case] = named![
    without_a_call_there_is_no_answer,
    one_call_of_each_kind_is_answered,
    shards_are_independent,
    a_tenure_is_that_of_one_shard,
    a_log_outlives_its_ledger,
    the_status_counts_what_was_added,
    the_status_after_a_trim_is_in_its_bounds,
];

/// With no call under way, polling and waiting return at once.
fn without_a_call_there_is_no_answer(bench: &mut dyn Bench) {
    let shard = bench.fresh_shard();
    let mut anna = Hand::new(bench, shard, ANNA);
    anna.ledger.wait();
    assert_eq!(anna.ledger.poll(), None, "nothing was asked");
    anna.seize();
    anna.ledger.wait();
    assert_eq!(anna.ledger.poll(), None, "the only call was answered");
}

/// Calls of different kinds may be under way together. Each is answered once.
fn one_call_of_each_kind_is_answered(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    let bytes = [4].into();
    anna.ledger.start(Call::Append { tenure, seq: Seq(4), bytes });
    anna.ledger.start(Call::Read { from: Seq(2), bytes: 1 });
    anna.ledger.start(Call::Trim { tenure, before: Seq(2) });
    anna.ledger.start(Call::Status);
    let (mut appended, mut read, mut trimmed, mut status) = (0, 0, 0, 0);
    for _ in 0..4 {
        match anna.answer() {
            Answer::Appended(Appended::Done) => appended += 1,
            Answer::Read(Ok(told)) if told == [(Seq(2), vec![2])] => read += 1,
            Answer::Trimmed(Trimmed::Done) => trimmed += 1,
            Answer::Status(Ok(_)) => status += 1,
            other => panic!("one of four answers is {other:?}"),
        }
    }
    assert_eq!((appended, read, trimmed, status), (1, 1, 1, 1), "one answer to each");
    anna.ledger.wait();
    assert_eq!(anna.ledger.poll(), None, "all calls were answered");
    anna.assert_filled(2..=4);
}

/// What happens to one log changes no other one.
fn shards_are_independent(bench: &mut dyn Bench) {
    let (_, mut left, left_tenure) = seized(bench);
    let (right_shard, mut right, right_tenure) = seized(bench);
    for seq in 1..=5 {
        left.fill(left_tenure, seq..=seq);
        right.fill(right_tenure, seq..=seq);
    }
    right.fill(right_tenure, 6..=7);
    assert_eq!(left.trim(left_tenure, 6), Trimmed::Done, "a trim of the left log");
    right.assert_filled(1..=7);
    let other = Hand::new(bench, right_shard, BELA).seize_at_least(Term(900));
    assert_eq!((other.first, other.head), (Seq(1), Seq(7)), "the right log");
    left.fill(left_tenure, 6..=6);
    let told = left.seize();
    assert_eq!((told.first, told.head), (Seq(6), Seq(6)), "the left log");
}

/// A tenure counts for no other shard than its own.
fn a_tenure_is_that_of_one_shard(bench: &mut dyn Bench) {
    let (_, mut left, _) = seized(bench);
    let tenure = left.seize_at_least(Term(70)).tenure;
    let shard = bench.fresh_shard();
    let mut right = Hand::new(bench, shard, ANNA);
    assert_eq!(right.append(tenure, 1, b"x"), Appended::Fenced, "this log was not seized");
    let own = right.seize().tenure;
    right.fill(own, 1..=1);
    left.fill(tenure, 1..=1);
}

/// Dropping a ledger changes nothing in its log.
fn a_log_outlives_its_ledger(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    drop(anna);
    Hand::new(bench, shard, BELA).assert_filled(1..=3);
    let told = Hand::new(bench, shard, ANNA).seize();
    assert!(told.tenure.term > tenure.term, "terms rise after the ledger was dropped");
    assert_eq!(told.head, Seq(3), "the head");
}

/// The bytes that are used grow by about what was added, and there is room.
fn the_status_counts_what_was_added(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let before = anna.status();
    assert!(before.bytes_used <= before.bytes_max, "{before:?}");
    let mut dice = Dice::new(4);
    for seq in 1..=8 {
        let appended = anna.append(tenure, seq, &dice.bytes(256 << 10));
        assert_eq!(appended, Appended::Done, "entry {seq}");
    }
    let after = anna.status();
    assert!(after.bytes_used >= before.bytes_used + (1 << 20), "{before:?}, 2 MiB, {after:?}");
    assert!(after.bytes_used < after.bytes_max, "{after:?}");
}

/// A trim may free its bytes later, and the status is in its bounds all the time.
fn the_status_after_a_trim_is_in_its_bounds(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let mut dice = Dice::new(5);
    for seq in 1..=4 {
        let appended = anna.append(tenure, seq, &dice.bytes(64 << 10));
        assert_eq!(appended, Appended::Done, "entry {seq}");
    }
    assert_eq!(anna.trim(tenure, 5), Trimmed::Done, "a trim of all entries");
    let after = anna.status();
    assert!(after.bytes_used < after.bytes_max, "{after:?}");
    anna.fill(tenure, 5..=5);
}
