//! An engine in memory that keeps fenced logs and gets into trouble on request.
//!
//! For tests and simulators: everything follows from the seed and from the order of the calls. Time
//! is steps: each [`poll`](pinpriq_store::ledger::Ledger::poll) of any of its ledgers is one, and
//! so is [`FakeEngine::step`]. [`FakeKnobs`] says how often each kind of trouble strikes, and
//! [`FakeEngine::struck`] how often it has, so that a test can check that its trouble really
//! occurred. There is no clock, no thread and no network, and nothing outlives the process.
//!
//! Each entry is added by a transaction that names a tenure, the entry before it, and a *bar*. The
//! bar rises with each [`Resolve`](pinpriq_store::ledger::Call::Resolve), so that a copy of an
//! append that is still on its way finds another bar than its own and changes nothing.

mod ledger;
mod shard;
mod state;
mod trouble;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use ledger::FakeLedger;
pub use shard::{ENTRY_OVERHEAD, Happened};
pub use state::FOREIGN;
pub use trouble::FakeKnobs;

use pinpriq_store::ledger::interface::{Seq, Tenure, Writer};
use shard::Shard;
use state::{Caller, State};

/// An engine in memory. Clones are handles to the same engine.
#[derive(Clone)]
pub struct FakeEngine {
    state: Arc<Mutex<State>>,
}

impl FakeEngine {
    /// Creates an engine with empty logs.
    #[must_use]
    pub fn new(seed: u64, knobs: FakeKnobs) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(seed, knobs))) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that failed while it held the lock has already reported that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the log of a shard for a writer. What a dropped ledger has started stays under way.
    #[must_use]
    pub fn ledger(&self, shard: u16, writer: Writer) -> FakeLedger {
        let ledger = self.state().open_mailbox();
        FakeLedger::new(self.clone(), Caller { ledger, shard, writer })
    }

    /// Changes what may go wrong with the calls that are started from now on.
    pub fn set_knobs(&self, knobs: FakeKnobs) {
        self.state().troubles.knobs = knobs;
    }

    /// Lets one step of time pass for everything that is under way.
    pub fn step(&self) {
        self.state().step();
    }

    /// Cuts a writer off, or connects it again. While it is cut off, all its calls are answered as
    /// unknown or unreachable. What it has started before and reported as unknown may still be
    /// made.
    pub fn cut(&self, writer: Writer, is_cut: bool) {
        let mut state = self.state();
        if is_cut {
            state.cut.insert(writer);
        } else {
            state.cut.remove(&writer);
        }
    }

    /// Loses the newest entries of a log, at most those that are kept, as when an engine is
    /// restored from an old snapshot. The tenure is then again that of the last entry that is left.
    pub fn roll_back(&self, shard: u16, entries: usize) {
        let mut state = self.state();
        state.shards.entry(shard).or_insert_with(Shard::new).roll_back(entries);
        state.troubles.count(trouble::ROLLED_BACK);
    }

    /// Loses all logs, as when an engine is made anew.
    pub fn wipe(&self) {
        let mut state = self.state();
        state.shards.values_mut().for_each(Shard::wipe);
        state.troubles.count(trouble::ROLLED_BACK);
    }

    /// How often each kind of trouble has struck, with a name for people. A kind that never struck
    /// has 0.
    #[must_use]
    pub fn struck(&self) -> Vec<(&'static str, u64)> {
        self.state().troubles.struck()
    }

    /// How many calls are under way, with the changes that come after their answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state().in_flight()
    }

    /// The entries that are kept, in order. It copies them all.
    #[must_use]
    pub fn log(&self, shard: u16) -> Vec<(Seq, Vec<u8>)> {
        self.state().shards.get(&shard).map(Shard::log).unwrap_or_default()
    }

    /// The tenure that may append, if there ever was one.
    #[must_use]
    pub fn tenure(&self, shard: u16) -> Option<Tenure> {
        self.state().shards.get(&shard).and_then(Shard::tenure)
    }

    /// The last entry, or 0.
    #[must_use]
    pub fn head(&self, shard: u16) -> Seq {
        self.state().shards.get(&shard).map_or(Seq(0), Shard::head)
    }

    /// The first entry that is kept, or one above the head.
    #[must_use]
    pub fn first(&self, shard: u16) -> Seq {
        self.state().shards.get(&shard).map_or(Seq(1), Shard::first)
    }

    /// Everything that ever changed in a log, in order, with all its entries. It grows for ever.
    #[must_use]
    pub fn history(&self, shard: u16) -> Vec<Happened> {
        self.state().shards.get(&shard).map(|shard| shard.history.clone()).unwrap_or_default()
    }
}
