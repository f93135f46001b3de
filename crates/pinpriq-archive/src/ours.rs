//! Which marks a server has written itself since it started, so that those of another server on a
//! copy of the same directory can be told from them.
//!
//! Nothing is read or written here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinpriq_store::journal::raw::RawCommit;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ArchiveError;
use crate::fetch::Wanted;
use crate::mark::Mark;
use crate::names::SegmentId;
use crate::place::Place;

/// How many marks of unknown fate are remembered.
const UNKNOWN_MAX: usize = 64;

/// The marks that one server has written since it started.
#[derive(Debug, Default)]
pub(crate) struct Ours {
    /// The number of the last one that was created for certain. A server writes under each number
    /// from its first one on, so those below are its own too.
    written: u64,
    /// The checksums of those that may be there, newest last: no answer came.
    unknown: VecDeque<u64>,
    /// The whole segments that need not be read back.
    wholes: Arc<Wholes>,
}

/// The whole segments that a server has created and that no mark names yet. A new beginning need
/// not read them back.
#[derive(Debug, Default)]
pub(crate) struct Wholes {
    known: Mutex<BTreeMap<(usize, SegmentId), Whole>>,
}

/// A whole segment that was created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    /// Its last commit, if it has any.
    pub(crate) last: Option<RawCommit>,
}

impl Ours {
    /// Notes a mark before it is created. From then on it may be there.
    pub(crate) fn note(&mut self, mark: &Mark) {
        if self.unknown.len() == UNKNOWN_MAX {
            self.unknown.pop_front();
        }
        self.unknown.push_back(sum(mark));
    }

    /// Notes that a mark was created.
    pub(crate) fn settle(&mut self, mark: &Mark) {
        let sum = sum(mark);
        self.unknown.retain(|unknown| *unknown != sum);
        self.written = mark.number;
        self.wholes.known().clear();
    }

    /// Whether this server has written a mark.
    pub(crate) const fn has_written(&self) -> bool {
        self.written > 0
    }

    /// The whole segments that need not be read back.
    pub(crate) fn wholes(&self) -> Arc<Wholes> {
        Arc::clone(&self.wholes)
    }

    /// Whether this server has written a mark that is in the place.
    pub(crate) fn has(&self, mark: &Mark) -> bool {
        mark.number <= self.written || self.unknown.contains(&sum(mark))
    }
}

impl Wholes {
    /// Notes a segment that was created, with its last commit.
    pub(crate) fn note(&self, wanted: &Wanted, last: Option<RawCommit>) {
        self.known().insert((wanted.shard, wanted.segment), Whole { last });
    }

    /// What is known of a segment, if it was created here.
    pub(crate) fn find(&self, wanted: &Wanted) -> Option<Whole> {
        self.known().get(&(wanted.shard, wanted.segment)).copied()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(usize, SegmentId), Whole>> {
        // Nothing in here is half done when a thread panics.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses to go on beside the server that has written this mark.
pub(crate) fn rival(place: &dyn Place, mark: &Mark) -> ArchiveError {
    let starts: Vec<String> =
        mark.shards.iter().map(|shard| shard.incarnation.to_string()).collect();
    let what = format!(
        "mark {} in {} is not by this one, but by start {} of line {}",
        mark.number,
        place.name(),
        starts.join(", "),
        mark.line
    );
    ArchiveError::TakenByAnother { what }
}

fn sum(mark: &Mark) -> u64 {
    xxh3_64(&mark.encode())
}
