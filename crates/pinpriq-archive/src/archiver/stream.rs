//! What is new of a cut since the one before it: the objects to send, and the mark that names all.
//!
//! Of each shard, segments that have become full are sent whole, and of the last one the bytes that
//! were added. Every commit is checked, once for each time that it is sent. Nothing is written
//! here: objects go to whoever sends them.

use std::collections::BTreeMap;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::StoreError;
use pinpriq_store::disk::index;
use pinpriq_store::journal::raw::{self, HEADER_BYTES, RawCommit, RawWalk, Walker};

use crate::backup::ground::{Head, check_cut, id, read, unfit, unlike};
use crate::backup::prior::{full, since};
use crate::backup::sending::{OBJECT_BYTES_MAX, SERVED_CHAIN_MAX, number_of};
use crate::backup::{refuse_last_number, refuse_late};
use crate::error::ArchiveError;
use crate::fetch::Wanted;
use crate::listed::PartsListed;
use crate::mark::{By, Mark, Part, ShardMark};
use crate::names::{self, LineId};
use crate::object::Writer;
use crate::place::Place;
use crate::sealed::FORMAT;
use crate::source::{CutInfo, SegmentEnd, Source, SourceError};

/// How many numbers beyond that of the first mark are looked at for objects without a mark.
const LEFT_MAX: u64 = 64;

/// What the next draft goes on from.
pub(super) struct Stream {
    /// The last mark that was drafted.
    mark: Mark,
    /// The segments of its cut.
    shards: Vec<Vec<SegmentEnd>>,
    /// For each shard the check of its last segment, as far as it was sent. None: it was not begun
    /// here.
    walkers: Vec<Option<Walker>>,
    /// The numbers of the first free objects of parts of later marks, where some are taken: drafts
    /// that failed have left them.
    left: BTreeMap<u64, u32>,
}

/// An object to send.
pub(super) struct Parcel {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// The segment, if it is a whole one, and its last commit.
    pub(super) whole: Option<(Wanted, Option<RawCommit>)>,
    /// The number of the mark that will name it first.
    pub(super) mark: u64,
}

/// A mark whose objects were handed over.
pub(super) struct Drafted {
    pub(super) mark: Mark,
    pub(super) objects: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_sent: u64,
}

/// Where objects go.
pub(super) type Post<'a> = dyn FnMut(Parcel) -> Result<(), ArchiveError> + 'a;

impl Stream {
    /// Goes on after the mark of a cut. Looks what drafts that failed have left in the place.
    pub(super) fn after(mark: Mark, cut: CutInfo, place: &dyn Place) -> Result<Self, ArchiveError> {
        let mut listed = PartsListed::new(place, mark.line);
        let mut left = BTreeMap::new();
        for number in mark.number + 1..=mark.number + LEFT_MAX {
            let free = listed.next_object(number)?;
            if free > 0 {
                left.insert(number, free);
            }
        }
        let walkers = cut.shards.iter().map(|_| None).collect();
        Ok(Self { mark, shards: cut.shards, walkers, left })
    }

    /// Whether a cut has the same as the last one.
    pub(super) fn is_at(&self, cut: &CutInfo) -> bool {
        self.shards == cut.shards
    }

    /// The number of the last mark that was drafted.
    pub(super) const fn number(&self) -> u64 {
        self.mark.number
    }

    /// Hands over what is new of a cut, and drafts its mark. After a failure this is of no use any
    /// more.
    pub(super) fn draft(
        &mut self,
        source: &mut dyn Source,
        place: &dyn Place,
        post: &mut Post<'_>,
    ) -> Result<Drafted, ArchiveError> {
        let cut = source.cut().clone();
        check_cut(&cut)?;
        if cut.shards.len() != self.mark.shards.len() {
            return Err(SourceError::new("the server has another number of shards now").into());
        }
        let number = self.mark.number + 1;
        refuse_last_number(place, number)?;
        let mut moments = Vec::new();
        for (shard, known) in self.mark.shards.iter().enumerate() {
            moments.push(since(source, &cut, Some(known), shard)?);
        }
        let since = moments.iter().copied().max().unwrap_or_default();
        refuse_late(since, cut.at)?;
        let object = self.left.get(&number).copied().unwrap_or_default();
        let line = self.mark.line;
        let mut sending = Sending::new(source, post, &cut, (line, number, object));
        let mut shards = Vec::new();
        for (shard, known) in self.mark.shards.iter().enumerate() {
            shards.push(sending.hand_over_whole(shard, known)?);
        }
        for (shard, (known, walker)) in self.mark.shards.iter().zip(&mut self.walkers).enumerate() {
            sending.hand_over_part(shard, known, walker, &mut shards)?;
        }
        sending.flush(&mut shards)?;
        let Sending { objects, bytes_read, bytes_sent, latest, .. } = sending;
        for (shard, moment) in shards.iter_mut().zip(moments) {
            shard.since_ms = moment.ms();
        }
        let mark = Mark {
            format: FORMAT,
            number,
            line,
            by: By::Serve,
            at_ms: cut.at.ms(),
            since_ms: since.ms(),
            shards,
            highest: Vec::new(),
            latest_ms: latest.ms(),
        };
        self.mark = mark.after(Some(&self.mark));
        self.shards = cut.shards;
        Ok(Drafted { mark: self.mark.clone(), objects, bytes_read, bytes_sent })
    }
}

/// One draft.
struct Sending<'a> {
    source: &'a mut dyn Source,
    post: &'a mut Post<'a>,
    cut: &'a CutInfo,
    line: LineId,
    /// The number of its mark.
    number: u64,
    /// The number that the next object of parts has among those of its mark.
    object: u32,
    /// Parts that were not handed over yet.
    writer: Writer,
    /// The shards that have a part in it.
    gathered: Vec<usize>,
    objects: u64,
    bytes_read: u64,
    bytes_sent: u64,
    latest: Timestamp,
}

impl<'a> Sending<'a> {
    fn new(
        source: &'a mut dyn Source,
        post: &'a mut Post<'a>,
        cut: &'a CutInfo,
        (line, number, object): (LineId, u64, u32),
    ) -> Self {
        Self {
            source,
            post,
            cut,
            line,
            number,
            object,
            writer: Writer::default(),
            gathered: Vec::new(),
            objects: 0,
            bytes_read: 0,
            bytes_sent: 0,
            latest: Timestamp::ZERO,
        }
    }

    /// Hands over the segments of a shard that are full and that the mark before does not have as a
    /// whole. Returns what the mark says of the shard, without its parts.
    fn hand_over_whole(
        &mut self,
        shard: usize,
        known: &ShardMark,
    ) -> Result<ShardMark, ArchiveError> {
        let cut = self.cut;
        let segments = &cut.shards[shard];
        let mut mark = ShardMark::begun(segments.last().map_or(0, |it| it.incarnation));
        mark.last_number = known.last_number;
        for segment in full(segments) {
            mark.push_whole(id(segment));
            if known.has_whole(id(segment)) {
                continue;
            }
            let bytes = self.read(shard, segment, 0)?;
            let walk = raw::walk("the segment", &bytes, None);
            let walk = walk.map_err(|error| unfit(shard, segment.number, &error))?;
            self.note(shard, segment, &walk, &mut mark)?;
            let wanted = self.wanted(shard, segment);
            let mut writer = Writer::default();
            writer.add((number_of(shard), wanted.segment), 0, &bytes)?;
            drop(bytes);
            self.hand_over(wanted.name(), writer, Some((wanted, walk.last)))?;
        }
        Ok(mark)
    }

    /// Gathers what is new of the last segment of a shard, and adds it to what the mark says.
    fn hand_over_part(
        &mut self,
        shard: usize,
        known: &ShardMark,
        walker: &mut Option<Walker>,
        shards: &mut [ShardMark],
    ) -> Result<(), ArchiveError> {
        let cut = self.cut;
        let Some(segment) = cut.shards[shard].last() else { return Ok(()) };
        let before = known.parts.last().filter(|part| part.segment() == id(segment));
        if let Some(part) = before.filter(|part| part.bytes >= segment.bytes) {
            if part.bytes > segment.bytes {
                return Err(unlike(shard, segment));
            }
            shards[shard].parts.push(part.clone());
            return Ok(());
        }
        let before = before.filter(|part| part.count_objects() < SERVED_CHAIN_MAX);
        let before = before.filter(|part| !part.is_scattered());
        let from = before.map_or(0, |part| part.bytes);
        let more = self.read(shard, segment, from)?;
        let (mut part, mut checked, commits) = if let Some(part) = before {
            let known = walker.take().filter(|it| it.walk().end == index(from));
            let again = || self.walk_again(shard, segment, part);
            (part.clone(), known.map_or_else(again, Ok)?, more.as_slice())
        } else {
            let (head, begun, commits) = begun(shard, segment, &more)?;
            let SegmentEnd { number, incarnation, .. } = *segment;
            let objects = Vec::new();
            (Part { number, incarnation, bytes: 0, head: head.sum(), objects }, begun, commits)
        };
        let pushed = checked.push("the segment", commits, &mut |_| {});
        pushed.map_err(|error| unfit(shard, segment.number, &error))?;
        let walk = checked.walk();
        if walk.last.is_none() || walk.end as u64 != segment.bytes {
            return Err(unlike(shard, segment));
        }
        self.note(shard, segment, &walk, &mut shards[shard])?;
        let room = OBJECT_BYTES_MAX.saturating_sub(self.writer.raw_bytes());
        if more.len() as u64 > room {
            self.flush(shards)?;
        }
        self.writer.add((number_of(shard), id(segment)), from, &more)?;
        self.gathered.push(shard);
        part.bytes = segment.bytes;
        shards[shard].parts.push(part);
        *walker = Some(checked);
        Ok(())
    }

    /// Hands over the parts that were gathered, and begins anew.
    fn flush(&mut self, shards: &mut [ShardMark]) -> Result<(), ArchiveError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let name = names::parts(self.line, self.number, self.object);
        let writer = std::mem::take(&mut self.writer);
        self.hand_over(name, writer, None)?;
        for shard in self.gathered.drain(..) {
            if let Some(part) = shards[shard].parts.last_mut() {
                part.push(self.number, self.object);
            }
        }
        self.object = self.object.saturating_add(1);
        Ok(())
    }

    fn hand_over(
        &mut self,
        name: String,
        writer: Writer,
        whole: Option<(Wanted, Option<RawCommit>)>,
    ) -> Result<(), ArchiveError> {
        let bytes = writer.finish();
        self.objects += 1;
        self.bytes_sent += bytes.len() as u64;
        (self.post)(Parcel { name, bytes, whole, mark: self.number })
    }

    /// Checks what was sent of a segment once more, so that the check can go on from there.
    fn walk_again(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
        part: &Part,
    ) -> Result<Walker, ArchiveError> {
        self.bytes_read += part.bytes;
        let bytes = read(self.source, shard, segment.number, (0, part.bytes), &mut |_| {})?;
        let (head, mut walker, commits) = begun(shard, segment, &bytes)?;
        if !head.has_sum(part.head) {
            return Err(unlike(shard, segment));
        }
        let pushed = walker.push("the segment", commits, &mut |_| {});
        pushed.map_err(|error| unfit(shard, segment.number, &error))?;
        Ok(walker)
    }

    /// Reads a segment from an offset on.
    fn read(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
        from: u64,
    ) -> Result<Vec<u8>, ArchiveError> {
        self.bytes_read += segment.bytes.saturating_sub(from);
        read(self.source, shard, segment.number, (from, segment.bytes), &mut |_| {})
    }

    /// Notes what a segment has, unless it is another one than the server says.
    fn note(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
        walk: &RawWalk,
        mark: &mut ShardMark,
    ) -> Result<(), ArchiveError> {
        let wanted = self.wanted(shard, segment);
        if wanted.check_header("the segment", &walk.header).is_err() {
            return Err(unlike(shard, segment));
        }
        if let Some(last) = walk.last {
            mark.last_number = mark.last_number.max(last.last_number);
            self.latest = self.latest.max(last.now);
        }
        Ok(())
    }

    fn wanted(&self, shard: usize, segment: &SegmentEnd) -> Wanted {
        Wanted { line: self.line, shard, shards: self.cut.shards.len(), segment: id(segment) }
    }
}

/// The header of a segment, the check of it, and the commits that come first. The segment begins
/// with `bytes`.
fn begun<'b>(
    shard: usize,
    segment: &SegmentEnd,
    bytes: &'b [u8],
) -> Result<(Head, Walker, &'b [u8]), ArchiveError> {
    let unfit = |error: StoreError| unfit(shard, segment.number, &error);
    let (header, commits) = bytes.split_at(bytes.len().min(HEADER_BYTES));
    let head = Head::of(header).map_err(unfit)?;
    let walker = Walker::begin("the segment", header).map_err(unfit)?;
    Ok((head, walker, commits))
}
