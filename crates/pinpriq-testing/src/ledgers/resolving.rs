//! Cases about finding out what became of an entry. No append among them is really unknown.

use super::{BELA, Bench, Case, Hand, seized};
use pinpriq_store::ledger::interface::{Resolved, Seq, Trimmed};

pub(super) const CASES: &[Case] = named![
    an_entry_that_is_there_is_committed,
    an_entry_that_is_not_there_is_absent,
    another_entry_takes_the_place_of_an_absent_one,
    a_resolve_can_be_repeated,
    a_resolve_does_not_end_its_tenure,
    a_resolve_of_an_old_tenure_is_fenced,
    an_entry_of_an_earlier_tenure_is_committed,
    an_entry_that_was_trimmed_is_committed,
    a_new_tenure_goes_on_after_resolves_of_the_old_one,
    a_tenure_is_renewed_between_its_appends,
    a_renewal_of_an_old_tenure_is_fenced,
];

/// An entry at the head or before it is committed.
fn an_entry_that_is_there_is_committed(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    for seq in [3, 2, 1] {
        assert_eq!(anna.resolve(tenure, seq), Resolved::Committed, "entry {seq} of 3");
    }
    anna.assert_filled(1..=3);
}

/// An entry behind the head is absent.
fn an_entry_that_is_not_there_is_absent(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    assert_eq!(anna.resolve(tenure, 1), Resolved::Absent, "entry 1 of an empty log");
    anna.fill(tenure, 1..=2);
    assert_eq!(anna.resolve(tenure, 3), Resolved::Absent, "entry 3 of 2");
    assert_eq!(anna.seize().head, Seq(2), "a resolve adds nothing");
}

/// After an entry was absent, another one can be appended in its place.
fn another_entry_takes_the_place_of_an_absent_one(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    for seq in 1..=5 {
        assert_eq!(anna.resolve(tenure, seq), Resolved::Absent, "entry {seq}");
        anna.fill(tenure, seq..=seq);
        assert_eq!(anna.resolve(tenure, seq), Resolved::Committed, "entry {seq}");
    }
    anna.assert_filled(1..=5);
}

/// The same question has the same answer.
fn a_resolve_can_be_repeated(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=1);
    for _ in 0..4 {
        assert_eq!(anna.resolve(tenure, 2), Resolved::Absent, "entry 2 of 1");
        assert_eq!(anna.resolve(tenure, 1), Resolved::Committed, "entry 1 of 1");
    }
    anna.fill(tenure, 2..=2);
}

/// Appends go on after resolves.
fn a_resolve_does_not_end_its_tenure(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=2);
    assert_eq!(anna.resolve(tenure, 2), Resolved::Committed, "entry 2 of 2");
    anna.fill(tenure, 3..=6);
    assert_eq!(anna.resolve(tenure, 7), Resolved::Absent, "entry 7 of 6");
    anna.fill(tenure, 7..=9);
    assert_eq!(anna.trim(tenure, 3), Trimmed::Done, "a trim after resolves");
    anna.assert_filled(3..=9);
}

/// A tenure that has ended finds out nothing, and changes nothing.
fn a_resolve_of_an_old_tenure_is_fenced(bench: &mut dyn Bench) {
    let (shard, mut anna, old) = seized(bench);
    anna.fill(old, 1..=1);
    let mut bela = Hand::new(bench, shard, BELA);
    let new = bela.seize().tenure;
    for seq in [1, 2] {
        assert_eq!(anna.resolve(old, seq), Resolved::Fenced, "entry {seq} of an old tenure");
    }
    bela.fill(new, 2..=3);
    let newer = bela.seize().tenure;
    assert_eq!(bela.resolve(new, 3), Resolved::Fenced, "an old tenure of the same writer");
    bela.fill(newer, 4..=4);
}

/// An entry that an earlier tenure has appended is committed for its successor too.
fn an_entry_of_an_earlier_tenure_is_committed(bench: &mut dyn Bench) {
    let (shard, mut anna, old) = seized(bench);
    anna.fill(old, 1..=2);
    let mut bela = Hand::new(bench, shard, BELA);
    let new = bela.seize().tenure;
    assert_eq!(bela.resolve(new, 2), Resolved::Committed, "entry 2 of the old tenure");
    assert_eq!(bela.resolve(new, 3), Resolved::Absent, "entry 3 of 2");
    bela.fill(new, 3..=3);
}

/// An entry that was there and was trimmed is committed.
fn an_entry_that_was_trimmed_is_committed(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=4);
    assert_eq!(anna.trim(tenure, 5), Trimmed::Done, "a trim of all entries");
    assert_eq!(anna.resolve(tenure, 1), Resolved::Committed, "entry 1, which was trimmed");
    assert_eq!(anna.resolve(tenure, 4), Resolved::Committed, "entry 4, which was trimmed");
    assert_eq!(anna.resolve(tenure, 5), Resolved::Absent, "entry 5 of 4");
    anna.fill(tenure, 5..=5);
}

/// What an old tenure has resolved does not hinder a new one, of the same ledger or of another.
fn a_new_tenure_goes_on_after_resolves_of_the_old_one(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    for _ in 0..3 {
        assert_eq!(anna.resolve(tenure, 1), Resolved::Absent, "entry 1 of an empty log");
    }
    let tenure = anna.seize().tenure;
    anna.fill(tenure, 1..=2);
    assert_eq!(anna.resolve(tenure, 3), Resolved::Absent, "entry 3 of 2");
    let mut bela = Hand::new(bench, shard, BELA);
    let tenure = bela.seize().tenure;
    bela.fill(tenure, 3..=4);
    bela.assert_filled(1..=4);
}

/// Resolving the last entry again and again renews a tenure, and hinders no append.
fn a_tenure_is_renewed_between_its_appends(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    for seq in 1..=6 {
        anna.fill(tenure, seq..=seq);
        for _ in 0..seq % 3 {
            assert_eq!(anna.resolve(tenure, seq), Resolved::Committed, "the last entry, {seq}");
        }
    }
    assert_eq!(anna.trim(tenure, 7), Trimmed::Done, "a trim of all entries");
    assert_eq!(anna.resolve(tenure, 6), Resolved::Committed, "the last entry, which was trimmed");
    anna.fill(tenure, 7..=7);
    assert_eq!(anna.resolve(tenure, 8), Resolved::Absent, "entry 8 of 7, after renewals");
    anna.fill(tenure, 8..=8);
}

/// A tenure is not renewed after anybody has seized the log, though its last entry is still there.
fn a_renewal_of_an_old_tenure_is_fenced(bench: &mut dyn Bench) {
    let (shard, mut anna, old) = seized(bench);
    anna.fill(old, 1..=2);
    assert_eq!(anna.resolve(old, 2), Resolved::Committed, "the last entry");
    let mut bela = Hand::new(bench, shard, BELA);
    let new = bela.seize().tenure;
    for seq in [2, 1, 0] {
        assert_eq!(anna.resolve(old, seq), Resolved::Fenced, "entry {seq} of an old tenure");
    }
    assert_eq!(bela.resolve(new, 2), Resolved::Committed, "the last entry, of an earlier tenure");
    // The same writer has another tenure now, and the old one is not renewed by it.
    let newer = anna.seize().tenure;
    assert_eq!(anna.resolve(old, 2), Resolved::Fenced, "an old tenure of the same writer");
    assert_eq!(bela.resolve(new, 2), Resolved::Fenced, "a tenure that has just ended");
    assert_eq!(anna.resolve(newer, 2), Resolved::Committed, "the tenure that goes on");
    anna.fill(newer, 3..=3);
}
