//! Logs that are not what was written: a load refuses them, or finds what was there.

use std::collections::VecDeque;

use pinpriq_proto::change::Change;
use pinpriq_store::ledger::entry::EntryHeader;
use pinpriq_store::ledger::{
    Answer, Appended, Call, Ledger, LedgerOptions, LedgerStore, Resolved, Seized, Seq, Status,
    Tenure, Term, Trimmed, Writer,
};
use pinpriq_store::{Fold, Store, StoreError, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{Caller, sample_publication, sample_queue, sample_task};

const SHARD: u16 = 1;

/// A log with these entries. It accepts every append, and keeps none.
struct Given {
    entries: Vec<(Seq, Vec<u8>)>,
    head: Seq,
    answers: VecDeque<Answer>,
}

impl Given {
    fn new(entries: Vec<(Seq, Vec<u8>)>) -> Self {
        let head = entries.last().map_or(Seq(0), |(seq, _)| *seq);
        Self { entries, head, answers: VecDeque::new() }
    }
}

impl Ledger for Given {
    fn start(&mut self, call: Call) {
        let tenure = Tenure { term: Term(99), writer: Writer(9) };
        let first = self.entries.first().map_or(Seq(self.head.0 + 1), |(seq, _)| *seq);
        self.answers.push_back(match call {
            Call::Seize { .. } => Answer::Seized(Ok(Seized { tenure, head: self.head, first })),
            Call::Append { .. } => Answer::Appended(Appended::Done),
            Call::Resolve { .. } => Answer::Resolved(Resolved::Absent),
            Call::Read { from, .. } => {
                let kept = self.entries.iter().filter(|(seq, _)| *seq >= from);
                Answer::Read(Ok(kept.cloned().collect()))
            }
            Call::Trim { .. } => Answer::Trimmed(Trimmed::Done),
            Call::Status => Answer::Status(Ok(Status { bytes_used: 0, bytes_max: 1 << 30 })),
        });
    }

    fn poll(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    fn wait(&mut self) {}

    fn target_bytes(&self) -> usize {
        1_000
    }
}

fn load(entries: Vec<(Seq, Vec<u8>)>) -> Result<Fold, StoreError> {
    let store = LedgerStore::new(Box::new(Given::new(entries)), LedgerOptions::default());
    let caller = Caller::start(Box::new(store) as Box<dyn Store>)?;
    Ok(caller.fold.without_places())
}

/// A log of several tenures, with a run of entries in it, and what it holds.
fn sample() -> (Vec<(Seq, Vec<u8>)>, Fold) {
    let engine = FakeEngine::new(1, FakeKnobs { target_bytes: 500, ..FakeKnobs::PERFECT });
    let mut fold = Fold::new();
    for writer in 1..=3 {
        let ledger = Box::new(engine.ledger(SHARD, Writer(writer)));
        let store: Box<dyn Store> = Box::new(LedgerStore::new(ledger, LedgerOptions::default()));
        let mut caller = Caller::start(store).unwrap();
        let first = caller.header.last_number + 1;
        let batches = [
            vec![sample_task(first, "q", 40), sample_queue("q", true)],
            vec![sample_task(first + 1, "q", if writer == 2 { 2_200_000 } else { 300 })],
            vec![Change::Gone(first), sample_publication(first + 2, &[], 10)],
        ];
        for batch in batches {
            caller.append(&batch, Urgency::Soon).unwrap();
            caller.settle().unwrap();
        }
        fold = caller.fold.without_places();
    }
    (engine.log(SHARD), fold)
}

fn is_damage(error: &StoreError) -> bool {
    matches!(error, StoreError::BadEntry { .. })
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let (log, fold) = sample();
    assert_eq!(load(log).unwrap(), fold);
}

#[test]
fn a_flipped_bit_is_never_taken_for_data() {
    let (log, _) = sample();
    let mut dice = Dice::new(1);
    for (at, (seq, bytes)) in log.iter().enumerate() {
        for _ in 0..20 {
            let mut damaged = log.clone();
            let place = dice.index(bytes.len());
            damaged[at].1[place] ^= 1 << dice.below(8);
            let error = load(damaged).unwrap_err();
            assert!(is_damage(&error), "byte {place} of entry {}: {error}", seq.0);
        }
    }
}

#[test]
fn an_entry_that_is_lost_cut_or_elsewhere_is_noticed() {
    let (log, _) = sample();
    for at in 0..log.len() {
        // Without the first one a log may begin later, as after a trim.
        if at > 0 && at + 1 < log.len() {
            let mut damaged = log.clone();
            damaged.remove(at);
            assert!(is_damage(&load(damaged).unwrap_err()), "entry {} is lost", log[at].0.0);
        }
        if at + 1 < log.len() {
            let mut damaged = log.clone();
            let (one, other) = (damaged[at].1.clone(), damaged[at + 1].1.clone());
            (damaged[at].1, damaged[at + 1].1) = (other, one);
            assert!(is_damage(&load(damaged).unwrap_err()), "entry {} is elsewhere", log[at].0.0);
        }
        let mut damaged = log.clone();
        damaged[at].1.pop();
        assert!(is_damage(&load(damaged).unwrap_err()), "entry {} is cut", log[at].0.0);
    }
}

#[test]
fn any_body_with_the_right_checksum_loads_or_is_refused() {
    let mut dice = Dice::new(2);
    let mut loaded = 0;
    for round in 0..20_000 {
        let mut body = dice.bytes(usize::try_from(round % 40).unwrap());
        // A length that fits makes it a batch, whatever is in it.
        if let Some(length) = body.len().checked_sub(1)
            && dice.once_in(2)
        {
            body[0] = u8::try_from(length).unwrap();
        }
        let (goes_on, continues, ends) = (dice.once_in(8), dice.once_in(8), dice.once_in(8));
        let (term, seq, notes) = (Term(3), Seq(1), dice.once_in(8));
        let header = EntryHeader { term, seq, previous: 0, goes_on, continues, ends, notes };
        let (bytes, _) = header.seal(&body);
        match load(vec![(Seq(1), bytes)]) {
            Ok(_) => loaded += 1,
            Err(error) => assert!(is_damage(&error), "{body:?}: {error}"),
        }
    }
    assert!(loaded > 100, "only {loaded} of them were a log");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (log, _) = sample();
    let mut newer = log;
    newer[0].1[0] = 3;
    let error = load(newer).unwrap_err().to_string();
    assert!(error.contains("format 3") && error.contains("use the newer server"), "{error}");
}
