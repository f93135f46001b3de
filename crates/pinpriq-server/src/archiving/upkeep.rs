//! What is done for an archive besides writing it: what is old is removed, and files and archive
//! are compared.
//!
//! Both take long, so each has a thread of its own, at most one at a time. What an archive needs is
//! known to `pinpriq-archive` alone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pinpriq_archive::{
    ArchiveError, CutInfo, Fault, Mark, Place, PlaceError, Pruned, prune, scrub,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Stopwatch;
use pinpriq_store::journal::{Purpose, ShardCut};

use super::reading::{GoOn, Reading, because, info_of};
use crate::clock::SystemClock;
use crate::config::ArchiveTo;
use crate::cuts::TakeCut;
use crate::facts::archive::Archived;
use crate::stop::Stop;

/// When what is old is removed for the first time, and how often after that.
const PRUNE_FIRST: Duration = Duration::from_mins(10);
const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// How far the clock may be ahead of the newest mark, in what is removed. A clock that is years
/// ahead must not have everything removed.
const CLOCK_AHEAD_MAX: Span = Span::from_ms(3_600_000);

/// Files and archive are compared for the first time after this, if not even sooner: a server may
/// start again too often for more.
const SCRUB_FIRST: Duration = Duration::from_hours(1);

/// When it is tried again to compare, if the shards did not say how far they are.
const AGAIN: Duration = Duration::from_mins(1);

/// A comparison rests this many times as long as it worked, so that others have disk and network.
const RESTS: u32 = 10;

/// How many faults are told.
const FAULTS_TOLD: usize = 3;

/// Work on a thread of its own.
type Work<T> = JoinHandle<Result<T, ArchiveError>>;

/// See the start of this file.
pub(super) struct Upkeep {
    place: Arc<dyn Place>,
    directories: Arc<[PathBuf]>,
    passed: Stopwatch,
    stop: Stop,
    keep: Option<Span>,
    scrub_every: Option<Duration>,
    prune_due: Duration,
    scrub_due: Duration,
    pruning: Option<Work<Pruned>>,
    scrubbing: Option<Work<Vec<Fault>>>,
    /// The comparison goes on without rests when this is dropped.
    rests: Option<SyncSender<()>>,
    /// Why nothing could be removed the last time.
    trouble: Option<String>,
}

impl Upkeep {
    /// Nothing is due at first.
    pub(super) fn new(
        to: &ArchiveTo,
        place: Arc<dyn Place>,
        directories: Arc<[PathBuf]>,
        (passed, stop): (Stopwatch, Stop),
    ) -> Self {
        let now = passed();
        let span = |it: Duration| Span::from_ms(u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        Self {
            place,
            directories,
            stop,
            keep: to.keep.map(span),
            scrub_every: to.scrub_every,
            prune_due: now + PRUNE_FIRST,
            scrub_due: now + to.scrub_every.unwrap_or_default().min(SCRUB_FIRST),
            passed,
            pruning: None,
            scrubbing: None,
            rests: None,
            trouble: None,
        }
    }

    /// Begins what is due, and tells what has ended. `newest` is the newest mark, and `may_remove`
    /// says whether the place lets anything be removed, as far as is known.
    pub(super) fn turn(
        &mut self,
        (newest, may_remove): (&Mark, bool),
        cut: &mut TakeCut,
        archived: &Archived,
    ) {
        let now = (self.passed)();
        if let Some(ended) = take_ended(&mut self.pruning) {
            self.tell_pruned(ended);
        }
        if let Some(ended) = take_ended(&mut self.scrubbing) {
            self.rests = None;
            tell_scrubbed(&self.place.name(), ended, archived);
        }
        if let Some(keep) = self.keep
            && may_remove
            && now >= self.prune_due
            && self.pruning.is_none()
        {
            self.prune_due = now + PRUNE_EVERY;
            let place = Arc::clone(&self.place);
            let moment = moment_by(SystemClock::wall(), newest.at());
            let work = move || prune(&*place, keep, moment, false);
            self.pruning = begin("archive-prune", work);
        }
        if let Some(every) = self.scrub_every
            && now >= self.scrub_due
            && self.scrubbing.is_none()
        {
            let wait = if let Some((at, cuts)) = cut(Purpose::Reading) {
                self.begin_to_scrub(newest.clone(), info_of(at, &cuts), cuts);
                every
            } else {
                AGAIN
            };
            self.scrub_due = now + wait;
        }
    }

    fn begin_to_scrub(&mut self, newest: Mark, info: CutInfo, cuts: Vec<ShardCut>) {
        let (place, directories) = (Arc::clone(&self.place), Arc::clone(&self.directories));
        let (passed, stop) = (Arc::clone(&self.passed), self.stop.clone());
        let (rests, ends) = sync_channel(0);
        self.rests = Some(rests);
        let work = move || {
            let mut needed = Needed::new(cuts);
            let go_on: GoOn<'_> = Box::new(|shard: usize, segment: u32| {
                if stop.is_asked_for() || !needed.go_on(shard, segment) {
                    return Err(because("the files are no longer kept"));
                }
                Ok(())
            });
            let mut reading = Reading::new(info, directories, go_on);
            let mut worked_since = passed();
            let mut pause = || {
                rest(&ends, passed().saturating_sub(worked_since).saturating_mul(RESTS));
                worked_since = passed();
            };
            scrub(&mut reading, &*place, &newest, &mut pause)
        };
        self.scrubbing = begin("archive-scrub", work);
    }

    fn tell_pruned(&mut self, ended: Result<Pruned, ArchiveError>) {
        let place = self.place.name();
        match ended {
            Ok(pruned) => {
                self.trouble = None;
                let (marks, objects) = (pruned.marks.len(), pruned.objects.len());
                if marks + objects > 0 {
                    let bytes = pruned.bytes;
                    tracing::info!(place, marks, objects, bytes, "removed from the archive");
                }
            }
            Err(error @ ArchiveError::Place(PlaceError::Denied { .. })) => {
                self.keep = None;
                tracing::warn!(
                    place,
                    %error,
                    "nothing is removed from the archive until the server starts again"
                );
            }
            Err(error) => {
                let why = error.to_string();
                if self.trouble.as_ref() != Some(&why) {
                    tracing::warn!(place, %error, "cannot remove what is old from the archive");
                }
                self.trouble = Some(why);
            }
        }
    }
}

/// What a comparison still needs of the files: they are read in order, and it takes hours.
struct Needed {
    cuts: Vec<ShardCut>,
    /// The segment of each shard that was read last.
    reached: Vec<u32>,
}

impl Needed {
    fn new(cuts: Vec<ShardCut>) -> Self {
        let reached = vec![0; cuts.len()];
        Self { cuts, reached }
    }

    /// After this segment was read, lets go of those before it. Returns whether what was read was
    /// right, and more may be read.
    fn go_on(&mut self, shard: usize, segment: u32) -> bool {
        let Some((cut, reached)) = self.cuts.get(shard).zip(self.reached.get_mut(shard)) else {
            return false;
        };
        if cut.keep.is_lost() || segment < *reached {
            return false;
        }
        if segment > *reached {
            *reached = segment;
            // Whoever archives a later cut meanwhile goes by the moments in the files.
            cut.keep.narrow(segment, cut.since);
        }
        true
    }
}

/// The moment from which the age of things is counted.
fn moment_by(clock: Timestamp, newest: Timestamp) -> Timestamp {
    clock.min(newest.after(CLOCK_AHEAD_MAX))
}

/// Waits for so long, or until the other end is dropped.
fn rest(ends: &Receiver<()>, span: Duration) {
    // Nothing ever comes.
    let _ = ends.recv_timeout(span);
}

/// Begins work on a thread of this name.
fn begin<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Option<Work<T>> {
    let begun = thread::Builder::new().name(name.to_owned()).spawn(work);
    begun
        .inspect_err(|error| {
            tracing::warn!(%error, name, "the system has no thread for work on the archive");
        })
        .ok()
}

/// Takes what has come of work that has ended.
fn take_ended<T>(work: &mut Option<Work<T>>) -> Option<Result<T, ArchiveError>> {
    let ended = work.take_if(|work| work.is_finished())?;
    let gone = || because("the thread has ended without an answer");
    Some(ended.join().unwrap_or_else(|_| Err(gone().into())))
}

fn tell_scrubbed(place: &str, ended: Result<Vec<Fault>, ArchiveError>, archived: &Archived) {
    let faults = match ended {
        Ok(faults) => faults,
        Err(error) => {
            tracing::warn!(place, %error, "files and archive could not be compared");
            return;
        }
    };
    if faults.is_empty() {
        tracing::info!(place, "files and archive are the same");
        return archived.note_faults(None);
    }
    let told = faults.iter().take(FAULTS_TOLD).map(|it| format!("{}: {}", it.name, it.what));
    let told = told.collect::<Vec<_>>().join("; ");
    let why = format!("files and archive differ in {} places: {told}", faults.len());
    tracing::error!(place, "{why}");
    archived.note_faults(Some(&why));
}

#[cfg(test)]
mod tests {
    use pinpriq_archive::memory::MemoryPlace;
    use pinpriq_store::journal::Tap;

    use super::*;

    fn upkeep(to: &ArchiveTo) -> Upkeep {
        let directories: Arc<[PathBuf]> = Arc::from([PathBuf::from("nowhere")]);
        let passed: Stopwatch = Arc::new(|| Duration::from_secs(7));
        Upkeep::new(to, Arc::new(MemoryPlace::new()), directories, (passed, Stop::default()))
    }

    fn archive_to(scrub_every: Duration) -> ArchiveTo {
        ArchiveTo {
            place: "memory".to_owned(),
            every: Duration::from_secs(1),
            keep: Some(Duration::from_hours(2)),
            backlog_bytes: None,
            scrub_every: Some(scrub_every),
        }
    }

    #[test]
    fn a_clock_far_ahead_makes_nothing_old() {
        let at = Timestamp::from_ms;
        assert_eq!(moment_by(at(9_000_000), at(8_000_000)), at(9_000_000));
        assert_eq!(moment_by(at(900_000_000_000), at(8_000_000)), at(11_600_000));
        assert_eq!(moment_by(at(5), at(8_000_000)), at(5));
    }

    #[test]
    fn a_comparison_that_goes_back_is_not_right() {
        let keep = Arc::new(Tap::new(|| {})).keep_all();
        let at = Timestamp::ZERO;
        let (since, needed_from, needed_since) = (at, 1, at);
        let segments = Vec::new();
        let cut = ShardCut { at, since, segments, keep, needed_from, needed_since };
        let mut needed = Needed::new(vec![cut]);
        assert!(needed.go_on(0, 3) && needed.go_on(0, 3) && needed.go_on(0, 5));
        assert!(!needed.go_on(0, 3), "it may be gone");
        assert!(!needed.go_on(1, 3), "there is no such shard");
        needed.cuts[0].keep.give_up();
        assert!(!needed.go_on(0, 6));
    }

    #[test]
    fn the_first_comparison_comes_soon() {
        let due = |every| upkeep(&archive_to(every)).scrub_due;
        assert_eq!(due(Duration::from_hours(24)), Duration::from_secs(3_607));
        assert_eq!(due(Duration::from_mins(30)), Duration::from_secs(1_807));
    }

    #[test]
    fn a_place_that_refuses_to_remove_is_not_asked_again() {
        let mut upkeep = upkeep(&archive_to(Duration::from_hours(1)));
        let (name, why) = ("marks/1".to_owned(), "no".to_owned());
        let away = PlaceError::Away { what: "remove", name: name.clone(), why: why.clone() };
        upkeep.tell_pruned(Err(away.into()));
        assert!(upkeep.keep.is_some());
        upkeep.tell_pruned(Err(PlaceError::Denied { what: "remove", name, why }.into()));
        assert!(upkeep.keep.is_none());
    }
}
