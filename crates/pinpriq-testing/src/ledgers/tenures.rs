//! Cases about who may append: seizing, terms and writers. Lost answers are not among them.

use super::{ANNA, BELA, Bench, Case, Hand, seized};
use pinpriq_store::ledger::interface::{Appended, Resolved, Seq, Tenure, Term, Trimmed, Writer};

pub(super) const CASES: &[Case] = named![
    a_seize_tells_its_tenure,
    a_term_is_never_0,
    each_seize_raises_the_term,
    a_seize_begins_at_least_where_asked,
    a_lower_wish_does_not_lower_the_term,
    huge_terms_are_kept,
    two_writers_seize_in_turn,
    the_same_writer_ends_its_own_tenure,
    a_seize_keeps_the_entries_and_tells_the_head,
    a_new_owner_goes_on_behind_the_head,
    without_a_seize_nothing_is_changed,
    an_old_tenure_of_another_writer_is_fenced,
    the_term_alone_is_not_a_tenure,
    writers_differ_in_every_bit,
    a_term_that_is_to_come_is_fenced,
    an_append_that_races_a_seize_is_before_it_or_not_at_all,
];

/// A seize tells the writer that asked for it.
fn a_seize_tells_its_tenure(bench: &mut dyn Bench) {
    let shard = bench.fresh_shard();
    let told = Hand::new(bench, shard, BELA).seize();
    assert_eq!(told.tenure.writer, BELA, "the tenure is that of the writer who seized");
    assert_eq!((told.head, told.first), (Seq(0), Seq(1)), "the log is empty");
}

/// The first term of a log is at least 1.
fn a_term_is_never_0(bench: &mut dyn Bench) {
    let (_, _, tenure) = seized(bench);
    assert!(tenure.term > Term(0), "a term is above all terms before");
}

/// Each term is above the one before.
fn each_seize_raises_the_term(bench: &mut dyn Bench) {
    let (_, mut anna, mut last) = seized(bench);
    for _ in 0..5 {
        let next = anna.seize().tenure;
        assert!(next.term > last.term, "{next:?} comes after {last:?}");
        last = next;
    }
}

/// A term is at least the one that was asked for.
fn a_seize_begins_at_least_where_asked(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let wish = Term(tenure.term.0 + 1_000);
    let told = anna.seize_at_least(wish);
    assert!(told.tenure.term >= wish, "{told:?} is below {wish:?}");
    anna.fill(told.tenure, 1..=2);
}

/// A wish below the current term still begins a higher one.
fn a_lower_wish_does_not_lower_the_term(bench: &mut dyn Bench) {
    let (_, mut anna, _) = seized(bench);
    let high = anna.seize_at_least(Term(500)).tenure;
    for wish in [0, 1, 499, 500] {
        let told = anna.seize_at_least(Term(wish)).tenure;
        assert!(told.term > high.term, "{told:?} comes after {high:?}");
    }
}

/// Terms beyond the whole numbers of a float, and close to the end of 63 bits, work as others.
fn huge_terms_are_kept(bench: &mut dyn Bench) {
    let (_, mut anna, _) = seized(bench);
    let near_the_end = u64::MAX / 2 - 1_000;
    for (seq, wish) in (1..).zip([1 << 32, (1 << 53) + 1, near_the_end]) {
        let told = anna.seize_at_least(Term(wish)).tenure;
        assert!(told.term >= Term(wish), "{told:?} is below {wish}");
        anna.fill(told, seq..=seq);
        let close = Tenure { term: Term(told.term.0 - 1), ..told };
        assert_eq!(anna.append(close, seq + 1, b"x"), Appended::Fenced, "one term off");
    }
    let last = anna.seize().tenure;
    assert!(last.term > Term(near_the_end), "{last:?} comes after {near_the_end}");
    anna.assert_filled(1..=3);
}

/// Of two writers, only the one that seized last appends.
fn two_writers_seize_in_turn(bench: &mut dyn Bench) {
    let (shard, mut anna, first) = seized(bench);
    let mut bela = Hand::new(bench, shard, BELA);
    anna.fill(first, 1..=1);
    let second = bela.seize();
    assert!(second.tenure.term > first.term, "terms rise over writers");
    assert_eq!(anna.append(first, 2, b"x"), Appended::Fenced, "a tenure that has ended");
    bela.fill(second.tenure, 2..=2);
    let third = anna.seize();
    assert_eq!(third.head, Seq(2), "the head with the entry of the other writer");
    assert_eq!(bela.append(second.tenure, 3, b"x"), Appended::Fenced, "a tenure that has ended");
    anna.fill(third.tenure, 3..=3);
    bela.assert_filled(1..=3);
}

/// A second seize of the same writer, also by another ledger, ends the first tenure.
fn the_same_writer_ends_its_own_tenure(bench: &mut dyn Bench) {
    let (shard, mut anna, first) = seized(bench);
    anna.fill(first, 1..=1);
    let second = anna.seize().tenure;
    assert_eq!(anna.append(first, 2, b"x"), Appended::Fenced, "an old tenure of the same writer");
    anna.fill(second, 2..=2);
    let mut again = Hand::new(bench, shard, ANNA);
    let third = again.seize();
    assert_eq!(third.head, Seq(2), "the head");
    assert_eq!(anna.append(second, 3, b"x"), Appended::Fenced, "another ledger has seized");
    again.fill(third.tenure, 3..=3);
    anna.assert_filled(1..=3);
}

/// A seize changes no entry, and tells the last and the first one.
fn a_seize_keeps_the_entries_and_tells_the_head(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=5);
    let mut bela = Hand::new(bench, shard, BELA);
    let told = bela.seize();
    assert_eq!((told.head, told.first), (Seq(5), Seq(1)), "the log of five entries");
    bela.assert_filled(1..=5);
}

/// A new owner appends behind the last entry, and nowhere else.
fn a_new_owner_goes_on_behind_the_head(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=3);
    drop(anna);
    let mut bela = Hand::new(bench, shard, BELA);
    let tenure = bela.seize().tenure;
    for wrong in [1, 3, 5] {
        assert_eq!(bela.append(tenure, wrong, b"x"), Appended::Fenced, "entry {wrong} after 3");
    }
    bela.fill(tenure, 4..=6);
    bela.assert_filled(1..=6);
}

/// Before the first seize, no tenure changes anything.
fn without_a_seize_nothing_is_changed(bench: &mut dyn Bench) {
    let shard = bench.fresh_shard();
    let mut anna = Hand::new(bench, shard, ANNA);
    let zero = Tenure { term: Term(0), writer: ANNA };
    for tenure in [Tenure::default(), zero, Tenure { term: Term(1), writer: ANNA }] {
        assert_eq!(anna.append(tenure, 1, b"x"), Appended::Fenced, "an append as {tenure:?}");
        assert_eq!(anna.resolve(tenure, 1), Resolved::Fenced, "a resolve as {tenure:?}");
        assert_eq!(anna.trim(tenure, 1), Trimmed::Fenced, "a trim as {tenure:?}");
    }
    assert_eq!(anna.seize().head, Seq(0), "nothing was added");
}

/// An old tenure changes nothing once another writer has seized the log.
fn an_old_tenure_of_another_writer_is_fenced(bench: &mut dyn Bench) {
    let (shard, mut anna, old) = seized(bench);
    let mut bela = Hand::new(bench, shard, BELA);
    let new = bela.seize().tenure;
    assert_eq!(anna.append(old, 1, b"x"), Appended::Fenced, "by the old owner");
    bela.fill(new, 1..=1);
    assert_eq!(anna.append(old, 2, b"x"), Appended::Fenced, "after an entry of the new owner");
    bela.assert_filled(1..=1);
}

/// A tenure is a term and a writer. With only one of them right, nothing is added.
fn the_term_alone_is_not_a_tenure(bench: &mut dyn Bench) {
    let (shard, mut anna, tenure) = seized(bench);
    anna.fill(tenure, 1..=1);
    let mut bela = Hand::new(bench, shard, BELA);
    let wrong = Tenure { writer: BELA, ..tenure };
    assert_eq!(bela.append(wrong, 2, b"x"), Appended::Fenced, "the term of another writer");
    assert_eq!(bela.resolve(wrong, 1), Resolved::Fenced, "the term of another writer");
    assert_eq!(bela.trim(wrong, 2), Trimmed::Fenced, "the term of another writer");
    anna.fill(tenure, 2..=2);
    anna.assert_filled(1..=2);
}

/// Two writers that differ in one bit are two writers, whichever bit it is.
fn writers_differ_in_every_bit(bench: &mut dyn Bench) {
    let shard = bench.fresh_shard();
    for writer in [Writer(0), Writer(u128::MAX), Writer(1 << 127), Writer(1 << 63)] {
        let mut owner = Hand::new(bench, shard, writer);
        let told = owner.seize();
        assert_eq!(told.tenure.writer, writer, "all bits of the writer");
        for bit in [0, 31, 52, 53, 63, 64, 127] {
            let other = Tenure { writer: Writer(writer.0 ^ (1 << bit)), ..told.tenure };
            let appended = owner.append(other, told.head.0 + 1, b"x");
            assert_eq!(appended, Appended::Fenced, "bit {bit} of {writer:?} is another");
        }
        owner.fill(told.tenure, told.head.0 + 1..=told.head.0 + 1);
    }
}

/// A term above the current one is not a tenure.
fn a_term_that_is_to_come_is_fenced(bench: &mut dyn Bench) {
    let (_, mut anna, tenure) = seized(bench);
    let next = Tenure { term: Term(tenure.term.0 + 1), ..tenure };
    assert_eq!(anna.append(next, 1, b"x"), Appended::Fenced, "a term that never began");
    anna.fill(tenure, 1..=1);
}

/// An append that is under way while another writer seizes shows in the answer to the seize, or is
/// refused.
fn an_append_that_races_a_seize_is_before_it_or_not_at_all(bench: &mut dyn Bench) {
    use pinpriq_store::ledger::interface::{Answer, Call};
    let (shard, mut anna, tenure) = seized(bench);
    let bytes = [7_u8; 100].into();
    anna.ledger.start(Call::Append { tenure, seq: Seq(1), bytes });
    let mut bela = Hand::new(bench, shard, BELA);
    let told = bela.seize();
    let is_in = match anna.answer() {
        Answer::Appended(Appended::Done) => true,
        Answer::Appended(Appended::Fenced) => false,
        other => panic!("the answer to an append is {other:?}"),
    };
    assert_eq!(told.head, Seq(u64::from(is_in)), "the seize knows what was added before it");
    assert_eq!(bela.read_all(1).len(), usize::from(is_in), "and nothing came after it");
}
