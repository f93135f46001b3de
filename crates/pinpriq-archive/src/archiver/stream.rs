//! What is new of a cut since the one before it: the objects to send, and the mark that names all.
//!
//! Of each shard, segments that have become full are sent whole, and of the last one the bytes that
//! were added. What was sent of a segment in a few large parts is kept, and becomes the most of its
//! whole object. Every commit is checked before it is sent. Nothing is written here: objects go to
//! whoever sends them.

use std::collections::BTreeMap;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::StoreError;
use pinpriq_store::journal::raw::{HEADER_BYTES, RawCommit, RawHeader, RawWalk, Walker};

use crate::backup::ground::{Head, check_cut, id, read, read_into, unfit, unlike};
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

/// The most pieces of a segment that are kept for its whole object. More of them are small, and
/// compressed worse than all together.
const KEPT_PIECES_MAX: usize = 32;

/// The most bytes of pieces that are kept, of all shards.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// What the next draft goes on from.
pub(super) struct Stream {
    /// The last mark that was drafted.
    mark: Mark,
    /// The segments of its cut.
    shards: Vec<Vec<SegmentEnd>>,
    /// What goes on with the last segment of each shard. None: it was not begun here.
    begun: Vec<Option<Begun>>,
    /// The numbers of the first free objects of parts of later marks, where some are taken: drafts
    /// that failed have left them.
    left: BTreeMap<u64, u32>,
    /// Memory for what is read, as long as there is much of it: to get more each time takes as long
    /// as to compress it.
    room: Vec<u8>,
}

/// The last segment of a shard, as far as it was sent.
struct Begun {
    /// The check of it.
    walker: Walker,
    /// Its pieces, unless they are too many or too large: what is left of it completes them.
    pieces: Option<Writer>,
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
        let begun = cut.shards.iter().map(|_| None).collect();
        Ok(Self { mark, shards: cut.shards, begun, left, room: Vec::new() })
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
        sending.room = std::mem::take(&mut self.room);
        let mut shards = Vec::new();
        for (shard, (known, begun)) in self.mark.shards.iter().zip(&mut self.begun).enumerate() {
            shards.push(sending.hand_over_whole(shard, known, begun)?);
        }
        for (shard, (known, begun)) in self.mark.shards.iter().zip(&mut self.begun).enumerate() {
            sending.hand_over_part(shard, known, begun, &mut shards)?;
        }
        forget_pieces(self.begun.iter_mut().flatten().map(|begun| &mut begun.pieces));
        sending.flush(&mut shards)?;
        let Sending { objects, bytes_read, bytes_sent, latest, room, .. } = sending;
        // A server that has little to send needs the memory for something else.
        self.room = if bytes_read > room.capacity() as u64 / 4 { room } else { Vec::new() };
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

/// Forgets the pieces of shards that cost more to keep than to make again.
fn forget_pieces<'p>(kept: impl Iterator<Item = &'p mut Option<Writer>>) {
    let mut room = KEPT_BYTES_MAX;
    for of_shard in kept {
        let fits =
            |pieces: &Writer| pieces.count() <= KEPT_PIECES_MAX && pieces.stored_bytes() <= room;
        *of_shard = of_shard.take().filter(fits);
        room -= of_shard.as_ref().map_or(0, Writer::stored_bytes);
    }
}

impl Begun {
    /// Begins a segment, given its first bytes. Returns the commits that come first, too.
    fn first<'b>(
        shard: usize,
        segment: &SegmentEnd,
        bytes: &'b [u8],
    ) -> Result<(Head, Self, &'b [u8]), ArchiveError> {
        let unfit = |error: StoreError| unfit(shard, segment.number, &error);
        let (header, commits) = bytes.split_at(bytes.len().min(HEADER_BYTES));
        let head = Head::of(header).map_err(unfit)?;
        let walker = Walker::begin("the segment", header).map_err(unfit)?;
        Ok((head, Self { walker, pieces: Some(Writer::default()) }, commits))
    }

    /// Where the next piece begins.
    fn end(&self) -> u64 {
        self.walker.walk().end as u64
    }

    /// Whether the object of all of this segment can be made of the pieces.
    fn has_pieces_of(&self, segment: &SegmentEnd) -> bool {
        let RawHeader { number, incarnation, .. } = self.walker.walk().header;
        let is_it = (number, incarnation) == (segment.number, segment.incarnation);
        is_it && self.pieces.is_some() && self.end() <= segment.bytes
    }

    /// Checks the commits that follow. They must be all there are up to the end of the segment.
    fn check(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
        commits: &[u8],
    ) -> Result<RawWalk, ArchiveError> {
        let pushed = self.walker.push("the segment", commits, &mut |_| {});
        pushed.map_err(|error| unfit(shard, segment.number, &error))?;
        let walk = self.walker.walk();
        if walk.end as u64 != segment.bytes {
            return Err(unlike(shard, segment));
        }
        Ok(walk)
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
    /// Memory for what is read.
    room: Vec<u8>,
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
            room: Vec::new(),
        }
    }

    /// Hands over the segments of a shard that are full and that the mark before does not have as a
    /// whole. Returns what the mark says of the shard, without its parts.
    fn hand_over_whole(
        &mut self,
        shard: usize,
        known: &ShardMark,
        begun: &mut Option<Begun>,
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
            let before = begun.take_if(|begun| begun.has_pieces_of(segment));
            let from = before.as_ref().map_or(0, Begun::end);
            let more = self.read(shard, segment, from)?;
            let (mut checked, commits) = if let Some(before) = before {
                (before, more.as_slice())
            } else {
                let (_, checked, commits) = Begun::first(shard, segment, &more)?;
                (checked, commits)
            };
            let walk = checked.check(shard, segment, commits)?;
            self.note(shard, segment, &walk, &mut mark)?;
            let wanted = self.wanted(shard, segment);
            let mut writer = checked.pieces.unwrap_or_default();
            writer.add((number_of(shard), wanted.segment), from, &more)?;
            self.room = more;
            self.hand_over(wanted.name(), writer, Some((wanted, walk.last)))?;
        }
        Ok(mark)
    }

    /// Gathers what is new of the last segment of a shard, and adds it to what the mark says.
    fn hand_over_part(
        &mut self,
        shard: usize,
        known: &ShardMark,
        begun: &mut Option<Begun>,
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
            let known = begun.take().filter(|it| it.end() == from);
            let again = || self.walk_again(shard, segment, part);
            (part.clone(), known.map_or_else(again, Ok)?, more.as_slice())
        } else {
            let (head, first, commits) = Begun::first(shard, segment, &more)?;
            let SegmentEnd { number, incarnation, .. } = *segment;
            let objects = Vec::new();
            (Part { number, incarnation, bytes: 0, head: head.sum(), objects }, first, commits)
        };
        let walk = checked.check(shard, segment, commits)?;
        if walk.last.is_none() {
            return Err(unlike(shard, segment));
        }
        self.note(shard, segment, &walk, &mut shards[shard])?;
        let room = OBJECT_BYTES_MAX.saturating_sub(self.writer.raw_bytes());
        if more.len() as u64 > room {
            self.flush(shards)?;
        }
        let mut pieces = Writer::default();
        pieces.add((number_of(shard), id(segment)), from, &more)?;
        self.writer.append(&pieces);
        self.room = more;
        self.gathered.push(shard);
        if let Some(before) = &mut checked.pieces {
            before.append(&pieces);
        }
        part.bytes = segment.bytes;
        shards[shard].parts.push(part);
        *begun = Some(checked);
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
    ) -> Result<Begun, ArchiveError> {
        self.bytes_read += part.bytes;
        let bytes = read(self.source, shard, segment.number, (0, part.bytes), &mut |_| {})?;
        let (head, first, commits) = Begun::first(shard, segment, &bytes)?;
        if !head.has_sum(part.head) {
            return Err(unlike(shard, segment));
        }
        let mut walker = first.walker;
        let pushed = walker.push("the segment", commits, &mut |_| {});
        pushed.map_err(|error| unfit(shard, segment.number, &error))?;
        Ok(Begun { walker, pieces: None })
    }

    /// Reads a segment from an offset on. Whoever does not need it any more gives it back as room.
    fn read(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
        from: u64,
    ) -> Result<Vec<u8>, ArchiveError> {
        self.bytes_read += segment.bytes.saturating_sub(from);
        let mut bytes = std::mem::take(&mut self.room);
        bytes.clear();
        let (which, bounds) = ((shard, segment.number), (from, segment.bytes));
        read_into(&mut bytes, self.source, which, bounds, &mut |_| {})?;
        Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SegmentId;

    /// So many pieces of these bytes.
    fn pieces(count: usize, bytes: &[u8]) -> Writer {
        let mut writer = Writer::default();
        for _ in 0..count {
            writer.add((0, SegmentId { number: 1, incarnation: 1 }), 0, bytes).unwrap();
        }
        writer
    }

    #[test]
    fn pieces_are_kept_while_they_are_few_and_fit_into_memory() {
        // Half of what may be kept, which cannot be compressed.
        let mut state = 1_u64;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_le_bytes()[7]
        });
        let bytes: Vec<u8> = bytes.take(KEPT_BYTES_MAX / 2 - 4_096).collect();
        let few = |count| Some(pieces(count, b"abc"));
        let large = || Some(pieces(1, &bytes));
        let mut kept = [
            few(KEPT_PIECES_MAX),
            large(),
            few(KEPT_PIECES_MAX + 1),
            large(),
            None,
            large(),
            few(1),
        ];
        forget_pieces(kept.iter_mut());
        let kept = kept.map(|it| it.is_some());
        assert_eq!(kept, [true, true, false, true, false, false, true]);
    }
}
