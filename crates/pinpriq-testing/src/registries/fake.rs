//! A registry in memory that gets into trouble and lies on request.
//!
//! For tests and simulators: everything follows from the seed, from the order of the calls, and
//! from the time that [`FakeRegistry::set_now`] tells. [`FakeKnobs`] says how often each kind of
//! trouble strikes, and [`FakeRegistry::struck`] how often it has, so that a test can check that
//! its trouble really occurred. There is no clock, no thread and no network, and nothing outlives
//! the process.

mod records;
mod state;
mod trouble;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinpriq_cluster::{Registry, RegistryAnswer, RegistryCall, View};
use state::State;
pub use trouble::FakeKnobs;

/// A registry in memory. Clones are handles to the same registry.
#[derive(Clone)]
pub struct FakeRegistry {
    state: Arc<Mutex<State>>,
}

impl FakeRegistry {
    /// Creates the registry of a cluster of this many shards, at time 0. A session that is not
    /// renewed for this many milliseconds ends.
    #[must_use]
    pub fn new(seed: u64, shards: u16, session_ttl_ms: u64, knobs: FakeKnobs) -> Self {
        let state = State::new(seed, shards, session_ttl_ms, knobs);
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that failed while it held the lock has already reported that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the registry for a process. What a dropped one has started stays under way, and its
    /// session goes on until its time has passed.
    #[must_use]
    pub fn registry(&self) -> FakeHandle {
        let number = self.state().open();
        FakeHandle { registry: self.clone(), number }
    }

    /// Tells the time, in milliseconds. What was to happen until then happens. An earlier time than
    /// the last one changes nothing.
    pub fn set_now(&self, now_ms: u64) {
        self.state().advance(now_ms);
    }

    /// When the next thing happens to a call, if any is under way.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        self.state().next_at()
    }

    /// Changes what may go wrong from now on.
    pub fn set_knobs(&self, knobs: FakeKnobs) {
        self.state().troubles.knobs = knobs;
    }

    /// Cuts a process off, or connects it again. While it is cut off, its calls are lost.
    pub fn cut(&self, handle: u64, is_cut: bool) {
        self.state().cut(handle, is_cut);
    }

    /// Starts or stops the drain of a node, at once.
    pub fn drain(&self, name: &str, drains: bool) {
        self.state().drain(name, drains);
    }

    /// Everything that is kept now, for [`FakeRegistry::roll_back`].
    #[must_use]
    pub fn save(&self) -> Saved {
        Saved(self.state().save())
    }

    /// Brings back what was kept then, as when an engine is restored from an old snapshot. Its
    /// sessions live on for their time to live. Without a snapshot everything is lost.
    pub fn roll_back(&self, saved: Option<&Saved>) {
        self.state().roll_back(saved.map(|it| &it.0));
    }

    /// What is true now.
    #[must_use]
    pub fn truth(&self) -> View {
        self.state().truth()
    }

    /// How often each kind of trouble has struck, with a name for people. A kind that never struck
    /// has 0.
    #[must_use]
    pub fn struck(&self) -> Vec<(&'static str, u64)> {
        self.state().troubles.struck()
    }
}

/// What a [`FakeRegistry`] has kept at some time.
#[derive(Clone)]
pub struct Saved(records::Records);

/// A [`FakeRegistry`] as one process sees it. Its calls are carried out one after the other.
///
/// # Panics
/// If its caller writes a record for another instance than its own.
pub struct FakeHandle {
    registry: FakeRegistry,
    number: u64,
}

impl FakeHandle {
    /// What [`FakeRegistry::cut`] knows it by.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl Registry for FakeHandle {
    fn start(&mut self, call: RegistryCall) {
        self.registry.state().start(self.number, call);
    }

    fn poll(&mut self) -> Option<RegistryAnswer> {
        self.registry.state().next_answer(self.number)
    }
}

impl Drop for FakeHandle {
    fn drop(&mut self) {
        self.registry.state().close(self.number);
    }
}
