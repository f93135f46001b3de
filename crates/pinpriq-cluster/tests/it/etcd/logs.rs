//! A log whose calls are made one after the other, and which remembers what must be in it.

use std::sync::Arc;

use pinpriq_store::ledger::{
    Answer, Appended, Call, Ledger, Resolved, Seized, Seq, Tenure, Term, Trimmed, Writer,
};

use crate::etcd::cluster::Client;
use crate::remote::engines::ask;

/// How often the engine is asked what became of an entry.
const PATIENCE: u32 = 60;

/// See the start of this file.
pub(crate) struct Log {
    pub(crate) ledger: Box<dyn Ledger>,
    pub(crate) tenure: Tenure,
    pub(crate) entries: Vec<Vec<u8>>,
    /// How many appends had no answer.
    pub(crate) unknown: u32,
}

impl Log {
    /// Seizes the log of a shard, which must be empty.
    pub(crate) fn seize(client: &Client, shard: u16, writer: u128) -> Self {
        let mut ledger = client.ledger(shard, Writer(writer));
        let Seized { tenure, head, .. } = seize(&mut *ledger).unwrap();
        assert_eq!(head, Seq(0));
        Self { ledger, tenure, entries: Vec::new(), unknown: 0 }
    }

    /// Starts to append an entry that was not there before.
    pub(crate) fn start(&mut self) {
        let seq = self.entries.len() as u64 + 1;
        let entry = [&seq.to_le_bytes()[..], &[7; 500]].concat();
        self.entries.push(entry.clone());
        self.send(entry);
    }

    fn send(&mut self, entry: Vec<u8>) {
        let seq = Seq(self.entries.len() as u64);
        self.ledger.start(Call::Append { tenure: self.tenure, seq, bytes: Arc::from(entry) });
    }

    /// Waits for the answer to an append.
    pub(crate) fn appended(&mut self) -> Appended {
        self.ledger.wait();
        match self.ledger.poll() {
            Some(Answer::Appended(appended)) => appended,
            other => panic!("{other:?}"),
        }
    }

    /// Finds out what became of the last entry, and appends it again if it is absent.
    pub(crate) fn settle(&mut self, mut appended: Appended) {
        for _ in 0..PATIENCE {
            match appended {
                Appended::Done => return,
                Appended::Unknown => self.unknown += 1,
                other => panic!("entry {} is {other:?}", self.entries.len()),
            }
            match self.resolve() {
                Resolved::Committed => return,
                Resolved::Absent => {
                    self.send(self.entries.last().unwrap().clone());
                    appended = self.appended();
                }
                Resolved::Unknown => {}
                Resolved::Fenced => panic!("entry {} is fenced", self.entries.len()),
            }
        }
        panic!("the fate of entry {} stays unknown", self.entries.len());
    }

    /// Asks what became of the last entry.
    pub(crate) fn resolve(&mut self) -> Resolved {
        let seq = Seq(self.entries.len() as u64);
        match ask(&mut *self.ledger, Call::Resolve { tenure: self.tenure, seq }) {
            Answer::Resolved(resolved) => resolved,
            other => panic!("{other:?}"),
        }
    }

    /// Appends entries, whatever it takes.
    pub(crate) fn fill(&mut self, count: usize) {
        for _ in 0..count {
            self.start();
            let appended = self.appended();
            self.settle(appended);
        }
    }

    /// Appends an entry of this many bytes, which is there only if that is done.
    pub(crate) fn append(&mut self, bytes: usize) -> Appended {
        self.entries.push(vec![3; bytes]);
        self.send(vec![3; bytes]);
        let appended = self.appended();
        if appended != Appended::Done {
            self.entries.pop();
        }
        appended
    }

    pub(crate) fn trim(&mut self, before: u64) -> Trimmed {
        let call = Call::Trim { tenure: self.tenure, before: Seq(before) };
        match ask(&mut *self.ledger, call) {
            Answer::Trimmed(trimmed) => trimmed,
            other => panic!("{other:?}"),
        }
    }

    /// What was appended is there, once each and in its order, for a later reader.
    pub(crate) fn check(&self, client: &Client, shard: u16) {
        let mut ledger = client.ledger(shard, Writer(u128::MAX));
        let seized = seize(&mut *ledger).unwrap();
        assert_eq!(seized.head, Seq(self.entries.len() as u64));
        assert!(seized.tenure.term > self.tenure.term);
        assert!(read_all(&mut *ledger, 1) == self.entries, "other entries are there");
    }
}

/// Seizes a log, which a cluster in trouble may not answer at first.
pub(crate) fn seize(ledger: &mut dyn Ledger) -> Option<Seized> {
    (0..PATIENCE).find_map(|_| match ask(ledger, Call::Seize { at_least: Term(0) }) {
        Answer::Seized(seized) => seized.ok(),
        other => panic!("{other:?}"),
    })
}

pub(crate) fn read_all(ledger: &mut dyn Ledger, from: u64) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let from = Seq(from + all.len() as u64);
        match ask(ledger, Call::Read { from, bytes: 4 << 20 }) {
            Answer::Read(Ok(entries)) if entries.is_empty() => return all,
            Answer::Read(Ok(entries)) => all.extend(entries.into_iter().map(|(_, bytes)| bytes)),
            other => panic!("{other:?}"),
        }
    }
}
