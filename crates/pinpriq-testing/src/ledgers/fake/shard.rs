//! One log of the engine in memory: the conditions of each change, and what the change does.
//!
//! It knows nothing about time, answers or trouble.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinpriq_store::ledger::interface::{Resolved, Seized, Seq, Tenure, Term, Writer};

/// What each entry takes in addition to its bytes, for [`Status`](pinpriq_store::ledger::Status).
pub const ENTRY_OVERHEAD: u64 = 64;

/// What has changed in a log, in order. Entries stay here when they are trimmed or rolled back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happened {
    /// A tenure began.
    Seized {
        /// The tenure.
        tenure: Tenure,
        /// The last entry at that time.
        head: Seq,
    },
    /// An entry was added.
    Added {
        /// The tenure that has appended it.
        tenure: Tenure,
        /// Its number.
        seq: Seq,
        /// The entry.
        bytes: Arc<[u8]>,
    },
    /// Entries were removed from the beginning.
    Trimmed {
        /// The first entry that is kept.
        first: Seq,
    },
    /// The engine has lost its newest entries.
    RolledBack {
        /// The last entry that is left.
        head: Seq,
        /// The tenure that counts again, if there ever was one.
        fence: Option<Tenure>,
    },
}

/// Who may append, and which of his appends. Both go back when the engine loses entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fence {
    tenure: Tenure,
    /// Rises with each resolve. An append must have been started after the last one.
    bar: u64,
}

#[derive(Clone)]
struct Entry {
    bytes: Arc<[u8]>,
    fence: Fence,
}

impl Entry {
    fn weight(&self) -> u64 {
        ENTRY_OVERHEAD + self.bytes.len() as u64
    }
}

/// The log of one shard.
pub(super) struct Shard {
    fence: Option<Fence>,
    head: u64,
    first: u64,
    entries: BTreeMap<u64, Entry>,
    /// The entries that were trimmed, and the head at that time.
    trimmed: BTreeMap<u64, (u64, Entry)>,
    /// The bytes that all entries take.
    pub(super) weight: u64,
    pub(super) history: Vec<Happened>,
}

impl Shard {
    pub(super) const fn new() -> Self {
        Self {
            fence: None,
            head: 0,
            first: 1,
            entries: BTreeMap::new(),
            trimmed: BTreeMap::new(),
            weight: 0,
            history: Vec::new(),
        }
    }

    pub(super) fn tenure(&self) -> Option<Tenure> {
        self.fence.map(|fence| fence.tenure)
    }

    pub(super) const fn head(&self) -> Seq {
        Seq(self.head)
    }

    pub(super) fn log(&self) -> Vec<(Seq, Vec<u8>)> {
        self.entries.iter().map(|(seq, entry)| (Seq(*seq), entry.bytes.to_vec())).collect()
    }

    /// Begins a tenure, unless no term is left.
    pub(super) fn seize(&mut self, at_least: Term, writer: Writer) -> Option<Seized> {
        let before = self.tenure().map_or(0, |tenure| tenure.term.0);
        let term = Term(before.checked_add(1)?.max(at_least.0));
        let tenure = Tenure { term, writer };
        self.fence = Some(Fence { tenure, bar: 0 });
        self.history.push(Happened::Seized { tenure, head: Seq(self.head) });
        Some(Seized { tenure, head: Seq(self.head), first: Seq(self.first) })
    }

    /// Whether an append may be made now.
    pub(super) fn fits(&self, tenure: Tenure, bar: u64, seq: Seq) -> bool {
        let follows = seq.0.checked_sub(1) == Some(self.head);
        follows && self.fence == Some(Fence { tenure, bar })
    }

    /// Adds an entry. The caller has asked [`Shard::fits`] in the same step.
    pub(super) fn append(&mut self, tenure: Tenure, bar: u64, seq: Seq, bytes: &Arc<[u8]>) {
        let entry = Entry { bytes: Arc::clone(bytes), fence: Fence { tenure, bar } };
        self.weight += entry.weight();
        self.entries.insert(seq.0, entry);
        self.head = seq.0;
        self.history.push(Happened::Added { tenure, seq, bytes: Arc::clone(bytes) });
    }

    /// Raises the bar to at least this one, so that appends from before fail.
    pub(super) fn resolve(&mut self, tenure: Tenure, bar: u64, seq: Seq) -> Resolved {
        match &mut self.fence {
            Some(fence) if fence.tenure == tenure => fence.bar = fence.bar.max(bar),
            _ => return Resolved::Fenced,
        }
        if seq.0 <= self.head { Resolved::Committed } else { Resolved::Absent }
    }

    /// How many entries are below `before`.
    pub(super) fn count_before(&self, before: Seq) -> usize {
        self.entries.range(..before.0).count()
    }

    /// Removes this many entries from the beginning.
    pub(super) fn trim(&mut self, count: usize) {
        for _ in 0..count {
            let Some((seq, entry)) = self.entries.pop_first() else { break };
            self.weight -= entry.weight();
            self.trimmed.insert(seq, (self.head, entry));
            self.first = seq + 1;
        }
        if count > 0 {
            self.history.push(Happened::Trimmed { first: Seq(self.first) });
        }
    }

    /// Entries from `from` on, or none if it is not there.
    pub(super) fn read(&self, from: Seq, bytes: usize) -> Vec<(Seq, Vec<u8>)> {
        let mut told = Vec::new();
        if from.0 < self.first {
            return told;
        }
        let mut sum = 0;
        for (seq, entry) in self.entries.range(from.0..) {
            sum += entry.bytes.len();
            told.push((Seq(*seq), entry.bytes.to_vec()));
            if sum >= bytes {
                break;
            }
        }
        told
    }

    /// Forgets everything.
    pub(super) fn wipe(&mut self) {
        let history = std::mem::take(&mut self.history);
        *self = Self { history, ..Self::new() };
        self.history.push(Happened::RolledBack { head: Seq(0), fence: None });
    }

    pub(super) const fn first(&self) -> Seq {
        Seq(self.first)
    }

    /// Forgets the newest entries, and everything that happened after the last one that is left.
    pub(super) fn roll_back(&mut self, entries: usize) {
        for _ in 0..entries {
            let Some((seq, entry)) = self.entries.pop_last() else { break };
            self.weight -= entry.weight();
            self.head = seq - 1;
        }
        // What was trimmed after a lost entry is there again: the lost one may hold a copy of it.
        while let Some((seq, (head, entry))) = self.trimmed.pop_last() {
            if head <= self.head {
                self.trimmed.insert(seq, (head, entry));
                break;
            }
            self.weight += entry.weight();
            self.first = seq;
            self.entries.insert(seq, entry);
        }
        let last = self.entries.last_key_value().map(|(_, entry)| entry.fence);
        let trimmed = self.trimmed.last_key_value().map(|(_, (_, entry))| entry.fence);
        self.fence = last.or(trimmed);
        let fence = self.tenure();
        self.history.push(Happened::RolledBack { head: Seq(self.head), fence });
    }
}
