//! Cases about reading. That what was read may be lost is not among them.

use super::{BELA, Bench, Case, Hand, seized};
use pinpriq_store::ledger::interface::{Appended, Writer};

pub(super) const CASES: &[Case] = named![
    an_empty_log_has_no_entries,
    a_read_begins_where_asked,
    a_read_behind_the_head_tells_nothing,
    a_read_tells_at_least_one_entry,
    a_read_ends_once_it_has_the_bytes,
    anybody_may_read,
    a_read_sees_what_was_done_before,
];

/// A log that was never seized, and one that is empty, have no entries.
fn an_empty_log_has_no_entries(bench: &mut dyn Bench) {
    let shard = bench.fresh_shard();
    let mut bela = Hand::new(bench, shard, BELA);
    for from in [0, 1, 2] {
        assert!(bela.read(from, 1_000).is_empty(), "a log that was never seized");
    }
    bela.seize();
    for from in [0, 1, 2] {
        assert!(bela.read(from, 1_000).is_empty(), "a log that was only seized");
    }
}

/// Reading from the middle tells the rest.
fn a_read_begins_where_asked(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=20);
    for from in [1, 2, 10, 19, 20] {
        anna.assert_filled(from..=20);
    }
}

/// Behind the last entry there is nothing, however far.
fn a_read_behind_the_head_tells_nothing(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    for from in [4, 5, 1 << 40, u64::MAX / 2] {
        assert!(anna.read(from, 1_000).is_empty(), "from {from}, behind entry 3");
    }
}

/// With fewer bytes wanted than the first entry has, it comes alone.
fn a_read_tells_at_least_one_entry(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    for seq in 1..=3 {
        assert_eq!(anna.append(tenure, seq, &[9; 50]), Appended::Done, "entry {seq}");
    }
    for (from, bytes) in [(1, 0), (1, 1), (2, 49), (2, 50), (3, 0), (3, 1_000)] {
        assert_eq!(anna.read(from, bytes).len(), 1, "from {from}, {bytes} bytes");
    }
}

/// Without the last entry of a read, the bytes would not be enough.
fn a_read_ends_once_it_has_the_bytes(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    for seq in 1..=10 {
        assert_eq!(anna.append(tenure, seq, &[9; 10]), Appended::Done, "entry {seq}");
    }
    for (bytes, most) in [(10, 1), (11, 2), (25, 3), (99, 10), (usize::MAX, 10)] {
        let told = anna.read(1, bytes).len();
        assert!((1..=most).contains(&told), "{told} entries for {bytes} bytes");
    }
}

/// A reader needs no tenure, and ends none.
fn anybody_may_read(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=2);
    Hand::new(bench, shard, BELA).assert_filled(1..=2);
    Hand::new(bench, shard, Writer(0)).assert_filled(1..=2);
    anna.fill(tenure, 3..=3);
}

/// What was answered before a read starts is seen by it, through any ledger.
fn a_read_sees_what_was_done_before(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    let mut bela = Hand::new(bench, shard, BELA);
    for seq in 1..=20 {
        anna.fill(tenure, seq..=seq);
        assert_eq!(bela.read(seq, 100).len(), 1, "entry {seq}, which was just appended");
    }
}
