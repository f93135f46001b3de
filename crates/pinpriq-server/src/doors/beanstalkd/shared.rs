//! What the connections of this door have in common: which tubes they use and watch, what was
//! counted since the start, and whether jobs are still accepted.
//!
//! A tube is there as long as a connection uses or watches it, whether or not there is a queue. The
//! queues themselves are in the engine.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::beanstalkd::Verb;

use super::DEFAULT;
use crate::config::JOB_BYTES_MAX;

/// At most this many tubes are remembered that no connection uses or watches. What is remembered is
/// only since when a tube is there.
const IDLE_TUBES_MAX: usize = 10_000;

/// What all connections of the door share.
#[derive(Debug)]
pub(crate) struct Shared {
    job_bytes_max: u32,
    id: u64,
    tubes: Mutex<Tubes>,
    /// The requests with each command.
    counts: [AtomicU64; Verb::ALL.len()],
    connected: AtomicU64,
    connections: AtomicU64,
    producers: AtomicU64,
    workers: AtomicU64,
    is_draining: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Tubes {
    known: HashMap<Box<[u8]>, Tube>,
    /// How many of them are neither used nor watched.
    idle: usize,
    /// The number of tubes that have come.
    came: u64,
}

/// What connections do with a tube.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tube {
    /// How many connections use it.
    pub(super) using: u64,
    /// How many connections watch it.
    pub(super) watching: u64,
    /// How often it was paused.
    pub(super) pauses: u64,
    /// When the first of them came, or it was paused.
    pub(super) since: Timestamp,
    /// How many tubes came before it.
    pub(super) after: u64,
    /// Whether it is there without any connection, like `default`.
    stays: bool,
}

impl Tube {
    /// Whether it is there without a queue: a connection uses or watches it, or it is `default`.
    pub(super) const fn is_wanted(&self) -> bool {
        self.stays || self.using + self.watching > 0
    }
}

/// What was counted.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// The requests with each command.
    pub(super) counts: [u64; Verb::ALL.len()],
    /// The connections so far.
    pub(super) connected: u64,
    /// The connections that there are.
    pub(super) connections: u64,
    /// Those that have put a job.
    pub(super) producers: u64,
    /// Those that have reserved one, or tried to.
    pub(super) workers: u64,
    /// Whether jobs are refused.
    pub(super) is_draining: bool,
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(0, JOB_BYTES_MAX)
    }
}

impl Shared {
    /// No client is connected yet. `id` distinguishes this server from others, and jobs may have
    /// `job_bytes_max` bytes.
    pub(crate) fn new(id: u64, job_bytes_max: u32) -> Self {
        let mut tubes = Tubes::default();
        let default = Tube { since: Timestamp::ZERO, stays: true, ..Tube::default() };
        tubes.known.insert(DEFAULT.into(), default);
        Self {
            job_bytes_max,
            id,
            tubes: Mutex::new(tubes),
            counts: [const { AtomicU64::new(0) }; Verb::ALL.len()],
            connected: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            producers: AtomicU64::new(0),
            workers: AtomicU64::new(0),
            is_draining: Arc::default(),
        }
    }

    pub(super) const fn job_bytes_max(&self) -> u32 {
        self.job_bytes_max
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// Accepts no jobs from now on, or accepts them again. Returns whether it accepts none.
    pub(crate) fn turn_draining(&self) -> bool {
        let was_draining = self.is_draining.load(Ordering::Relaxed);
        let is_draining = !was_draining;
        self.is_draining.store(is_draining, Ordering::Relaxed);
        is_draining
    }

    /// Returns what says whether jobs are refused.
    pub(crate) fn draining_flag(&self) -> Arc<AtomicBool> {
        self.is_draining.clone()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Counts a connection that has come. It uses `default`.
    pub(super) fn join(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.use_tube(DEFAULT, Timestamp::ZERO);
    }

    /// Forgets a connection that uses this tube.
    pub(super) fn leave(&self, used: &[u8], is_producer: bool, is_worker: bool) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        self.producers.fetch_sub(u64::from(is_producer), Ordering::Relaxed);
        self.workers.fetch_sub(u64::from(is_worker), Ordering::Relaxed);
        self.tubes().change(used, None, |tube| tube.using -= 1);
    }

    pub(super) fn note_producer(&self) {
        self.producers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_worker(&self) {
        self.workers.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request.
    #[inline]
    pub(super) fn count(&self, verb: Verb) {
        self.counts[verb.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a connection uses a tube from now on.
    pub(super) fn use_tube(&self, tube: &[u8], now: Timestamp) {
        self.tubes().change(tube, Some(now), |tube| tube.using += 1);
    }

    /// Notes that a connection uses a tube no longer.
    pub(super) fn leave_tube(&self, tube: &[u8]) {
        self.tubes().change(tube, None, |tube| tube.using -= 1);
    }

    /// Notes that a connection watches a tube from now on.
    pub(super) fn watch(&self, tube: &[u8], now: Timestamp) {
        self.tubes().change(tube, Some(now), |tube| tube.watching += 1);
    }

    /// Notes that a connection watches a tube no longer.
    pub(super) fn unwatch(&self, tube: &[u8]) {
        self.tubes().change(tube, None, |tube| tube.watching -= 1);
    }

    /// Counts a pause of a tube.
    pub(super) fn count_pause(&self, tube: &[u8], now: Timestamp) {
        self.tubes().change(tube, Some(now), |tube| tube.pauses += 1);
    }

    /// Returns what connections do with a tube, if that is known.
    pub(super) fn tube(&self, name: &[u8]) -> Option<Tube> {
        self.tubes().known.get(name).copied()
    }

    /// Whether a tube is there without a queue.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.tube(name).is_some_and(|tube| tube.is_wanted())
    }

    /// Returns all tubes that are known, also those without a connection.
    pub(super) fn all(&self) -> HashMap<Box<[u8]>, Tube> {
        self.tubes().known.clone()
    }

    /// Forgets tubes that are neither used nor watched, since they have no queues.
    pub(super) fn forget(&self, gone: impl Iterator<Item = (Box<[u8]>, Tube)>) {
        let tubes = &mut *self.tubes();
        for (name, seen) in gone {
            if tubes.known.get(&name) == Some(&seen) {
                tubes.known.remove(&name);
                tubes.idle -= 1;
            }
        }
    }

    pub(super) fn tally(&self) -> Tally {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Tally {
            counts: self.counts.each_ref().map(read),
            connected: read(&self.connected),
            connections: read(&self.connections),
            producers: read(&self.producers),
            workers: read(&self.workers),
            is_draining: self.is_draining(),
        }
    }

    fn tubes(&self) -> MutexGuard<'_, Tubes> {
        self.tubes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tubes {
    /// Changes what connections do with a tube. One that is not known comes at this moment, if that
    /// is given.
    fn change(&mut self, name: &[u8], now: Option<Timestamp>, change: impl FnOnce(&mut Tube)) {
        if !self.known.contains_key(name) {
            let Some(since) = now else { return };
            self.came += 1;
            self.idle += 1;
            let new = Tube { since, after: self.came, ..Tube::default() };
            self.known.insert(name.into(), new);
        }
        let Some(tube) = self.known.get_mut(name) else { return };
        let was_idle = !tube.is_wanted();
        change(tube);
        let is_idle = !tube.is_wanted();
        self.idle = self.idle + usize::from(is_idle) - usize::from(was_idle);
        if is_idle && self.idle > IDLE_TUBES_MAX {
            self.known.remove(name);
            self.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1);

    #[test]
    fn drain_mode_has_a_way_back() {
        let shared = Shared::default();
        let flag = shared.draining_flag();
        let turned = [shared.turn_draining(), shared.turn_draining(), shared.turn_draining()];
        assert_eq!(turned, [true, false, true]);
        assert!(shared.is_draining() && flag.load(Ordering::Relaxed));
    }

    #[test]
    fn unused_tubes_are_remembered_up_to_a_bound() {
        let shared = Shared::default();
        for number in 0..IDLE_TUBES_MAX + 10 {
            let name = number.to_string();
            shared.watch(name.as_bytes(), NOW);
            shared.unwatch(name.as_bytes());
        }
        assert_eq!(shared.all().len(), IDLE_TUBES_MAX + 1);
        // One that is used is not among them.
        shared.use_tube(b"0", NOW);
        shared.watch(b"new", NOW);
        shared.unwatch(b"new");
        assert!(shared.has(b"0"));
        assert!(shared.tube(b"new").is_some_and(|tube| !tube.is_wanted()));
        let seen: Vec<_> = shared.all().into_iter().filter(|(_, tube)| !tube.is_wanted()).collect();
        shared.forget(seen.into_iter().filter(|(name, _)| **name != *DEFAULT));
        assert_eq!(shared.all().len(), 2, "default and the one that is used");
    }

    #[test]
    fn tube_that_came_back_meanwhile_is_not_forgotten() {
        let shared = Shared::default();
        shared.watch(b"a", NOW);
        shared.unwatch(b"a");
        let seen = shared.tube(b"a").unwrap();
        shared.watch(b"a", NOW);
        shared.forget([(Box::from(&b"a"[..]), seen)].into_iter());
        assert!(shared.has(b"a"));
    }
}
