//! What of a shard is in the place already, and from which moment on the cut has everything of it.
//!
//! Nothing is written. What the newest mark of the line names, and is listed, counts as there. What
//! an interrupted backup has left counts if it is read back whole, and is what the server has. Only
//! what this process has created itself is not read once more.

use std::collections::BTreeSet;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::raw::{self, RawCommit};

use super::ground::{Ground, Head, id, read, read_head, unfit};
use crate::error::ArchiveError;
use crate::fetch::{self, Wanted};
use crate::listed;
use crate::mark::ShardMark;
use crate::names::SegmentId;
use crate::place::Place;
use crate::progress::Meter;
use crate::source::{CutInfo, SegmentEnd, Source, SourceError};

/// What is known of a shard before anything is sent.
pub(super) struct Prior {
    /// The whole segments that need not be sent.
    pub(super) there: BTreeSet<SegmentId>,
    /// The earliest moment of which the cut has everything of the shard.
    pub(super) since: Timestamp,
    /// The highest number so far.
    pub(super) last_number: u64,
    /// The latest moment of a commit so far.
    pub(super) latest: Timestamp,
}

impl Prior {
    pub(super) fn look(
        source: &mut dyn Source,
        place: &dyn Place,
        ground: &Ground,
        shard: usize,
        meter: &mut Meter<'_>,
    ) -> Result<Self, ArchiveError> {
        let own = ground.own(shard);
        let mut prior = Self {
            there: BTreeSet::new(),
            since: since(source, &ground.cut, own, shard)?,
            last_number: own.map_or(0, |own| own.last_number),
            latest: Timestamp::ZERO,
        };
        let listed = listed::segments(place, ground.line, shard)?;
        for segment in full(&ground.cut.shards[shard]) {
            let wanted = ground.wanted(shard, segment);
            let is_there = listed.contains(&wanted.segment)
                && (own.is_some_and(|own| own.has_whole(wanted.segment))
                    || prior.was_sent(ground, &wanted)
                    || prior.reads_back(source, place, &wanted, segment).map_err(left_over)?);
            if is_there {
                prior.there.insert(wanted.segment);
                meter.pass(segment.bytes);
            }
        }
        Ok(prior)
    }

    /// Whether this server has created a segment that no mark names: it is durable.
    fn was_sent(&mut self, ground: &Ground, wanted: &Wanted) -> bool {
        let Some(sent) = ground.wholes.find(wanted) else { return false };
        self.note(sent.last);
        true
    }

    /// Whether a segment is there that no mark names, and is what the server has.
    fn reads_back(
        &mut self,
        source: &mut dyn Source,
        place: &dyn Place,
        wanted: &Wanted,
        segment: &SegmentEnd,
    ) -> Result<bool, ArchiveError> {
        let Some(fetched) = fetch::whole(place, wanted)? else { return Ok(false) };
        let name = wanted.name();
        let walk = wanted.check(&name, &fetched.bytes)?;
        let here = read_head(source, wanted.shard, segment)?;
        let there = Head::of(&fetched.bytes);
        let there = there.map_err(|error| ArchiveError::of_segment(&name, error))?;
        if fetched.bytes.len() as u64 != segment.bytes || !here.has_sum(there.sum()) {
            let what = format!("an interrupted backup has left another {name}");
            return Err(ArchiveError::OlderCopy { what });
        }
        // Whoever wrote it may not have come to make its name durable.
        place.settle(&name)?;
        self.note(walk.last);
        Ok(true)
    }

    /// Notes the last commit of a segment that is there.
    fn note(&mut self, last: Option<RawCommit>) {
        if let Some(last) = last {
            self.last_number = self.last_number.max(last.last_number);
            self.latest = self.latest.max(last.now);
        }
    }
}

/// Says what to do about damage in what no mark names.
pub(crate) fn left_over(error: ArchiveError) -> ArchiveError {
    match error {
        ArchiveError::Damaged { name, what } => ArchiveError::LeftOver { name, what },
        other => other,
    }
}

/// The segments that are full: all but the newest.
pub(crate) fn full(segments: &[SegmentEnd]) -> &[SegmentEnd] {
    segments.split_last().map_or(segments, |(_, full)| full)
}

/// Returns the earliest moment of which the segments of a shard have everything: the first commit
/// that needs none before them. If the log begins with them, it is the moment when it began.
///
/// Reads the headers of segments from the newest back, and usually one segment. It reads nothing if
/// the newest mark of the line, whose shard `own` is, begins with the same segment.
pub(crate) fn since(
    source: &mut dyn Source,
    cut: &CutInfo,
    own: Option<&ShardMark>,
    shard: usize,
) -> Result<Timestamp, ArchiveError> {
    let segments = &cut.shards[shard];
    let Some(first) = segments.first() else { return Ok(Timestamp::ZERO) };
    // A start may have taken the place of the commit that was found for the last mark.
    let is_as_before = |own: &&ShardMark| {
        own.first() == first.number
            && own.parts.iter().all(|part| segments.iter().any(|it| id(it) == part.segment()))
    };
    if let Some(own) = own.filter(is_as_before) {
        return Ok(Timestamp::from_ms(own.since_ms));
    }
    let mut from = 0;
    for (index, segment) in segments.iter().enumerate().rev() {
        let Head { header, .. } = read_head(source, shard, segment)?;
        if header.oldest < first.number {
            from = index;
            break;
        }
        if index == 0 && header.first_lsn == 1 {
            return Ok(header.now.min(cut.at));
        }
    }
    for segment in &segments[from..] {
        if let Some(moment) = first_needing(source, shard, segment, first.number)? {
            return Ok(moment);
        }
    }
    let what = format!("the server offers too few segments of shard {shard}: try again");
    Err(SourceError::new(what).into())
}

/// The moment of the first commit of a segment that needs no segment before `first`.
fn first_needing(
    source: &mut dyn Source,
    shard: usize,
    segment: &SegmentEnd,
    first: u32,
) -> Result<Option<Timestamp>, ArchiveError> {
    let bytes = read(source, shard, segment.number, (0, segment.bytes), &mut |_| {})?;
    let mut found = None;
    let mut note = |commit: &RawCommit| {
        if commit.oldest >= first && found.is_none() {
            found = Some(commit.now);
        }
    };
    let walked = raw::walk_each("the segment", &bytes, &mut note);
    walked.map_err(|error| unfit(shard, segment.number, &error))?;
    Ok(found)
}
