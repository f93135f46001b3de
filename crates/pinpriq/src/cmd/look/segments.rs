//! Copies a data directory that no server uses, as it was at a moment: its segments up to there.
//!
//! It reaches back as far as its segments do. The directory is locked meanwhile, and not changed.

use std::path::{Path, PathBuf};

use pinpriq_proto::change::Header;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::{Disk as _, OpenMode, read_full_at};
use pinpriq_store::journal::raw::{self, AtRest, RawCommit};
use pinpriq_store::journal::{SegmentEnd, lock, segment_name};
use pinpriq_store::layout::existing_journals;
use pinpriq_store::reshard::{DirectoryError, ReshardReport};
use pinpriq_store::restore::Restoring;
use pinpriq_store::shards::first_number;
use pinpriq_store::{RealDisk, StoreError};

use super::WISHES;
use crate::cmd::check::{failure, open};
use crate::cmd::salvage::options;
use crate::exit::Failure;
use crate::moments::{self, Moment};

/// A copy.
pub(super) struct Copied {
    /// The moment that it shows.
    pub(super) at: Timestamp,
    /// What each shard holds.
    pub(super) reports: Vec<ReshardReport>,
}

/// Copies `dir` into the new directory `new`, as it was at a moment.
pub(super) fn copy(dir: &Path, until: Moment, new: &Path) -> Result<Copied, Failure> {
    let journals = existing_journals(dir).map_err(|error| failed(dir, &error))?;
    let shards = journals.iter().map(|journal| Shard::open(&journal.directory));
    let shards = shards.collect::<Result<Vec<Shard>, Failure>>()?;
    let latest = shards.iter().map(|shard| shard.rest.at).max().unwrap_or_default();
    let mut since = Timestamp::ZERO;
    for shard in &shards {
        since = since.max(shard.since().map_err(|error| failed(&shard.directory, &error))?);
    }
    let at = match until {
        Moment::Latest => latest,
        Moment::At(at) => at.min(latest),
        Moment::Before(span) => Timestamp::from_ms(latest.ms().saturating_sub(span.ms())),
    };
    if at < since {
        let (dir, since) = (dir.display(), moments::shown(since));
        let sentence = format!("{dir} reaches back to {since}, and not before");
        return Err(Failure::nothing_there(sentence));
    }
    let written = |error: DirectoryError| match &error.source {
        source if source.is_of_directory() => failed(dir, source),
        source => failed(&error.directory, source),
    };
    let mut restoring = Restoring::begin(new, shards.len(), options()).map_err(written)?;
    let mut ends = Vec::new();
    for (number, shard) in shards.iter().enumerate() {
        ends.push(shard.add_to(&mut restoring, number, at).map_err(written)?);
    }
    let reports = restoring.finish(&starts(at, &ends), WISHES).map_err(written)?;
    Ok(Copied { at, reports })
}

/// How the shards go on that have ended with these commits.
fn starts(now: Timestamp, ends: &[Option<RawCommit>]) -> Vec<Header> {
    let incarnations = ends.iter().flatten().map(|end| end.incarnation);
    let incarnation = incarnations.max().unwrap_or_default() + 1;
    let start = |(shard, end): (usize, &Option<RawCommit>)| {
        let given = end.map_or(0, |end| end.last_number);
        Header { incarnation, now, last_number: given.max(first_number(shard)) }
    };
    ends.iter().enumerate().map(start).collect()
}

/// Why this directory cannot be read or written.
fn failed(directory: &Path, error: &StoreError) -> Failure {
    failure(&directory.display().to_string(), error)
}

/// A shard that no server can use meanwhile.
struct Shard {
    directory: PathBuf,
    disk: RealDisk,
    rest: AtRest,
    _lock: Box<dyn Send>,
}

impl Shard {
    fn open(directory: &Path) -> Result<Self, Failure> {
        let disk = open(directory)?;
        let locked = lock(&disk).map_err(|error| failed(directory, &error))?;
        let rest = raw::at_rest(&disk).and_then(|rest| rest.ok_or(StoreError::NotAJournal));
        let rest = rest.map_err(|error| failed(directory, &error))?;
        Ok(Self { directory: directory.to_owned(), disk, rest, _lock: locked })
    }

    /// Returns the first moment for which its segments suffice: from then on no commit needs one
    /// before the first that there is.
    fn since(&self) -> Result<Timestamp, StoreError> {
        let first = self.rest.segments.first().map_or(0, |segment| segment.number);
        for segment in &self.rest.segments {
            let (name, bytes) = self.read(segment)?;
            let mut since = None;
            raw::walk_each(&name, &bytes, &mut |commit| {
                if since.is_none() && commit.oldest >= first {
                    since = Some(commit.now);
                }
            })?;
            if let Some(since) = since {
                return Ok(since);
            }
        }
        let what = "a segment is missing that its last commit needs".to_owned();
        Err(StoreError::Mixed { what })
    }

    /// Returns the name of a segment, and its bytes.
    fn read(&self, segment: &SegmentEnd) -> Result<(String, Vec<u8>), StoreError> {
        let name = segment_name(segment.number);
        let fail = |what, error| StoreError::from_io(what, &name, 0, error);
        let file = self.disk.open(&name, OpenMode::Read).map_err(|error| fail("open", error))?;
        let mut bytes = vec![0; usize::try_from(segment.bytes).unwrap_or(usize::MAX)];
        let read = read_full_at(&*file, 0, &mut bytes).map_err(|error| fail("read", error))?;
        bytes.truncate(read);
        Ok((name, bytes))
    }

    /// Adds its segments up to a moment. Returns the last commit that counts.
    fn add_to(
        &self,
        restoring: &mut Restoring,
        shard: usize,
        until: Timestamp,
    ) -> Result<Option<RawCommit>, DirectoryError> {
        let mut last = None;
        for segment in &self.rest.segments {
            let read = self.read(segment);
            let read = read.map_err(|source| {
                let directory = self.directory.clone();
                DirectoryError { directory, source }
            });
            let (_, bytes) = read?;
            let walk = restoring.add(shard, bytes, Some(until))?;
            last = walk.last.or(last);
            if walk.is_cut {
                break;
            }
        }
        Ok(last)
    }
}
