//! How other threads ask a running journal for a cut of its log, and keep the segments of the cut
//! while they copy them.
//!
//! A [`Tap`] is shared by one journal and those who copy it. The journal answers on the thread of
//! its shard and never waits for them; what belongs to a cut is decided in `cuts`, and when
//! something is given up for lack of room in `running`. Nothing here reads or copies a file.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinpriq_proto::time::Timestamp;

/// The most cuts of one journal that are waited for or kept at a time, for each purpose.
const CUTS_MAX: usize = 16;

/// Stands for no segment: no segment has this number.
const NO_SEGMENT: u32 = u32::MAX;

/// Shared by a journal and those who copy it while it runs: see
/// [`Journal::tapped_by`](super::Journal::tapped_by).
pub struct Tap {
    wake: Box<dyn Fn() + Send + Sync>,
    is_asked: AtomicBool,
    /// The lowest number of a segment that is kept, or [`NO_SEGMENT`].
    kept_from: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where the answers to those go who wait, and for what they ask.
    asked: Vec<(Purpose, SyncSender<ShardCut>)>,
    /// What is kept, by the number of the keep.
    keeps: BTreeMap<u64, Kept>,
    next_keep: u64,
    /// Whether the journal has ended.
    has_ended: bool,
}

/// Why segments are kept. On a full disk those for readers go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Purpose {
    /// Somebody copies them now.
    Reading,
    /// They were not archived yet.
    Archiving,
}

struct Kept {
    purpose: Purpose,
    first: u32,
    since: Timestamp,
    is_lost: Arc<AtomicBool>,
}

/// A request for a cut.
pub struct Asked {
    answered: Receiver<ShardCut>,
}

/// What of a shard belongs to a cut. All of it is durable.
pub struct ShardCut {
    /// Every commit up to this moment is in the segments, and no later one will have such a moment.
    /// It is a millisecond before that of the answer.
    pub at: Timestamp,
    /// The segments suffice for every moment from this one on. It may be a millisecond after `at`.
    /// While [`Tap::keep_all`] keeps everything, this is zero, and the segments are all that the
    /// journal has.
    pub since: Timestamp,
    /// Oldest first. Their bytes from 0 to `bytes` do not change while this is kept. The last
    /// commits may be later than `at`.
    pub segments: Vec<SegmentEnd>,
    /// Keeps the segments.
    pub keep: Keep,
    /// The first segment that the shard itself still needed. What lies before it is there only
    /// since it is kept.
    pub needed_from: u32,
    /// From when on that holds: the segments from there on suffice for every moment from this one
    /// on. It may be a millisecond after `at`.
    pub needed_since: Timestamp,
}

/// A segment, and how far it belongs to a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentEnd {
    /// Its number.
    pub number: u32,
    /// The incarnation that began it.
    pub incarnation: u64,
    /// Where the last commit ends.
    pub bytes: u64,
}

/// Keeps segments under their names until it is dropped, the disk is full or the journal ends.
pub struct Keep {
    tap: Arc<Tap>,
    number: u64,
    is_lost: Arc<AtomicBool>,
}

impl Tap {
    /// Creates a tap for one journal. `wake` makes the thread of the shard call
    /// [`Durable::answer_cuts`](crate::Durable::answer_cuts) and then
    /// [`Durable::drive`](crate::Durable::drive) soon. It is called by any thread.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            wake: Box::new(wake),
            is_asked: AtomicBool::new(false),
            kept_from: AtomicU32::new(NO_SEGMENT),
            state: Mutex::default(),
        }
    }

    /// Asks for a cut. Costs a lock. There is no answer while too many cuts are kept. If too many
    /// wait for one for the archive, the first of them gets none.
    #[must_use]
    pub fn ask(&self, purpose: Purpose) -> Asked {
        let (answer, answered) = sync_channel(1);
        {
            let mut state = self.state();
            if purpose == Purpose::Archiving && state.count(purpose) >= CUTS_MAX {
                // There is one archive: it does not wait any more for what it asked for long ago.
                state.forget_first(purpose);
            }
            if !state.has_ended && state.count(purpose) < CUTS_MAX {
                state.asked.push((purpose, answer));
                self.is_asked.store(true, Ordering::Relaxed);
            }
        }
        (self.wake)();
        Asked { answered }
    }

    /// Keeps every segment that there is, until the returned keep is narrowed or dropped: for an
    /// archive. Before [`Store::begin`](crate::Store::begin) it also keeps the segments that an
    /// earlier start has kept and that the journal itself does not need: so what was not archived
    /// stays under its name over starts. The keep is lost at once if the journal has ended.
    #[must_use]
    pub fn keep_all(self: &Arc<Self>) -> Keep {
        let (keep, ..) = self.keep(Purpose::Archiving, 0, Timestamp::ZERO);
        keep
    }

    /// Whether anybody asks for a cut. Costs one relaxed load.
    #[must_use]
    #[inline]
    pub fn has_request(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Takes the requests.
    pub(crate) fn take_asked(&self) -> Vec<(Purpose, SyncSender<ShardCut>)> {
        let mut state = self.state();
        self.is_asked.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.asked)
    }

    /// Keeps the segments from `first` on, which suffice from the moment `since` on. If others keep
    /// more, so does this: then these suffice for longer. Returns what it keeps.
    pub(crate) fn keep(
        self: &Arc<Self>,
        purpose: Purpose,
        first: u32,
        since: Timestamp,
    ) -> (Keep, u32, Timestamp) {
        let mut state = self.state();
        let others = state.keeps.values().map(|kept| (kept.first, kept.since)).min();
        let (first, since) = others.map_or((first, since), |others| others.min((first, since)));
        let (number, is_lost) = (state.next_keep, Arc::new(AtomicBool::new(state.has_ended)));
        state.next_keep += 1;
        if !state.has_ended {
            let is_lost = Arc::clone(&is_lost);
            state.keeps.insert(number, Kept { purpose, first, since, is_lost });
        }
        self.note_kept(&state);
        drop(state);
        (Keep { tap: Arc::clone(self), number, is_lost }, first, since)
    }

    /// The lowest number of a segment that is kept. All numbers are below it if none is.
    pub(crate) fn kept_from(&self) -> u32 {
        self.kept_from.load(Ordering::Relaxed)
    }

    /// Gives up everything that is kept for readers. If there is nothing, gives up everything that
    /// is kept for the archive, if that may go. Returns what was given up.
    pub(crate) fn lose_keeps(&self, archive_may_go: bool) -> Option<Purpose> {
        let mut state = self.state();
        let first = state.keeps.values().map(|kept| kept.purpose).min()?;
        if first == Purpose::Archiving && !archive_may_go {
            return None;
        }
        state.lose(|kept| kept.purpose == first);
        self.note_kept(&state);
        Some(first)
    }

    /// Ends all waits and gives up everything that is kept: the journal has ended.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.lose(|_| true);
        self.note_kept(&state);
        state.has_ended = true;
        state.asked.clear();
        self.is_asked.store(false, Ordering::Relaxed);
    }

    /// Ends one keep. Returns whether it was still there.
    fn release(&self, keep: u64) -> bool {
        let mut state = self.state();
        let was_there = state.keeps.remove(&keep).is_some();
        self.note_kept(&state);
        was_there
    }

    /// Raises where one keep begins. Returns whether that changes anything.
    fn narrow(&self, keep: u64, first: u32, since: Timestamp) -> bool {
        let mut state = self.state();
        let Some(kept) = state.keeps.get_mut(&keep).filter(|kept| kept.first < first) else {
            return false;
        };
        (kept.first, kept.since) = (first, since.max(kept.since));
        self.note_kept(&state);
        true
    }

    fn note_kept(&self, state: &State) {
        let lowest = state.keeps.values().map(|kept| kept.first).min();
        self.kept_from.store(lowest.unwrap_or(NO_SEGMENT), Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here is half done when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many cuts for this purpose are waited for or kept.
    fn count(&self, purpose: Purpose) -> usize {
        let asked = self.asked.iter().map(|(asked, _)| *asked);
        let kept = self.keeps.values().map(|kept| kept.purpose);
        asked.chain(kept).filter(|known| *known == purpose).count()
    }

    /// Forgets the first of those who wait for a cut for this purpose, if anybody does.
    fn forget_first(&mut self, purpose: Purpose) {
        if let Some(first) = self.asked.iter().position(|(asked, _)| *asked == purpose) {
            self.asked.remove(first);
        }
    }

    /// Gives up some of what is kept.
    fn lose(&mut self, goes: impl Fn(&Kept) -> bool) {
        self.keeps.retain(|_, kept| {
            let is_lost = goes(kept);
            if is_lost {
                kept.is_lost.store(true, Ordering::SeqCst);
            }
            !is_lost
        });
    }
}

impl Asked {
    /// Waits for the answer, but not longer than this. Returns none if the shard has not answered
    /// in time, or has ended; then nothing is kept.
    #[must_use]
    pub fn wait(self, within: Duration) -> Option<ShardCut> {
        self.answered.recv_timeout(within).ok()
    }
}

impl ShardCut {
    /// The latest moment for which the cuts of all shards suffice. Without one, ask all shards
    /// again before these cuts are dropped: a shard has just put away a segment that others, which
    /// answered a little earlier, would need.
    #[must_use]
    pub fn common_moment(cuts: &[Self]) -> Option<Timestamp> {
        let at = cuts.iter().map(|cut| cut.at).min()?;
        cuts.iter().all(|cut| cut.since <= at).then_some(at)
    }
}

impl Keep {
    /// Whether segments may be gone or changed by now. Look after what was read was read: if it is
    /// not lost then, it was right.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Keeps only the segments from `first` on, which suffice from the moment `since` on. Wakes the
    /// shard, which can put the others away. Never keeps more than before.
    pub fn narrow(&self, first: u32, since: Timestamp) {
        if self.tap.narrow(self.number, first, since) {
            (self.tap.wake)();
        }
    }

    /// Ends it: the segments are of no use any more. It is lost then.
    pub fn give_up(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
        if self.tap.release(self.number) {
            (self.tap.wake)();
        }
    }
}

impl Drop for Keep {
    /// Wakes the shard, which can put the segments away now.
    fn drop(&mut self) {
        if self.tap.release(self.number) {
            (self.tap.wake)();
        }
    }
}
