//! Bounds what stays on disk for the archive alone, also while the thread that archives waits for
//! the place.
//!
//! That thread measures whenever it takes a cut. A second one measures when that was too long ago,
//! and does nothing else. What is kept otherwise is decided in `running`.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinpriq_archive::SourceError;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::Stopwatch;
use pinpriq_store::journal::{Keep, ShardCut};

use super::keeping::{Kept, Need};
use super::reading::because;
use crate::cuts::Cut;

/// How old the last measurement gets, also while nothing is archived.
pub(super) const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// What is kept, for the thread that archives and the one that measures.
pub(super) struct Backlog {
    /// How users name the place.
    place: String,
    /// How many bytes may stay on disk for the archive alone.
    most: u64,
    state: Mutex<State>,
}

struct State {
    kept: Kept,
    /// The cut that is read now. None of its shards otherwise.
    reading: Vec<ShardCut>,
    /// Whether its files were given up because too much stayed.
    was_given_up: bool,
    /// When it was measured last.
    measured: Duration,
}

impl Backlog {
    /// Holds keeps of everything, one for each shard.
    pub(super) fn new(keeps: Vec<Keep>, most: u64, (place, now): (String, Duration)) -> Self {
        let (kept, reading) = (Kept::new(keeps), Vec::new());
        let state = Mutex::new(State { kept, reading, was_given_up: false, measured: now });
        Self { place, most, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here is half done when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was not measured for too long. Never if nothing is kept.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let state = self.state();
        !state.kept.is_empty() && now.saturating_sub(state.measured) >= MEASURE_EVERY
    }

    /// Measures with a cut of now. If too much stays for the archive alone, keeps none of that any
    /// more, and returns true: then moments will be missing in the archive.
    pub(super) fn measure(&self, cuts: &[ShardCut], now: Duration) -> bool {
        let dropped = {
            let mut state = self.state();
            state.measured = now;
            let dropped = state.kept.drop_backlog(cuts, self.most);
            if dropped.is_some() {
                state.was_given_up = true;
                state.reading.iter().for_each(|cut| cut.keep.give_up());
            }
            dropped
        };
        let Some(bytes) = dropped else { return false };
        tracing::warn!(
            place = self.place,
            bytes,
            "more has stayed on disk for the archive than --archive-backlog allows, and goes now: \
             some moments will be missing in the archive"
        );
        true
    }

    /// Holds a cut while it is read.
    pub(super) fn begin_to_read(&self, cuts: Vec<ShardCut>) {
        let mut state = self.state();
        (state.reading, state.was_given_up) = (cuts, false);
    }

    /// Says whether what was read of a shard was right, and more may be read.
    pub(super) fn check(&self, shard: usize) -> Result<(), SourceError> {
        let state = self.state();
        if state.reading.get(shard).is_some_and(|cut| !cut.keep.is_lost()) {
            return Ok(());
        }
        Err(because(if state.was_given_up {
            "too much stayed on disk meanwhile, and was given up"
        } else {
            "the files are no longer kept, since the disk is full"
        }))
    }

    /// Lets go of the cut that was read.
    pub(super) fn end_reading(&self) {
        let cuts = std::mem::take(&mut self.state().reading);
        self.take_over(cuts);
    }

    /// See [`Kept::is_lost`].
    pub(super) fn is_lost(&self) -> bool {
        self.state().kept.is_lost()
    }

    /// See [`Kept::take_over`].
    pub(super) fn take_over(&self, cuts: Vec<ShardCut>) {
        self.state().kept.take_over(cuts);
    }

    /// See [`Kept::narrow`].
    pub(super) fn narrow(&self, needs: &[Need], at: Timestamp) {
        self.state().kept.narrow(needs, at);
    }

    /// See [`Kept::end`].
    pub(super) fn end(&self) {
        self.state().kept.end();
    }
}

/// Measures, whenever the other thread has not for too long, until the other end of `ends` is
/// dropped.
pub(super) fn watch(
    backlog: &Backlog,
    passed: &Stopwatch,
    cut: impl Fn() -> Option<Cut>,
    ends: &Receiver<()>,
) {
    // Nothing ever comes.
    while ends.recv_timeout(MEASURE_EVERY) == Err(RecvTimeoutError::Timeout) {
        if backlog.is_due(passed())
            && let Some((_, cuts)) = cut()
        {
            backlog.measure(&cuts, passed());
        }
    }
}
