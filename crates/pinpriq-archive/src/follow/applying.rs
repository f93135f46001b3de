//! Brings a directory that follows to the state of a mark.
//!
//! For each shard it adds what is missing, oldest first: whole segments, and of those that grow
//! what is behind the bytes that are here. Every commit is checked before it is written. Nothing
//! counts before all of it is on the disk and noted.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_store::disk::index;
use pinpriq_store::journal::raw::{HEADER_BYTES, RawHeader, Walker};
use pinpriq_store::layout::{Following, FollowingSegment, FollowingShard, FollowingStart};
use pinpriq_store::restore::Standby;
use xxhash_rust::xxh3::xxh3_64;

use super::Turn;
use super::objects::Objects;
use crate::error::ArchiveError;
use crate::fetch::{self, Wanted};
use crate::mark::{Knows, Mark, Part};
use crate::names::SegmentId;
use crate::place::Place;
use crate::progress::Meter;

/// How many bytes of a segment the checksum in a mark is of.
const HEAD_BYTES: usize = HEADER_BYTES / 2;

/// After so many whole segments it is noted that they are here, so that a process that ends need
/// not fetch them again.
const NOTED_EVERY: usize = 32;

/// Segments that grow, as far as they were checked, by their shard.
type Walkers = BTreeMap<(usize, SegmentId), Walker>;

/// The work for one mark.
struct Applying<'a> {
    place: &'a dyn Place,
    standby: &'a mut Standby,
    walkers: &'a mut Walkers,
    objects: Objects<'a>,
    mark: &'a Mark,
    /// For each shard what of the mark is here, without a gap.
    done: Vec<Vec<FollowingSegment>>,
    /// How many whole segments were written since that was noted.
    unnoted: usize,
    written: u64,
}

/// Adds what is missing, and notes the new state. Returns how many bytes were written, or nothing
/// if it was stopped.
pub(super) fn apply(
    place: &dyn Place,
    standby: &mut Standby,
    walkers: &mut Walkers,
    mark: &Mark,
    turn: &mut Turn<'_>,
) -> Result<Option<u64>, ArchiveError> {
    let shards = mark.shards.len();
    let mut meter = Meter::new(mark.segments(), &mut *turn.progress);
    let mut applying = Applying {
        place,
        standby,
        walkers,
        objects: Objects::new(place),
        mark,
        done: vec![Vec::new(); shards],
        unnoted: 0,
        written: 0,
    };
    for shard in 0..shards {
        if !applying.fill(shard, turn.stops, &mut meter)? {
            return Ok(None);
        }
    }
    applying.conclude().map(Some)
}

impl Applying<'_> {
    /// Adds what is missing of a shard. Returns whether it was not stopped.
    fn fill(
        &mut self,
        shard: usize,
        stops: &dyn Fn() -> bool,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ArchiveError> {
        let mark = self.mark;
        let known = &mark.shards[shard];
        for segment in known.whole_segments() {
            if stops() {
                return Ok(false);
            }
            let added = self.add_whole(&self.wanted(shard, segment))?;
            self.done[shard].push(added);
            self.note_ahead()?;
            meter.pass(1);
        }
        for part in &known.parts {
            if stops() {
                return Ok(false);
            }
            let added = self.add_part(&self.wanted(shard, part.segment()), part)?;
            self.done[shard].push(added);
            meter.pass(1);
        }
        Ok(true)
    }

    const fn wanted(&self, shard: usize, segment: SegmentId) -> Wanted {
        Wanted { line: self.mark.line, shard, shards: self.mark.shards.len(), segment }
    }

    /// What is here of a segment.
    fn here(&self, wanted: &Wanted) -> FollowingSegment {
        let SegmentId { number, incarnation } = wanted.segment;
        let none = FollowingSegment { number, incarnation, bytes: 0, whole: false };
        let known = self.standby.known().shards.get(wanted.shard);
        let mut all = known.into_iter().flat_map(|known| known.segments.iter().chain(&known.ahead));
        all.find(|it| id(it) == wanted.segment).copied().unwrap_or(none)
    }

    /// Adds a segment that is there whole, as far as it is not here.
    fn add_whole(&mut self, wanted: &Wanted) -> Result<FollowingSegment, ArchiveError> {
        let here = self.here(wanted);
        if here.whole {
            return Ok(here);
        }
        let name = wanted.name();
        let fetched = fetch::whole(self.place, wanted)?;
        let bytes = fetched.ok_or_else(|| ArchiveError::missing(&name))?.bytes;
        let walk = wanted.check(&name, &bytes)?;
        let from = index(here.bytes);
        let Some((same, more)) = bytes.split_at_checked(from) else {
            return Err(other_than_here(&name, wanted));
        };
        if !same.is_empty() && self.standby.read(wanted.shard, &here, here.bytes)? != same {
            return Err(other_than_here(&name, wanted));
        }
        self.expect_after(&name, wanted, &walk.header)?;
        self.write(wanted, &here, more)?;
        self.unnoted += 1;
        self.walkers.remove(&(wanted.shard, wanted.segment));
        Ok(FollowingSegment { bytes: bytes.len() as u64, whole: true, ..here })
    }

    /// Adds what is new of a segment that grows.
    fn add_part(&mut self, wanted: &Wanted, part: &Part) -> Result<FollowingSegment, ArchiveError> {
        let here = self.here(wanted);
        let name = part.last_name(wanted.line);
        if here.bytes > part.bytes {
            return Err(other_than_here(&name, wanted));
        }
        let after = self.standby.known().mark;
        let more = self.objects.behind(wanted, part, (here.bytes, after))?;
        let head = if here.bytes == 0 {
            more.get(..HEAD_BYTES).unwrap_or_default().to_vec()
        } else {
            self.standby.read(wanted.shard, &here, HEAD_BYTES as u64)?
        };
        if xxh3_64(&head) != part.head {
            return Err(other_than_here(&name, wanted));
        }
        if more.is_empty() {
            return Ok(FollowingSegment { whole: false, ..here });
        }
        let walker = self.checked(&name, wanted, (&here, more.as_slice()))?;
        let header = walker.walk().header;
        wanted.check_header(&name, &header)?;
        self.expect_after(&name, wanted, &header)?;
        self.write(wanted, &here, &more)?;
        self.walkers.insert((wanted.shard, wanted.segment), walker);
        Ok(FollowingSegment { bytes: part.bytes, whole: false, ..here })
    }

    /// Checks the commits of a segment behind what is here.
    fn checked(
        &mut self,
        name: &str,
        wanted: &Wanted,
        (here, more): (&FollowingSegment, &[u8]),
    ) -> Result<Walker, ArchiveError> {
        let fail = |error| ArchiveError::of_segment(name, error);
        let known = self.walkers.remove(&(wanted.shard, wanted.segment));
        let known = known.filter(|walker| walker.walk().end as u64 == here.bytes);
        let (mut walker, more) = if let Some(walker) = known {
            (walker, more)
        } else if here.bytes == 0 {
            let (header, commits) = more.split_at(more.len().min(HEADER_BYTES));
            (Walker::begin(name, header).map_err(fail)?, commits)
        } else {
            let bytes = self.standby.read(wanted.shard, here, here.bytes)?;
            let (header, commits) = bytes.split_at(bytes.len().min(HEADER_BYTES));
            let mut walker = Walker::begin(name, header).map_err(fail)?;
            if !commits.is_empty() {
                walker.push(name, commits, &mut |_| {}).map_err(fail)?;
            }
            (walker, more)
        };
        if !more.is_empty() {
            walker.push(name, more, &mut |_| {}).map_err(fail)?;
        }
        Ok(walker)
    }

    /// Refuses a segment that does not follow the one before. Only the journal looks at the numbers
    /// of commits across segments, when it goes on from here.
    fn expect_after(
        &self,
        name: &str,
        wanted: &Wanted,
        header: &RawHeader,
    ) -> Result<(), ArchiveError> {
        let before = self.done[wanted.shard].last();
        if before.is_none_or(|before| before.bytes == header.previous_end) {
            return Ok(());
        }
        let what = format!(
            "segment {} of shard {} does not follow the one before",
            wanted.segment.number, wanted.shard
        );
        Err(ArchiveError::damaged(name, what))
    }

    fn write(
        &mut self,
        wanted: &Wanted,
        here: &FollowingSegment,
        more: &[u8],
    ) -> Result<(), ArchiveError> {
        if !more.is_empty() {
            self.standby.write(wanted.shard, here, (here.bytes, more))?;
            self.written += more.len() as u64;
        }
        Ok(())
    }

    /// Notes from time to time which whole segments are here that do not count yet.
    fn note_ahead(&mut self) -> Result<(), ArchiveError> {
        if self.unnoted < NOTED_EVERY {
            return Ok(());
        }
        self.unnoted = 0;
        let mut known = self.standby.known().clone();
        for (shard, done) in known.shards.iter_mut().zip(&self.done) {
            let counts: BTreeSet<SegmentId> = shard.segments.iter().map(id).collect();
            // What grows counts as far as it was noted, and no further.
            let whole = done.iter().filter(|it| it.whole && !counts.contains(&id(it)));
            let ahead: BTreeMap<SegmentId, FollowingSegment> =
                shard.ahead.iter().chain(whole).map(|it| (id(it), *it)).collect();
            shard.ahead = ahead.into_values().collect();
        }
        self.standby.note(known)?;
        Ok(())
    }

    /// Notes the new state.
    fn conclude(self) -> Result<u64, ArchiveError> {
        let Self { standby, walkers, mark, done, written, .. } = self;
        let (before, latest) = (standby.known().clone(), mark.latest_ms);
        let mut shards = Vec::new();
        for ((segments, shard), highest) in done.into_iter().zip(&before.shards).zip(&mark.highest)
        {
            let Knows { incarnation, last_number } = *highest;
            let start = shard.start;
            shards.push(FollowingShard {
                start: FollowingStart { now_ms: start.now_ms.max(latest), ..start },
                highest: FollowingStart { incarnation, now_ms: latest, last_number },
                segments,
                ahead: Vec::new(),
            });
        }
        let known = Following { mark: mark.number, at_ms: mark.at_ms, shards, ..before };
        walkers.retain(|(shard, segment), _| {
            let segments = known.shards.get(*shard).map(|shard| &shard.segments);
            segments.and_then(|all| all.last()).is_some_and(|last| id(last) == *segment)
        });
        standby.note(known)?;
        Ok(written)
    }
}

const fn id(segment: &FollowingSegment) -> SegmentId {
    SegmentId { number: segment.number, incarnation: segment.incarnation }
}

/// What is here of a segment is no part of what the place has.
fn other_than_here(name: &str, wanted: &Wanted) -> ArchiveError {
    let what = format!(
        "segment {} of shard {} is not the one that was followed: follow into an empty directory",
        wanted.segment.number, wanted.shard
    );
    ArchiveError::damaged(name, what)
}
