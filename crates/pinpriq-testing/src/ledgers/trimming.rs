//! Cases about removing entries from the beginning of a log. Parts of a trim are not among them.

use super::{BELA, Bench, Case, Hand, seized};
use pinpriq_store::ledger::interface::{Appended, Seq, Trimmed};

pub(super) const CASES: &[Case] = named![
    a_trim_removes_what_is_before,
    a_trim_of_everything_keeps_the_head,
    a_trim_can_be_repeated,
    a_lower_trim_changes_nothing,
    a_trim_of_an_old_tenure_is_fenced,
    a_seize_tells_the_first_entry,
    a_trimmed_place_is_not_free,
    a_long_log_is_trimmed_at_once,
];

/// Entries before the place are gone, and the others stay as they are.
fn a_trim_removes_what_is_before(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=10);
    assert_eq!(anna.trim(tenure, 6), Trimmed::Done, "a trim of five entries");
    for from in 0..=5 {
        assert!(anna.read(from, 1_000).is_empty(), "entry {from} was trimmed");
    }
    anna.assert_filled(6..=10);
    anna.fill(tenure, 11..=12);
    anna.assert_filled(7..=12);
}

/// After all entries are removed, the next one still follows the last one.
fn a_trim_of_everything_keeps_the_head(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=4);
    assert_eq!(anna.trim(tenure, 5), Trimmed::Done, "a trim of all entries");
    for from in 0..=6 {
        assert!(anna.read(from, 1_000).is_empty(), "from {from}, all was trimmed");
    }
    anna.fill(tenure, 5..=6);
    anna.assert_filled(5..=6);
}

/// The same trim again is done.
fn a_trim_can_be_repeated(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    assert_eq!(anna.trim(tenure, 1), Trimmed::Done, "a trim of an empty log");
    anna.fill(tenure, 1..=5);
    for _ in 0..3 {
        assert_eq!(anna.trim(tenure, 3), Trimmed::Done, "the same trim");
        anna.assert_filled(3..=5);
    }
}

/// A trim before the first entry is done, and brings nothing back.
fn a_lower_trim_changes_nothing(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=8);
    assert_eq!(anna.trim(tenure, 5), Trimmed::Done, "a trim of four entries");
    for before in [0, 1, 4, 5] {
        assert_eq!(anna.trim(tenure, before), Trimmed::Done, "a trim before {before}");
    }
    assert!(anna.read(4, 1_000).is_empty(), "entry 4 stays away");
    anna.assert_filled(5..=8);
    assert_eq!(anna.seize().first, Seq(5), "the first entry");
}

/// A tenure that has ended removes nothing.
fn a_trim_of_an_old_tenure_is_fenced(bench: &mut dyn Bench) {
    let (shard, mut anna, old) = seized(bench);
    anna.fill(old, 1..=3);
    let mut bela = Hand::new(bench, shard, BELA);
    let new = bela.seize().tenure;
    assert_eq!(anna.trim(old, 3), Trimmed::Fenced, "a trim of an old tenure");
    bela.assert_filled(1..=3);
    assert_eq!(bela.trim(new, 3), Trimmed::Done, "a trim of the new tenure");
    bela.assert_filled(3..=3);
}

/// A seize after a trim tells where the log begins, also if nothing is left.
fn a_seize_tells_the_first_entry(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=5);
    assert_eq!(anna.trim(tenure, 4), Trimmed::Done, "a trim of three entries");
    let mut bela = Hand::new(bench, shard, BELA);
    let told = bela.seize();
    assert_eq!((told.first, told.head), (Seq(4), Seq(5)), "two entries are left");
    assert_eq!(bela.trim(told.tenure, 6), Trimmed::Done, "a trim of all entries");
    let told = bela.seize();
    assert_eq!((told.first, told.head), (Seq(6), Seq(5)), "no entry is left");
    bela.fill(told.tenure, 6..=6);
    let told = bela.seize();
    assert_eq!((told.first, told.head), (Seq(6), Seq(6)), "one entry came");
}

/// No entry is added in the place of one that was trimmed.
fn a_trimmed_place_is_not_free(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    assert_eq!(anna.trim(tenure, 4), Trimmed::Done, "a trim of all entries");
    for seq in [1, 3, 5] {
        assert_eq!(anna.append(tenure, seq, b"x"), Appended::Fenced, "entry {seq} after 3");
    }
    anna.fill(tenure, 4..=4);
}

/// One trim removes hundreds of entries.
fn a_long_log_is_trimmed_at_once(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=700);
    assert_eq!(anna.trim(tenure, 699), Trimmed::Done, "a trim of 698 entries");
    assert!(anna.read(698, 1_000).is_empty(), "entry 698 was trimmed");
    anna.assert_filled(699..=700);
    assert_eq!(anna.seize().first, Seq(699), "the first entry");
}
