//! Reads entries in their order, and puts the runs of large batches together.
//!
//! The tenure that begins a run may end before it is complete. Then the next tenure's first entry
//! makes it void. And entries are removed oldest first, so a log can begin in the middle of a run
//! in which nothing counts.

use crate::StoreError;
use pinpriq_proto::carried::CARRIED_BYTES_MAX;

use crate::ledger::accounts::Unit;
use crate::ledger::entry::{BODY_BYTES_MAX, EntryHeader};
use crate::ledger::interface::{Seq, Term};

/// What entries are put together to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Whole {
    /// The first entry, the number of entries and their bytes. Nothing is said about what counts.
    pub(crate) unit: Unit,
    pub(crate) term: Term,
    /// The bodies of the entries, or none if they are void.
    pub(crate) body: Option<Vec<u8>>,
}

/// See the start of this file.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The entry that comes next, once there was one.
    next: Option<Seq>,
    /// The checksum of the last entry, or 0.
    checksum: u64,
    term: Term,
    /// Whether that tenure has ended in order.
    has_ended: bool,
    /// Whether there was an entry that continues nothing.
    is_begun: bool,
    /// The run that is not complete.
    run: Option<Whole>,
    /// What the last entries leave to the next tenure, if nothing or the end follows.
    note: Vec<u8>,
}

/// The longest note.
const NOTE_BYTES_MAX: usize = CARRIED_BYTES_MAX + BODY_BYTES_MAX;

impl Reader {
    /// Takes the next entry. Returns what is complete now, oldest first.
    pub(crate) fn take(&mut self, seq: Seq, bytes: &[u8]) -> Result<Vec<Whole>, StoreError> {
        let (header, checksum, body) =
            EntryHeader::open(bytes).map_err(|bad| damage(seq, bad.to_string()))?;
        self.check(seq, &header)?;
        let is_new_tenure = header.term > self.term;
        if is_new_tenure || !(header.notes || header.ends) {
            self.note.clear();
        }
        (self.next, self.checksum, self.term) = (Some(Seq(seq.0 + 1)), checksum, header.term);
        self.has_ended = header.ends;
        let unit = Unit { first: seq, entries: 1, bytes: bytes.len() as u64, live: 0 };
        let alone = Whole { unit, term: header.term, body: Some(body.to_vec()) };
        if header.continues {
            return self.continue_run(alone, header.goes_on, is_new_tenure);
        }
        self.is_begun = true;
        let mut complete = Vec::new();
        if let Some(run) = self.run.take() {
            if !is_new_tenure {
                return Err(damage(seq, "the commit before it is not complete".to_owned()));
            }
            complete.push(run.void());
        }
        if header.notes {
            self.add_to_note(seq, body)?;
            complete.push(alone.void());
        } else if header.goes_on {
            self.run = Some(alone);
        } else {
            complete.push(alone);
        }
        Ok(complete)
    }

    /// Adds an entry to the note.
    fn add_to_note(&mut self, seq: Seq, piece: &[u8]) -> Result<(), StoreError> {
        self.note.extend_from_slice(piece);
        if self.note.len() > NOTE_BYTES_MAX {
            return Err(damage(seq, "its note is longer than any may be".to_owned()));
        }
        Ok(())
    }

    /// Adds an entry to the run.
    fn continue_run(
        &mut self,
        entry: Whole,
        goes_on: bool,
        is_new_tenure: bool,
    ) -> Result<Vec<Whole>, StoreError> {
        let seq = entry.unit.first;
        let Some(run) = &mut self.run else {
            // Its beginning was removed, so nothing in it counts.
            if self.is_begun {
                return Err(damage(seq, "it continues a commit that does not go on".to_owned()));
            }
            return Ok(vec![entry.void()]);
        };
        if is_new_tenure {
            return Err(damage(seq, "it continues a commit of another tenure".to_owned()));
        }
        run.unit.entries += 1;
        run.unit.bytes += entry.unit.bytes;
        if let (Some(body), Some(more)) = (&mut run.body, entry.body) {
            body.extend(more);
        }
        Ok(if goes_on { Vec::new() } else { self.run.take().into_iter().collect() })
    }

    /// Ends reading: a run that is not complete is void. Returns it, if there is one.
    pub(crate) fn finish(&mut self) -> Option<Whole> {
        self.run.take().map(Whole::void)
    }

    /// The checksum of the last entry, or 0 if there was none.
    pub(crate) const fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The term of the last entry, or 0 if there was none.
    pub(crate) const fn term(&self) -> Term {
        self.term
    }

    /// Whether the tenure of the last entry has ended in order with it.
    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What the tenure of the last entry has left to the next one, if it has ended in order.
    pub(crate) fn note(&self) -> Option<&[u8]> {
        Some(&self.note[..]).filter(|note| self.has_ended && !note.is_empty())
    }

    fn check(&self, seq: Seq, header: &EntryHeader) -> Result<(), StoreError> {
        if header.seq != seq {
            return Err(damage(seq, format!("it says that it is entry {}", header.seq.0)));
        }
        if header.term < self.term {
            let (own, before) = (header.term.0, self.term.0);
            return Err(damage(seq, format!("it is of term {own}, and comes after term {before}")));
        }
        if self.has_ended && header.term == self.term {
            return Err(damage(seq, "its tenure has ended with the entry before it".to_owned()));
        }
        let is_last = header.notes || header.ends;
        if !self.note.is_empty() && !self.has_ended && header.term == self.term && !is_last {
            return Err(damage(seq, "only the end comes after a note".to_owned()));
        }
        match self.next {
            Some(next) if next != seq => {
                Err(damage(seq, format!("entry {} should come here", next.0)))
            }
            Some(_) if header.previous != self.checksum => {
                Err(damage(seq, "it does not follow the entry before it".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl Whole {
    fn void(self) -> Self {
        Self { body: None, ..self }
    }
}

/// Reports an entry that cannot be what it should be.
pub(crate) fn damage(seq: Seq, what: String) -> StoreError {
    StoreError::BadEntry { seq: seq.0, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Log {
        entries: Vec<Vec<u8>>,
        previous: u64,
    }

    impl Log {
        fn add(&mut self, term: u64, flags: &str) {
            let seq = Seq(self.entries.len() as u64 + 1);
            let (goes_on, continues) = (flags.contains('>'), flags.contains('<'));
            let previous = self.previous;
            let (term, ends, notes) = (Term(term), flags.contains('.'), flags.contains('+'));
            let header = EntryHeader { term, seq, previous, goes_on, continues, ends, notes };
            let body = [u8::try_from(seq.0).unwrap()];
            let (bytes, checksum) = header.seal(&body);
            self.previous = checksum;
            self.entries.push(bytes);
        }
    }

    /// The first entry of a whole, and its body.
    type Found = (u64, Option<Vec<u8>>);

    /// Returns what a log is put together to, from the entry behind `skipped` on.
    fn read(words: &str, skipped: usize) -> Result<Vec<Found>, String> {
        read_with(&mut Reader::default(), words, skipped)
    }

    fn read_with(reader: &mut Reader, words: &str, skipped: usize) -> Result<Vec<Found>, String> {
        let mut log = Log { entries: Vec::new(), previous: 0 };
        for word in words.split(' ') {
            log.add(word[..1].parse().unwrap(), &word[1..]);
        }
        let mut found = Vec::new();
        for (at, bytes) in log.entries.iter().enumerate().skip(skipped) {
            let complete = reader.take(Seq(at as u64 + 1), bytes).map_err(|it| it.to_string())?;
            found.extend(complete);
        }
        found.extend(reader.finish());
        let entries = found.iter().map(|whole| whole.unit.entries).sum::<u64>();
        assert_eq!(entries, (log.entries.len() - skipped) as u64, "each entry is counted");
        Ok(found.into_iter().map(|whole| (whole.unit.first.0, whole.body)).collect())
    }

    #[test]
    fn runs_are_put_together() {
        let whole = |first, body: &[u8]| (first, Some(body.to_vec()));
        assert_eq!(
            read("1 1> 1<> 1< 2", 0).unwrap(),
            [whole(1, &[1]), whole(2, &[2, 3, 4]), whole(5, &[5]),]
        );
    }

    #[test]
    fn a_run_that_its_tenure_left_incomplete_is_void() {
        assert_eq!(read("1> 1<> 2", 0).unwrap(), [(1, None), (3, Some(vec![3]))]);
        assert_eq!(read("1> 1<>", 0).unwrap(), [(1, None)]);
        assert_eq!(read("1> 2> 2<", 0).unwrap(), [(1, None), (2, Some(vec![2, 3]))]);
    }

    #[test]
    fn a_log_may_begin_in_the_middle_of_a_run() {
        let found = read("1> 1<> 1< 1", 1).unwrap();
        assert_eq!(found, [(2, None), (3, None), (4, Some(vec![4]))]);
    }

    #[test]
    fn a_tenure_may_end_in_order() {
        let whole = |first| (first, Some(vec![u8::try_from(first).unwrap()]));
        assert_eq!(read("1 1. 2 2. 3.", 0).unwrap(), [1, 2, 3, 4, 5].map(whole));
    }

    #[test]
    fn a_note_counts_right_before_the_end_that_is_last() {
        let note = |words: &str| {
            let mut reader = Reader::default();
            read_with(&mut reader, words, 0).unwrap();
            reader.note().map(<[u8]>::to_vec)
        };
        assert_eq!(note("1 1+ 1+ 1."), Some(vec![2, 3]));
        assert_eq!(note("1 1."), None);
        for words in ["1 1+", "1 1+ 2", "1 1+ 1. 2", "1 1+ 1. 2 2.", "1 1+ 2."] {
            assert_eq!(note(words), None, "{words}");
        }
        assert_eq!(note("1 1+ 1. 2 2+ 2."), Some(vec![5]));
        assert_eq!(read("1 1+ 1.", 0).unwrap()[1], (2, None), "it has no batches");
    }

    #[test]
    fn what_makes_no_sense_is_damage() {
        for words in ["1 1<", "1> 1", "1> 2<", "2 1", "1. 1", "1. 1.", "1. 1+", "1> 1+"] {
            let error = read(words, 0).unwrap_err();
            assert!(error.contains("entry 2"), "{words}: {error}");
        }
        let error = read("1 1+ 1", 0).unwrap_err();
        assert!(error.contains("only the end"), "{error}");
    }

    #[test]
    fn an_entry_that_was_replaced_is_noticed() {
        let (mut log, mut other) =
            (Log { entries: Vec::new(), previous: 0 }, Log { entries: Vec::new(), previous: 9 });
        for _ in 0..3 {
            log.add(1, "");
            other.add(1, "");
        }
        let mut reader = Reader::default();
        reader.take(Seq(1), &log.entries[0]).unwrap();
        let error = reader.take(Seq(2), &other.entries[1]).unwrap_err();
        assert!(error.to_string().contains("does not follow"), "{error}");
        let error = reader.take(Seq(2), &log.entries[2]).unwrap_err();
        assert!(error.to_string().contains("says that it is entry 3"), "{error}");
    }
}
