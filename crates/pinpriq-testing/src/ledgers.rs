//! One suite of cases for every engine that keeps fenced logs, and [such an engine](FakeEngine) in
//! memory, which gets into trouble on request.
//!
//! Each case takes fresh shards from a [`Bench`], does one thing, and panics with a message when
//! the engine does not keep a promise of [`Ledger`]. The cases run one after the other, on an
//! engine that works: they expect that every call is answered, and that no other program writes to
//! it. What an engine does in trouble is not tested here.

mod entries;
mod fake;
mod reading;
mod resolving;
mod tenures;
mod trimming;
mod whole;

use std::sync::Arc;

pub use fake::{ENTRY_OVERHEAD, FOREIGN, FakeEngine, FakeKnobs, FakeLedger, Happened};
use pinpriq_store::ledger::interface::{
    Answer, Appended, Call, Ledger, Resolved, Seized, Seq, Status, Tenure, Term, Trimmed, Writer,
};

/// Where the cases get their logs from.
pub trait Bench {
    /// Opens the log of a shard for a writer.
    fn ledger(&mut self, shard: u16, writer: Writer) -> Box<dyn Ledger>;

    /// A shard whose log was never seized. The suite takes about sixty.
    fn fresh_shard(&mut self) -> u16;
}

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is checked, as the name of its function.
    pub name: &'static str,
    /// Checks it.
    ///
    /// # Panics
    /// If the engine does not keep a promise.
    pub run: fn(&mut dyn Bench),
}

/// All cases, in the order of [`run_all`].
#[must_use]
pub fn cases() -> Vec<Case> {
    let groups = [
        tenures::CASES,
        entries::CASES,
        resolving::CASES,
        reading::CASES,
        trimming::CASES,
        whole::CASES,
    ];
    groups.concat()
}

/// Runs all cases, one after the other.
///
/// # Panics
/// If the engine does not keep a promise.
pub fn run_all(bench: &mut dyn Bench) {
    for case in cases() {
        (case.run)(bench);
    }
}

const ANNA: Writer = Writer(1);
const BELA: Writer = Writer(2);

/// A ledger whose calls are made one after the other.
struct Hand {
    ledger: Box<dyn Ledger>,
}

#[expect(clippy::expect_used, reason = "a suite ends at the first failure, with its reason")]
impl Hand {
    fn new(bench: &mut dyn Bench, shard: u16, writer: Writer) -> Self {
        Self { ledger: bench.ledger(shard, writer) }
    }

    /// Waits for the answer to a call that is under way.
    fn answer(&mut self) -> Answer {
        self.ledger.wait();
        self.ledger.poll().expect("after a wait there is an answer")
    }

    fn ask(&mut self, call: Call) -> Answer {
        self.ledger.start(call);
        self.answer()
    }

    fn seize_at_least(&mut self, at_least: Term) -> Seized {
        match self.ask(Call::Seize { at_least }) {
            Answer::Seized(seized) => seized.expect("the engine answers"),
            other => panic!("the answer to a seize is {other:?}"),
        }
    }

    fn seize(&mut self) -> Seized {
        self.seize_at_least(Term(0))
    }

    fn append(&mut self, tenure: Tenure, seq: u64, bytes: &[u8]) -> Appended {
        let bytes = Arc::from(bytes);
        match self.ask(Call::Append { tenure, seq: Seq(seq), bytes }) {
            Answer::Appended(appended) => appended,
            other => panic!("the answer to an append is {other:?}"),
        }
    }

    /// Appends entries of one byte with the numbers of this range.
    fn fill(&mut self, tenure: Tenure, seqs: std::ops::RangeInclusive<u64>) {
        for seq in seqs {
            let byte = u8::try_from(seq % 251).unwrap_or(0);
            let appended = self.append(tenure, seq, &[byte]);
            assert_eq!(appended, Appended::Done, "entry {seq}, which follows the last one");
        }
    }

    fn resolve(&mut self, tenure: Tenure, seq: u64) -> Resolved {
        match self.ask(Call::Resolve { tenure, seq: Seq(seq) }) {
            Answer::Resolved(resolved) => resolved,
            other => panic!("the answer to a resolve is {other:?}"),
        }
    }

    fn trim(&mut self, tenure: Tenure, before: u64) -> Trimmed {
        match self.ask(Call::Trim { tenure, before: Seq(before) }) {
            Answer::Trimmed(trimmed) => trimmed,
            other => panic!("the answer to a trim is {other:?}"),
        }
    }

    fn status(&mut self) -> Status {
        match self.ask(Call::Status) {
            Answer::Status(status) => status.expect("the engine answers"),
            other => panic!("the answer to a status is {other:?}"),
        }
    }

    /// Reads once, and checks that the entries follow each other.
    fn read(&mut self, from: u64, bytes: usize) -> Vec<(Seq, Vec<u8>)> {
        let told = match self.ask(Call::Read { from: Seq(from), bytes }) {
            Answer::Read(told) => told.expect("the engine answers"),
            other => panic!("the answer to a read is {other:?}"),
        };
        for (expected, (seq, _)) in (from..).zip(&told) {
            assert_eq!(seq.0, expected, "entries come without gaps from {from} on");
        }
        told
    }

    /// Reads all entries from `from` on.
    fn read_all(&mut self, from: u64) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let told = self.read(from + all.len() as u64, 1 << 16);
            if told.is_empty() {
                return all;
            }
            all.extend(told.into_iter().map(|(_, bytes)| bytes));
        }
    }

    /// The numbers of the entries that [`Hand::fill`] has written, from `from` on.
    fn assert_filled(&mut self, seqs: std::ops::RangeInclusive<u64>) {
        let from = *seqs.start();
        let expected = seqs.map(|seq| vec![u8::try_from(seq % 251).unwrap_or(0)]);
        assert_eq!(self.read_all(from), expected.collect::<Vec<_>>(), "the entries from {from}");
    }
}

/// A ledger of the writer Anna for a fresh shard, which she has seized.
fn seized(bench: &mut dyn Bench) -> (u16, Hand, Tenure) {
    let shard = bench.fresh_shard();
    let mut anna = Hand::new(bench, shard, ANNA);
    let tenure = anna.seize().tenure;
    (shard, anna, tenure)
}
