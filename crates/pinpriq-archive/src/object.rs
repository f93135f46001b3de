//! The bytes of an object with parts of segments: pieces, each compressed by itself, behind a table
//! that says what they are. They are those of `docs/internals/archive.md`.
//!
//! Everything here works on memory. Reading accepts any bytes and trusts no length that it has not
//! compared with what is there. What is in a segment is not looked at.

use std::io::Cursor;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use crate::error::ArchiveError;
use crate::names::SegmentId;

/// The most bytes of a piece before compression.
pub const PIECE_BYTES: usize = 8 << 20;

/// The format that is written, and the highest that is read.
pub const FORMAT: u32 = 1;

/// The level of compression. Higher ones take twice the time for the commits of small tasks, and
/// save nothing.
const LEVEL: i32 = 1;

const MAGIC: &[u8; 8] = b"PINPRIQA";

/// The bytes before the table.
const HEAD_BYTES: usize = 24;

/// The bytes of a piece in the table.
const ENTRY_BYTES: usize = 40;

/// What the table says about a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The shard.
    pub shard: u32,
    /// The segment.
    pub segment: SegmentId,
    /// Where the piece begins in the segment.
    pub from: u64,
    /// Its bytes before compression.
    pub raw_bytes: u32,
    /// Its bytes in the object.
    pub stored_bytes: u32,
    /// The checksum of the bytes in the object.
    pub sum: u64,
}

/// Collects pieces for an object.
#[derive(Debug, Default)]
pub struct Writer {
    pieces: Vec<Piece>,
    frames: Vec<u8>,
    raw_bytes: u64,
}

/// An object that was read.
#[derive(Debug)]
pub struct Object {
    name: String,
    pieces: Vec<(Piece, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Writer {
    /// Adds bytes of a segment that begin there at `from`, in as many pieces as it takes.
    pub fn add(
        &mut self,
        (shard, segment): (u32, SegmentId),
        from: u64,
        bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        let fail = |what: String| ArchiveError::Packing { what };
        let mut compressor = Compressor::new(LEVEL).map_err(|error| fail(error.to_string()))?;
        let mut from = from;
        for raw in bytes.chunks(PIECE_BYTES) {
            // Each frame is made where it stays: memory for it elsewhere costs half as much time as
            // the compression.
            let before = self.frames.len();
            self.frames.reserve(compress_bound(raw.len()));
            let mut place = Cursor::new(std::mem::take(&mut self.frames));
            place.set_position(before as u64);
            let stored = compressor.compress_to_buffer(raw, &mut place);
            self.frames = place.into_inner();
            let stored = stored.map_err(|error| fail(error.to_string()))?;
            let (Ok(raw_bytes), Ok(stored_bytes)) = (u32::try_from(raw.len()), stored.try_into())
            else {
                return Err(fail("a piece is too large".to_owned()));
            };
            let sum = xxh3_64(&self.frames[before..]);
            self.pieces.push(Piece { shard, segment, from, raw_bytes, stored_bytes, sum });
            self.raw_bytes += u64::from(raw_bytes);
            from += u64::from(raw_bytes);
        }
        Ok(())
    }

    /// Adds the pieces that another one has.
    pub(crate) fn append(&mut self, other: &Self) {
        self.pieces.extend_from_slice(&other.pieces);
        self.frames.extend_from_slice(&other.frames);
        self.raw_bytes += other.raw_bytes;
    }

    /// How many pieces there are so far.
    pub(crate) const fn count(&self) -> usize {
        self.pieces.len()
    }

    /// Their bytes after compression.
    pub(crate) const fn stored_bytes(&self) -> usize {
        self.frames.len()
    }

    /// The bytes so far, before compression.
    #[must_use]
    pub const fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Returns the object.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let mut table = Vec::with_capacity(self.pieces.len() * ENTRY_BYTES);
        for piece in &self.pieces {
            table.extend_from_slice(&piece.shard.to_le_bytes());
            table.extend_from_slice(&piece.segment.number.to_le_bytes());
            table.extend_from_slice(&piece.segment.incarnation.to_le_bytes());
            table.extend_from_slice(&piece.from.to_le_bytes());
            table.extend_from_slice(&piece.raw_bytes.to_le_bytes());
            table.extend_from_slice(&piece.stored_bytes.to_le_bytes());
            table.extend_from_slice(&piece.sum.to_le_bytes());
        }
        let count = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
        let mut head = Vec::with_capacity(HEAD_BYTES + table.len());
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&FORMAT.to_le_bytes());
        head.extend_from_slice(&count.to_le_bytes());
        head.extend_from_slice(&xxh3_64(&table).to_le_bytes());
        head.extend_from_slice(&table);
        let mut bytes = self.frames;
        bytes.splice(0..0, head);
        bytes
    }
}

impl Object {
    /// Reads the table of the object of this name. Accepts any bytes.
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self, ArchiveError> {
        let damaged = |what: &str| ArchiveError::damaged(name, what);
        let mut head = Fields(&bytes);
        if head.array() != Some(*MAGIC) {
            return Err(damaged("it does not begin as an object of an archive"));
        }
        let short = || damaged("it ends within its first bytes");
        let format = head.u32().ok_or_else(short)?;
        if format > FORMAT {
            return Err(ArchiveError::newer(name, format, FORMAT));
        }
        let (count, sum) = head.u32().zip(head.u64()).ok_or_else(short)?;
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(ENTRY_BYTES));
        let table = length.and_then(|length| head.0.get(..length));
        let table = table.ok_or_else(|| damaged("it ends within its table"))?;
        if format == 0 || count == 0 || xxh3_64(table) != sum {
            return Err(damaged("the checksum of its table is bad"));
        }
        let mut pieces = Vec::with_capacity(table.len() / ENTRY_BYTES);
        let mut at = HEAD_BYTES + table.len();
        for entry in table.chunks_exact(ENTRY_BYTES) {
            let piece = Piece::parse(entry).ok_or_else(|| damaged("its table makes no sense"))?;
            let end = usize::try_from(piece.stored_bytes).ok().and_then(|it| at.checked_add(it));
            let end = end.filter(|end| *end <= bytes.len());
            let end = end.ok_or_else(|| damaged("it ends within a piece"))?;
            pieces.push((piece, at..end));
            at = end;
        }
        if at != bytes.len() {
            return Err(damaged("it goes on after its last piece"));
        }
        Ok(Self { name: name.to_owned(), pieces, bytes })
    }

    /// What the table says.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.pieces.iter().map(|(piece, _)| *piece)
    }

    /// Returns the bytes of a piece, counted from 0, before compression.
    pub fn raw(&self, index: usize) -> Result<Vec<u8>, ArchiveError> {
        let damaged =
            |what: &str| ArchiveError::damaged(&self.name, format!("piece {}: {what}", index + 1));
        let found = self.pieces.get(index);
        let (piece, place) = found.ok_or_else(|| damaged("there is none"))?;
        let frame = self.bytes.get(place.clone()).unwrap_or_default();
        if xxh3_64(frame) != piece.sum {
            return Err(damaged("its checksum is bad"));
        }
        // At most 8 MiB: the table was compared with that.
        let most = usize::try_from(piece.raw_bytes).unwrap_or(PIECE_BYTES);
        let raw = zstd::bulk::decompress(frame, most);
        let raw = raw.map_err(|error| damaged(&format!("it cannot be unpacked ({error})")))?;
        if raw.len() == most { Ok(raw) } else { Err(damaged("it has another length")) }
    }
}

impl Piece {
    fn parse(entry: &[u8]) -> Option<Self> {
        let mut fields = Fields(entry);
        let piece = Self {
            shard: fields.u32()?,
            segment: SegmentId { number: fields.u32()?, incarnation: fields.u64()? },
            from: fields.u64()?,
            raw_bytes: fields.u32()?,
            stored_bytes: fields.u32()?,
            sum: fields.u64()?,
        };
        let raw_bytes = usize::try_from(piece.raw_bytes).ok()?;
        let end = piece.from.checked_add(u64::from(piece.raw_bytes));
        let makes_sense = (1..=PIECE_BYTES).contains(&raw_bytes) && end.is_some();
        makes_sense.then_some(piece)
    }
}

/// Bytes that are read from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
