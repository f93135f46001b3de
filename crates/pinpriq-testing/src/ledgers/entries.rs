//! Cases about what is appended: places, bytes and sizes.

use super::{Bench, Case, seized};
use crate::Dice;
use pinpriq_store::ledger::interface::{Appended, ENTRY_BYTES_MAX, Seq};

pub(super) const CASES: &[Case] = named![
    the_first_entry_is_1,
    a_gap_is_refused,
    the_same_place_is_refused,
    numbers_at_the_ends_are_refused,
    a_refused_place_does_not_end_the_tenure,
    entries_of_no_byte_and_one_byte,
    every_byte_comes_back,
    entries_of_the_target_size,
    an_entry_of_the_largest_size,
    a_larger_entry_is_done_or_refused_as_a_whole,
    a_thousand_entries_keep_their_order,
];

/// The first entry of a log has the number 1.
fn the_first_entry_is_1(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    assert_eq!(anna.append(tenure, 2, b"x"), Appended::Fenced, "entry 2 of an empty log");
    assert_eq!(anna.append(tenure, 1, b"first"), Appended::Done, "entry 1 of an empty log");
    assert_eq!(anna.read(1, 100), [(Seq(1), b"first".to_vec())], "the log");
}

/// An entry that does not follow the last one changes nothing.
fn a_gap_is_refused(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=2);
    for far in [4, 5, 1_000_000] {
        assert_eq!(anna.append(tenure, far, b"x"), Appended::Fenced, "entry {far} after 2");
        assert!(anna.read(far, 10).is_empty(), "entry {far} is not there");
    }
    anna.assert_filled(1..=2);
}

/// No entry replaces another one, with the same bytes or with others.
fn the_same_place_is_refused(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    for seq in [1, 2, 3] {
        let same = [u8::try_from(seq).unwrap_or(0)];
        assert_eq!(anna.append(tenure, seq, &same), Appended::Fenced, "entry {seq} again");
        assert_eq!(anna.append(tenure, seq, b"other"), Appended::Fenced, "another entry {seq}");
    }
    anna.assert_filled(1..=3);
}

/// The place before the first entry, and places that 63 bits hold no more, are refused.
fn numbers_at_the_ends_are_refused(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    for seq in [0, 1 << 53, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX] {
        assert_eq!(anna.append(tenure, seq, b"x"), Appended::Fenced, "entry {seq}");
    }
    anna.fill(tenure, 1..=1);
    anna.assert_filled(1..=1);
}

/// After an append at a wrong place, one at the right place works.
fn a_refused_place_does_not_end_the_tenure(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    for seq in 1..=5 {
        assert_eq!(anna.append(tenure, seq + 1, b"x"), Appended::Fenced, "a gap before {seq}");
        anna.fill(tenure, seq..=seq);
    }
    anna.assert_filled(1..=5);
}

/// Entries of no byte are entries.
fn entries_of_no_byte_and_one_byte(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let entries: [&[u8]; 6] = [b"", b"a", b"", b"", b"\0", b""];
    for (seq, entry) in (1..).zip(entries) {
        assert_eq!(anna.append(tenure, seq, entry), Appended::Done, "entry {seq}");
    }
    assert_eq!(anna.read_all(1), entries.map(<[u8]>::to_vec), "the entries");
}

/// Each of the 256 bytes comes back, alone and together.
fn every_byte_comes_back(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let all: Vec<u8> = (0..=255).collect();
    let mut entries: Vec<Vec<u8>> = all.iter().map(|byte| vec![*byte]).collect();
    entries.push(all.iter().rev().copied().collect());
    entries.push(all);
    for (seq, entry) in (1..).zip(&entries) {
        assert_eq!(anna.append(tenure, seq, entry), Appended::Done, "entry {seq}");
    }
    assert_eq!(anna.read_all(1), entries, "the entries");
}

/// Entries of the size that an engine prefers are accepted, and the size is in the bounds.
fn entries_of_the_target_size(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let target = anna.ledger.target_bytes();
    assert!((1..=ENTRY_BYTES_MAX).contains(&target), "a target of {target} bytes");
    let mut dice = Dice::new(1);
    let entries: Vec<_> = (0..8).map(|_| dice.bytes(target)).collect();
    for (seq, entry) in (1..).zip(&entries) {
        assert_eq!(anna.append(tenure, seq, entry), Appended::Done, "entry {seq}");
    }
    assert!(anna.read_all(1) == entries, "the entries are not what was appended");
}

/// The largest entry that every engine accepts is accepted.
fn an_entry_of_the_largest_size(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let mut dice = Dice::new(2);
    let entries = [dice.bytes(ENTRY_BYTES_MAX - 1), dice.bytes(ENTRY_BYTES_MAX)];
    for (seq, entry) in (1..).zip(&entries) {
        assert_eq!(anna.append(tenure, seq, entry), Appended::Done, "entry {seq}");
    }
    assert!(anna.read_all(1) == entries, "the entries are not what was appended");
}

/// A larger entry is added as a whole, or refused and not added at all.
fn a_larger_entry_is_done_or_refused_as_a_whole(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let large = Dice::new(3).bytes(ENTRY_BYTES_MAX + 1);
    let expected = match anna.append(tenure, 1, &large) {
        Appended::Done => vec![large],
        Appended::TooLarge => Vec::new(),
        other => panic!("the answer to a large append is {other:?}"),
    };
    assert!(anna.read_all(1) == expected, "the log is not what was told");
    let next = expected.len() as u64 + 1;
    anna.fill(tenure, next..=next);
}

/// Many small entries keep their order and their bytes.
fn a_thousand_entries_keep_their_order(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=1_000);
    anna.assert_filled(1..=1_000);
    assert_eq!(anna.seize().head, Seq(1_000), "the last entry");
}
