//! Sends what a place does not have yet: whole segments, and parts of those that are not full.
//!
//! Every commit is checked before it is sent, and what was sent is read back. One segment is in
//! memory at a time, with the object that it becomes.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::index;
use pinpriq_store::journal::raw::{self, RawWalk};

use super::ground::{Ground, id, read, unfit, unlike};
use super::prior::{Prior, full};
use crate::error::ArchiveError;
use crate::fetch;
use crate::line::Line;
use crate::listed::PartsListed;
use crate::mark::{By, Part, ShardMark};
use crate::names::{self, SegmentId};
use crate::object::Writer;
use crate::place::Place;
use crate::progress::Meter;
use crate::source::{SegmentEnd, Source};

/// The most bytes of parts in one object, before compression, unless one part has more.
pub(crate) const OBJECT_BYTES_MAX: u64 = 32 << 20;

/// The most objects that a part may be spread over by backups. Then it is sent once more as one.
const CHAIN_MAX: u64 = 100;

/// The same for a server that archives by itself, and sends a little each second.
pub(crate) const SERVED_CHAIN_MAX: u64 = 1_000;

/// Sends what is missing.
pub(super) struct Sending<'a> {
    source: &'a mut dyn Source,
    place: &'a dyn Place,
    ground: &'a Ground,
    meter: Meter<'a>,
    sent: Sent,
}

/// What was sent.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) objects: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    /// The latest moment of a commit in it.
    pub(super) latest: Timestamp,
}

/// An object of parts that is not sent yet.
struct Draft {
    writer: Writer,
    /// The shards that have a part in it.
    shards: Vec<usize>,
    /// The number that it will have among those of its mark.
    number: u32,
}

impl<'a> Sending<'a> {
    pub(super) fn new(
        source: &'a mut dyn Source,
        place: &'a dyn Place,
        ground: &'a Ground,
        meter: Meter<'a>,
    ) -> Self {
        let latest = Timestamp::ZERO;
        let sent = Sent { objects: 0, bytes_read: 0, bytes_written: 0, latest };
        Self { source, place, ground, meter, sent }
    }

    pub(super) const fn sent(&self) -> Sent {
        self.sent
    }

    /// Says what the line is, if the place does not know it.
    pub(super) fn send_line(&mut self) -> Result<(), ArchiveError> {
        let Ground { line, has_line, cut, .. } = self.ground;
        if *has_line {
            return Ok(());
        }
        let shards = u32::try_from(cut.shards.len()).unwrap_or(u32::MAX);
        let bytes = Line::fresh(*line, shards, cut.at.ms()).encode();
        let name = names::line(*line);
        if self.place.create(&name, &bytes)? {
            return self.note_sent(&name, &bytes);
        }
        // Another backup of the same directory came first, and said the same.
        let there = Line::read(self.place, *line)?.map(|_| ());
        there.ok_or_else(|| ArchiveError::missing(&name))
    }

    /// Sends the segments of a shard that are full and are not there yet. Returns what a mark says
    /// of the shard, without its parts.
    pub(super) fn send_whole(
        &mut self,
        shard: usize,
        prior: &Prior,
    ) -> Result<ShardMark, ArchiveError> {
        let ground = self.ground;
        let segments = &ground.cut.shards[shard];
        let incarnation = segments.last().map_or(0, |segment| segment.incarnation);
        let mut mark = ShardMark::begun(incarnation);
        for segment in full(segments) {
            mark.push_whole(id(segment));
            if !prior.there.contains(&id(segment)) {
                let last_number = self.send_one(shard, segment)?;
                mark.last_number = mark.last_number.max(last_number);
            }
        }
        Ok(mark)
    }

    /// Sends a segment. Returns the highest number that it knows.
    fn send_one(&mut self, shard: usize, segment: &SegmentEnd) -> Result<u64, ArchiveError> {
        let (bytes, walk) = self.read(shard, segment)?;
        let wanted = self.ground.wanted(shard, segment);
        let mut writer = Writer::default();
        writer.add((number_of(shard), wanted.segment), 0, &bytes)?;
        let (name, object) = (wanted.name(), writer.finish());
        if self.place.create(&name, &object)? {
            self.note_sent(&name, &object)?;
        } else {
            // Another backup of the same server came first.
            drop(object);
            let there = fetch::whole(self.place, &wanted)?;
            if there.is_none_or(|there| there.bytes != bytes) {
                let what = format!("another backup has written another {name}");
                return Err(ArchiveError::OlderCopy { what });
            }
            self.place.settle(&name)?;
        }
        self.ground.wholes.note(&wanted, walk.last);
        Ok(walk.last.map_or(0, |last| last.last_number))
    }

    /// Sends what is new of the newest segments, and adds them to what a mark says of the shards.
    pub(super) fn send_parts(&mut self, shards: &mut [ShardMark]) -> Result<(), ArchiveError> {
        let ground = self.ground;
        let mut listed = PartsListed::new(self.place, ground.line);
        let number = listed.next_object(ground.next_mark())?;
        let mut draft = Draft { writer: Writer::default(), shards: Vec::new(), number };
        for (shard, segments) in ground.cut.shards.iter().enumerate() {
            let Some(segment) = segments.last() else { continue };
            let (bytes, walk) = self.read(shard, segment)?;
            let mut part = self.begun(shard, segment, &mut listed)?;
            let from = index(part.bytes);
            let more = bytes.get(from..).unwrap_or_default();
            let room = OBJECT_BYTES_MAX.saturating_sub(draft.writer.raw_bytes());
            if more.len() as u64 > room {
                self.flush(&mut draft, shards)?;
            }
            if !more.is_empty() {
                draft.writer.add((number_of(shard), id(segment)), part.bytes, more)?;
                draft.shards.push(shard);
            }
            part.bytes = segment.bytes;
            let mark = &mut shards[shard];
            mark.parts.push(part);
            let last_number = walk.last.map_or(0, |last| last.last_number);
            mark.last_number = mark.last_number.max(last_number);
        }
        self.flush(&mut draft, shards)
    }

    /// What the place has of a segment that is not full. Nothing counts if some of it is gone, or
    /// if it is spread over too many objects.
    fn begun(
        &self,
        shard: usize,
        segment: &SegmentEnd,
        listed: &mut PartsListed<'_>,
    ) -> Result<Part, ArchiveError> {
        let SegmentId { number, incarnation } = id(segment);
        let head = self.ground.heads[shard].sum();
        let nothing = Part { number, incarnation, bytes: 0, head, objects: Vec::new() };
        let own = self.ground.own(shard).and_then(|own| own.parts.last());
        let most = match self.ground.by {
            By::Backup => CHAIN_MAX,
            By::Serve => SERVED_CHAIN_MAX,
        };
        let fits = |part: &&Part| part.segment() == id(segment) && part.count_objects() < most;
        let Some(part) = own.filter(fits) else { return Ok(nothing) };
        for (mark, object) in part.each_object() {
            if !listed.has(mark, object)? {
                return Ok(nothing);
            }
        }
        Ok(part.clone())
    }

    /// Sends the parts that were gathered, and begins anew.
    fn flush(&mut self, draft: &mut Draft, shards: &mut [ShardMark]) -> Result<(), ArchiveError> {
        if draft.shards.is_empty() {
            return Ok(());
        }
        let (mark, number) = (self.ground.next_mark(), draft.number);
        let name = names::parts(self.ground.line, mark, number);
        let object = std::mem::take(&mut draft.writer).finish();
        if !self.place.create(&name, &object)? {
            let what = "another backup into this place is under way".to_owned();
            return Err(ArchiveError::Taken { what });
        }
        self.note_sent(&name, &object)?;
        for shard in draft.shards.drain(..) {
            if let Some(part) = shards[shard].parts.last_mut() {
                part.push(mark, number);
            }
        }
        draft.number = number.checked_add(1).ok_or_else(|| ArchiveError::Taken {
            what: "too many backups into this place were interrupted".to_owned(),
        })?;
        Ok(())
    }

    /// Reads a segment from the source, and checks every commit.
    fn read(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
    ) -> Result<(Vec<u8>, RawWalk), ArchiveError> {
        let meter = &mut self.meter;
        let mut note = |bytes| meter.pass(bytes);
        let bytes = read(self.source, shard, segment.number, (0, segment.bytes), &mut note)?;
        self.sent.bytes_read += segment.bytes;
        let walk = raw::walk("the segment", &bytes, None);
        let walk = walk.map_err(|error| unfit(shard, segment.number, &error))?;
        let wanted = self.ground.wanted(shard, segment);
        if wanted.check_header("the segment", &walk.header).is_err() {
            return Err(unlike(shard, segment));
        }
        self.sent.latest = walk.last.map_or(self.sent.latest, |it| it.now.max(self.sent.latest));
        Ok((bytes, walk))
    }

    /// Notes an object that was written, and compares it.
    fn note_sent(&mut self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.sent.objects += 1;
        self.sent.bytes_written += bytes.len() as u64;
        compare(self.place, name, bytes)
    }
}

/// Refuses an object that does not come back from the place as it was written.
pub(crate) fn compare(place: &dyn Place, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    match place.get(name)? {
        Some(found) if found == bytes => Ok(()),
        Some(_) => Err(ArchiveError::damaged(name, "it does not come back as it was written")),
        None => Err(ArchiveError::missing(name)),
    }
}

/// The number of a shard as objects have it.
pub(crate) fn number_of(shard: usize) -> u32 {
    u32::try_from(shard).unwrap_or(u32::MAX)
}
