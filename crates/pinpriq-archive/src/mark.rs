//! Marks: what of a place belongs together, so that a data directory can be made from it.
//!
//! Marks are numbered through the place, whichever line they are of. Each is read for itself:
//! nothing that came before it is needed to know what belongs to it. What no mark names is nothing.
//! Where marks are found is decided in [`catalogue`](crate::catalogue).

use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::raw::HEADER_BYTES;
use pinpriq_store::sealed::hex;
use pinpriq_store::shards::SHARDS_MAX;
use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::names::{LineId, MARK_MAX, SegmentId, parts};
use crate::sealed::{FORMAT, seal, unseal};

/// The most bytes of a segment: one commit of the greatest size, and its headers.
pub(crate) const SEGMENT_BYTES_MAX: u64 = (1 << 30) + (1 << 20);

/// How many bytes of a segment pay for one entry of its objects in every mark.
const BYTES_PER_ENTRY: u64 = 16_384;

/// A part with fewer bytes counts as if it had these.
const SMALL_PART_BYTES: u64 = 1 << 20;

/// What belongs together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// The format of marks.
    pub format: u32,
    /// The number of the mark in its place, from 1.
    pub number: u64,
    /// Whose history it is.
    pub line: LineId,
    /// What wrote it.
    pub by: By,
    /// The latest moment: every commit up to it is there.
    pub at_ms: u64,
    /// The earliest moment whose state can be restored from this mark alone.
    pub since_ms: u64,
    /// For each shard what is there.
    pub shards: Vec<ShardMark>,
    /// For each shard the highest that any mark of the place has known so far, on any line.
    pub highest: Vec<Knows>,
    /// The latest moment of any mark of the place so far.
    pub latest_ms: u64,
}

/// What wrote a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// `pinpriq backup`, which takes one cut.
    Backup,
    /// A server, which goes on and on.
    Serve,
}

/// What of a shard belongs to a mark. The segments follow each other without a gap: first the whole
/// ones, then those in parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShardMark {
    /// Segments that are there whole, oldest first.
    pub whole: Vec<Run>,
    /// Segments that were not full yet, oldest first. There is at least one.
    pub parts: Vec<Part>,
    /// The highest incarnation that the shard knows.
    pub incarnation: u64,
    /// The highest number that the shard knows.
    pub last_number: u64,
    /// The earliest moment of which the shard has everything.
    pub since_ms: u64,
}

/// Segments in a row that one incarnation wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The incarnation.
    pub incarnation: u64,
    /// The number of the first segment.
    pub first: u32,
    /// The number of the last segment.
    pub last: u32,
}

/// A segment that was not full yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The number of the segment.
    pub number: u32,
    /// The incarnation that wrote it.
    pub incarnation: u64,
    /// How far it is there.
    pub bytes: u64,
    /// The checksum of its header, which tells it from another segment with the same number and
    /// incarnation: an older copy of the directory may have gone another way.
    #[serde(with = "hex")]
    pub head: u64,
    /// The objects that its pieces are in, in order.
    pub objects: Vec<Objects>,
}

/// Objects with parts: one of each mark in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Objects {
    /// The number of the first mark.
    pub first: u64,
    /// The number of the last mark.
    pub last: u64,
    /// Which object of these marks.
    pub object: u32,
}

/// The highest that is known of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Knows {
    /// The highest incarnation.
    pub incarnation: u64,
    /// The highest number.
    pub last_number: u64,
}

impl Mark {
    /// The bytes of the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    /// Reads the object of this name. Accepts any bytes.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, ArchiveError> {
        let mark: Self = unseal(name, bytes)?;
        mark.check().map_err(|what| ArchiveError::damaged(name, what))?;
        Ok(mark)
    }

    /// The latest moment.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_ms(self.at_ms)
    }

    /// The earliest moment.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        Timestamp::from_ms(self.since_ms)
    }

    /// How many segments belong to it.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.shards.iter().map(ShardMark::segments).sum()
    }

    /// Adds what the newest mark of the place, if there is one, knows of all lines.
    pub(crate) fn after(mut self, newest: Option<&Self>) -> Self {
        let highest = self.shards.iter().enumerate().map(|(index, shard)| {
            let own = Knows { incarnation: shard.incarnation, last_number: shard.last_number };
            let before = newest.and_then(|mark| mark.highest.get(index)).copied();
            before.map_or(own, |before| own.and(before))
        });
        self.highest = highest.collect();
        let before = newest.map_or(0, |mark| mark.latest_ms);
        self.latest_ms = self.latest_ms.max(self.at_ms).max(before);
        self
    }

    /// Refuses what no program writes, whatever its checksum.
    fn check(&self) -> Result<(), &'static str> {
        let moments_fit = self.since_ms <= self.at_ms
            && self.at_ms <= self.latest_ms
            && self.latest_ms <= Timestamp::MAX.ms();
        let shards_fit = (1..=SHARDS_MAX).contains(&self.shards.len())
            && self.highest.len() == self.shards.len();
        let knows = |(shard, known): (&ShardMark, &Knows)| {
            shard.incarnation <= known.incarnation
                && shard.last_number <= known.last_number
                && shard.since_ms <= self.since_ms
        };
        if self.format != FORMAT || !(1..=MARK_MAX).contains(&self.number) {
            Err("its number makes no sense")
        } else if !moments_fit {
            Err("its moments make no sense")
        } else if !shards_fit || !self.shards.iter().zip(&self.highest).all(knows) {
            Err("its shards make no sense")
        } else if !self.shards.iter().all(|shard| shard.is_in_row(self.number)) {
            Err("its segments make no sense")
        } else {
            Ok(())
        }
    }
}

impl ShardMark {
    /// That of a shard of which nothing is known but its incarnation.
    pub(crate) const fn begun(incarnation: u64) -> Self {
        Self { whole: Vec::new(), parts: Vec::new(), incarnation, last_number: 0, since_ms: 0 }
    }

    /// Adds the next whole segment.
    pub(crate) fn push_whole(&mut self, segment: SegmentId) {
        let SegmentId { number, incarnation } = segment;
        match self.whole.last_mut() {
            Some(run) if run.incarnation == incarnation => run.last = number,
            _ => self.whole.push(Run { incarnation, first: number, last: number }),
        }
    }

    /// The number of the first segment.
    #[must_use]
    pub fn first(&self) -> u32 {
        let part = self.parts.first().map(|part| part.number);
        self.whole.first().map(|run| run.first).or(part).unwrap_or_default()
    }

    /// How many segments there are.
    #[must_use]
    pub fn segments(&self) -> u64 {
        let whole = self.whole.iter().map(|run| u64::from(run.last.saturating_sub(run.first)) + 1);
        whole.sum::<u64>() + self.parts.len() as u64
    }

    /// The whole segments, oldest first.
    pub fn whole_segments(&self) -> impl Iterator<Item = SegmentId> {
        self.whole.iter().flat_map(|run| {
            let incarnation = run.incarnation;
            (run.first..=run.last).map(move |number| SegmentId { number, incarnation })
        })
    }

    /// Whether a segment is there whole.
    #[must_use]
    pub fn has_whole(&self, segment: SegmentId) -> bool {
        let SegmentId { number, incarnation } = segment;
        let covers =
            |run: &Run| run.incarnation == incarnation && (run.first..=run.last).contains(&number);
        self.whole.iter().any(covers)
    }

    /// Whether the segments follow each other without a gap, and are as a program writes them into
    /// the mark of this number.
    fn is_in_row(&self, mark: u64) -> bool {
        let mut next = None;
        let mut follows = |first: u32, last: u32| {
            let fits = next.is_none_or(|next| next == first);
            next = last.checked_add(1);
            // The highest number is never used, so that every segment can have a successor.
            fits && 0 < first && first <= last && next.is_some()
        };
        self.whole.iter().all(|run| follows(run.first, run.last))
            && self.parts.iter().all(|part| follows(part.number, part.number) && part.fits(mark))
            && !self.parts.is_empty()
    }
}

impl Part {
    /// Which segment it is.
    #[must_use]
    pub const fn segment(&self) -> SegmentId {
        SegmentId { number: self.number, incarnation: self.incarnation }
    }

    /// The objects that its pieces are in, in order: the number of the mark, and which object of
    /// that mark.
    pub fn each_object(&self) -> impl Iterator<Item = (u64, u32)> {
        let each = |run: &Objects| {
            let object = run.object;
            (run.first..=run.last).map(move |mark| (mark, object))
        };
        self.objects.iter().flat_map(each)
    }

    /// The name of the object with the last of its pieces, if there is any.
    pub(crate) fn last_name(&self, line: LineId) -> String {
        self.objects.last().map_or_else(String::new, |run| parts(line, run.last, run.object))
    }

    /// How many objects there are.
    pub(crate) fn count_objects(&self) -> u64 {
        self.objects.iter().map(|run| run.last.saturating_sub(run.first) + 1).sum()
    }

    /// Whether the list of its objects has so many entries that each mark with it costs more than
    /// to send the part once more: there is a new entry whenever a mark had nothing new of it.
    pub(crate) fn is_scattered(&self) -> bool {
        self.objects.len() as u64 * BYTES_PER_ENTRY > self.bytes.max(SMALL_PART_BYTES)
    }

    /// Adds an object, which has the following pieces.
    pub(crate) fn push(&mut self, mark: u64, object: u32) {
        match self.objects.last_mut() {
            Some(run) if run.object == object && run.last + 1 == mark => run.last = mark,
            _ => self.objects.push(Objects { first: mark, last: mark, object }),
        }
    }

    fn fits(&self, mark: u64) -> bool {
        let mut before = 0;
        let follows = |run: &Objects| {
            let fits = before < run.first && run.first <= run.last && run.last <= mark;
            before = run.last;
            fits
        };
        (HEADER_BYTES as u64..=SEGMENT_BYTES_MAX).contains(&self.bytes)
            && !self.objects.is_empty()
            && self.objects.iter().all(follows)
    }
}

impl Knows {
    /// The higher of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            incarnation: self.incarnation.max(other.incarnation),
            last_number: self.last_number.max(other.last_number),
        }
    }
}
