//! One process's view of a log of the engine in memory.
//!
//! It checks that its caller keeps to the rules of [`Ledger`], and knows the bar of its tenure. The
//! change itself happens in the engine.

use super::FakeEngine;
use super::state::Caller;
use pinpriq_store::ledger::interface::{Answer, Appended, Call, Ledger, Resolved, Seq, Tenure};

/// How many kinds of calls there are.
const KINDS: usize = 6;

const KIND_NAMES: [&str; KINDS] = ["Seize", "Append", "Resolve", "Read", "Trim", "Status"];

/// The number of the kind of appends.
const APPEND: usize = 1;

const fn kind_of_call(call: &Call) -> usize {
    match call {
        Call::Seize { .. } => 0,
        Call::Append { .. } => APPEND,
        Call::Resolve { .. } => 2,
        Call::Read { .. } => 3,
        Call::Trim { .. } => 4,
        Call::Status => 5,
    }
}

const fn kind_of_answer(answer: &Answer) -> usize {
    match answer {
        Answer::Seized(_) => 0,
        Answer::Appended(_) => APPEND,
        Answer::Resolved(_) => 2,
        Answer::Read(_) => 3,
        Answer::Trimmed(_) => 4,
        Answer::Status(_) => 5,
    }
}

/// The bar of a tenure, which this ledger alone raises.
#[derive(Clone, Copy, Default)]
struct Bar {
    tenure: Tenure,
    /// The bar that the last answered resolve has set.
    known: u64,
    /// The highest bar that a resolve has asked for. Each asks for a higher one, so that an earlier
    /// one that comes late changes nothing.
    wanted: u64,
}

/// The log of one shard in a [`FakeEngine`].
///
/// # Panics
/// If its caller breaks a rule of [`Ledger`]: two calls of a kind are under way, or something is
/// appended while an entry of the same tenure is unknown, or while a resolve has no answer.
pub struct FakeLedger {
    engine: FakeEngine,
    caller: Caller,
    under_way: [bool; KINDS],
    bar: Bar,
    appending: (Tenure, Seq),
    resolving: (Tenure, Seq),
    /// The entry whose append was unknown, and was not resolved since.
    unknown: Option<(Tenure, Seq)>,
    /// The tenure of a resolve that has no answer, or was unknown.
    unresolved: Option<Tenure>,
}

impl FakeLedger {
    pub(super) fn new(engine: FakeEngine, caller: Caller) -> Self {
        Self {
            engine,
            caller,
            under_way: [false; KINDS],
            bar: Bar::default(),
            appending: Default::default(),
            resolving: Default::default(),
            unknown: None,
            unresolved: None,
        }
    }

    /// The bar that a call of this tenure carries.
    fn bar_of(&mut self, tenure: Tenure) -> &mut Bar {
        if self.bar.tenure != tenure {
            self.bar = Bar { tenure, ..Bar::default() };
        }
        &mut self.bar
    }

    fn prepare(&mut self, call: &Call) -> u64 {
        match call {
            Call::Append { tenure, seq, .. } => {
                if let Some((of, unknown)) = self.unknown {
                    assert!(
                        of != *tenure,
                        "entry {} is appended while entry {} is unknown",
                        seq.0,
                        unknown.0
                    );
                }
                let is_clear = self.unresolved != Some(*tenure);
                assert!(is_clear, "entry {} is appended before a resolve is answered", seq.0);
                self.appending = (*tenure, *seq);
                self.bar_of(*tenure).known
            }
            Call::Resolve { tenure, seq } => {
                let is_alone = !self.under_way[APPEND] || self.appending.0 != *tenure;
                assert!(is_alone, "entry {} is resolved while one is appended", seq.0);
                self.resolving = (*tenure, *seq);
                self.unresolved = Some(*tenure);
                let bar = self.bar_of(*tenure);
                bar.wanted += 1;
                bar.wanted
            }
            Call::Seize { .. } | Call::Read { .. } | Call::Trim { .. } | Call::Status => 0,
        }
    }

    fn notice(&mut self, answer: &Answer) {
        self.under_way[kind_of_answer(answer)] = false;
        match answer {
            Answer::Appended(Appended::Unknown) => self.unknown = Some(self.appending),
            Answer::Resolved(resolved) if *resolved != Resolved::Unknown => {
                self.unresolved = None;
                if self.bar.tenure == self.resolving.0 {
                    self.bar.known = self.bar.wanted;
                }
                if self.unknown == Some(self.resolving) {
                    self.unknown = None;
                }
            }
            _ => {}
        }
    }
}

impl Ledger for FakeLedger {
    fn start(&mut self, call: Call) {
        let kind = kind_of_call(&call);
        assert!(!self.under_way[kind], "two calls of the kind {} are under way", KIND_NAMES[kind]);
        self.under_way[kind] = true;
        let bar = self.prepare(&call);
        self.engine.state().start(self.caller, call, bar);
    }

    fn poll(&mut self) -> Option<Answer> {
        let answer = {
            let mut state = self.engine.state();
            state.step();
            state.next_answer(self.caller.ledger)
        };
        if let Some(answer) = &answer {
            self.notice(answer);
        }
        answer
    }

    fn wait(&mut self) {
        let mut state = self.engine.state();
        while self.under_way.contains(&true) && !state.has_answer(self.caller.ledger) {
            state.step();
        }
    }

    fn target_bytes(&self) -> usize {
        self.engine.state().troubles.knobs.target_bytes
    }
}

impl Drop for FakeLedger {
    fn drop(&mut self) {
        self.engine.state().close_mailbox(self.caller.ledger);
    }
}
