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
use pinpriq_proto::time::Span;
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
            scrub_due: now + to.scrub_every.unwrap_or_default(),
            passed,
            pruning: None,
            scrubbing: None,
            rests: None,
            trouble: None,
        }
    }

    /// Begins what is due, and tells what has ended. `newest` is the newest mark.
    pub(super) fn turn(&mut self, newest: &Mark, cut: &mut TakeCut, archived: &Archived) {
        let now = (self.passed)();
        if let Some(ended) = take_ended(&mut self.pruning) {
            self.tell_pruned(ended);
        }
        if let Some(ended) = take_ended(&mut self.scrubbing) {
            self.rests = None;
            tell_scrubbed(&self.place.name(), ended, archived);
        }
        if let Some(keep) = self.keep
            && now >= self.prune_due
            && self.pruning.is_none()
        {
            self.prune_due = now + PRUNE_EVERY;
            let place = Arc::clone(&self.place);
            let work = move || prune(&*place, keep, SystemClock::wall(), false);
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
            let go_on: GoOn<'_> = Box::new(|shard: usize| {
                let is_lost = cuts.get(shard).is_none_or(|cut| cut.keep.is_lost());
                if stop.is_asked_for() || is_lost {
                    return Err(because("the files are no longer kept"));
                }
                Ok(())
            });
            let mut reading = Reading::new(info, directories, go_on);
            let mut worked_since = passed();
            let mut pace = || {
                rest(&ends, passed().saturating_sub(worked_since).saturating_mul(RESTS));
                worked_since = passed();
            };
            scrub(&mut reading, &*place, &newest, &mut pace)
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
            Err(error) => {
                // Names of objects differ from time to time.
                let why = match &error {
                    ArchiveError::Place(PlaceError::Denied { .. }) => String::new(),
                    other => other.to_string(),
                };
                if self.trouble.as_ref() != Some(&why) {
                    tracing::warn!(place, %error, "cannot remove what is old from the archive");
                }
                self.trouble = Some(why);
            }
        }
    }
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
