//! The framing of a segment file: its header, the header of a batch, checksums, and the names of
//! the files. The bytes are those of `docs/internals/journal.md`.
//!
//! Everything here works on memory. Parsing is total: any bytes give a header or nothing.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::disk::{HEAD_NAME, LOCK_NAME, RESTORED_NAME};

/// The version that is written, and the highest that is read.
pub const FORMAT_VERSION: u32 = 4;

/// The first version whose segments say which journal they belong to.
const IDENTITY_VERSION: u32 = 3;

/// The bytes of one copy of the segment header.
pub(crate) const HEADER_COPY_BYTES: usize = 4096;

/// The number of bytes of a segment header that have a meaning.
const HEADER_FIELDS_BYTES: usize = 88;

/// Where the first batch of a segment begins.
pub(crate) const SEGMENT_START: u64 = 8192;

/// The size of a batch header in bytes.
pub(crate) const BATCH_HEADER_BYTES: usize = 64;

/// The most bytes of one batch, its header included. This keeps every offset in four bytes, with
/// room to spare.
pub(crate) const BATCH_BYTES_MAX: u64 = 1 << 30;

/// The limit of every counter. No server reaches it, and one more always fits.
pub(crate) const COUNT_MAX: u64 = 1 << 62;

const SEGMENT_MAGIC: &[u8; 8] = b"PINPRIQJ";
const BATCH_MAGIC: [u8; 4] = 0x5051_4231_u32.to_le_bytes();

/// Short batches are joined into one piece for their checksum, which is faster than feeding the
/// hash twice.
const ONE_SHOT_BYTES: usize = 448;

/// Which journal of which data directory a segment belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The data directory's own random number.
    pub directory: u64,
    /// Which of its shards, from 0.
    pub shard: u32,
    /// The number of its shards.
    pub shards: u32,
}

/// The fields of a segment header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The version of the server that began the segment.
    pub(crate) version: u32,
    pub(crate) number: u32,
    pub(crate) oldest: u32,
    pub(crate) salt: u64,
    pub(crate) first_lsn: u64,
    pub(crate) previous_end: u64,
    pub(crate) incarnation: u64,
    pub(crate) now: u64,
    /// None in older versions.
    pub(crate) identity: Option<Identity>,
}

/// The result of reading the two copies of a segment header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParsedHeader {
    Valid(SegmentHeader),
    /// A newer server wrote it.
    Newer(u32),
    Damaged,
}

/// The fields of a batch header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BatchHeader {
    pub(crate) body_bytes: u32,
    pub(crate) lsn: u64,
    pub(crate) durable_lsn: u64,
    pub(crate) incarnation: u64,
    pub(crate) now: u64,
    pub(crate) last_number: u64,
    pub(crate) oldest: u32,
    pub(crate) records: u32,
}

/// The kind of a file of the directory, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    Lock,
    Head,
    Segment(u32),
    Spare(u32),
    /// What the first start after a restore has to know. No part of the journal itself.
    Restored,
    Foreign,
}

/// The name of the file of a segment.
#[must_use]
pub fn segment_name(number: u32) -> String {
    format!("segment-{number:010}.log")
}

pub(crate) fn spare_name(number: u32) -> String {
    format!("spare-{number:010}.log")
}

pub(crate) fn file_kind(name: &str) -> FileKind {
    let numbered = |prefix: &str| {
        let digits = name.strip_prefix(prefix)?.strip_suffix(".log")?;
        let plain = digits.len() == 10 && digits.bytes().all(|digit| digit.is_ascii_digit());
        // The highest number is never used, so that every segment can have a successor.
        digits.parse::<u32>().ok().filter(|number| plain && (1..u32::MAX).contains(number))
    };
    if name == LOCK_NAME {
        FileKind::Lock
    } else if name == HEAD_NAME {
        FileKind::Head
    } else if name == RESTORED_NAME {
        FileKind::Restored
    } else if let Some(number) = numbered("segment-") {
        FileKind::Segment(number)
    } else if let Some(number) = numbered("spare-") {
        FileKind::Spare(number)
    } else {
        FileKind::Foreign
    }
}

/// Draws a salt that cannot be predicted from outside as long as `seed` is random, and that differs
/// for each segment and each incarnation.
pub(crate) fn draw_salt(seed: u64, number: u32, incarnation: u64) -> u64 {
    let mut input = [0; 20];
    input[..8].copy_from_slice(&seed.to_le_bytes());
    input[8..12].copy_from_slice(&number.to_le_bytes());
    input[12..].copy_from_slice(&incarnation.to_le_bytes());
    xxh3_64(&input)
}

/// The next multiple of 8, where a batch may begin.
pub(crate) const fn aligned(offset: u64) -> u64 {
    offset.next_multiple_of(8)
}

impl SegmentHeader {
    /// Both copies, as they are at the start of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(HEADER_FIELDS_BYTES);
        fields.extend_from_slice(SEGMENT_MAGIC);
        fields.extend_from_slice(&self.version.to_le_bytes());
        fields.extend_from_slice(&self.number.to_le_bytes());
        fields.extend_from_slice(&self.oldest.to_le_bytes());
        fields.extend_from_slice(&[0; 4]);
        for field in [self.salt, self.first_lsn, self.previous_end, self.incarnation, self.now] {
            fields.extend_from_slice(&field.to_le_bytes());
        }
        if let Some(Identity { directory, shard, shards }) = self.identity {
            fields.extend_from_slice(&directory.to_le_bytes());
            fields.extend_from_slice(&shard.to_le_bytes());
            fields.extend_from_slice(&shards.to_le_bytes());
        }
        fields.extend_from_slice(&xxh3_64(&fields).to_le_bytes());
        let mut bytes = vec![0; 2 * HEADER_COPY_BYTES];
        bytes[..fields.len()].copy_from_slice(&fields);
        bytes[HEADER_COPY_BYTES..][..fields.len()].copy_from_slice(&fields);
        bytes
    }

    /// Reads the first copy that is whole. `bytes` is the start of the file, however short.
    pub(crate) fn parse(bytes: &[u8]) -> ParsedHeader {
        let first = Self::parse_copy(bytes);
        if matches!(first, ParsedHeader::Valid(_)) {
            return first;
        }
        let second = Self::parse_copy(bytes.get(HEADER_COPY_BYTES..).unwrap_or_default());
        match (first, second) {
            (ParsedHeader::Newer(version), ParsedHeader::Damaged) => ParsedHeader::Newer(version),
            _ => second,
        }
    }

    fn parse_copy(bytes: &[u8]) -> ParsedHeader {
        let Some(fields) = bytes.get(..HEADER_FIELDS_BYTES) else { return ParsedHeader::Damaged };
        if fields[..8] != *SEGMENT_MAGIC {
            return ParsedHeader::Damaged;
        }
        // A newer version may check its header in another way, so the version is checked first. The
        // other copy still counts: one flipped bit must not look like a newer server.
        let version = u32_at(fields, 8);
        if version > FORMAT_VERSION {
            return ParsedHeader::Newer(version);
        }
        let has_identity = version >= IDENTITY_VERSION;
        let sum_at = if has_identity { 80 } else { 64 };
        if version == 0 || u64_at(fields, sum_at) != xxh3_64(&fields[..sum_at]) {
            return ParsedHeader::Damaged;
        }
        let identity = has_identity.then(|| Identity {
            directory: u64_at(fields, 64),
            shard: u32_at(fields, 72),
            shards: u32_at(fields, 76),
        });
        let header = Self {
            version,
            number: u32_at(fields, 12),
            oldest: u32_at(fields, 16),
            salt: u64_at(fields, 24),
            first_lsn: u64_at(fields, 32),
            previous_end: u64_at(fields, 40),
            incarnation: u64_at(fields, 48),
            now: u64_at(fields, 56),
            identity,
        };
        if header.makes_sense() { ParsedHeader::Valid(header) } else { ParsedHeader::Damaged }
    }

    /// Whether a server can have written this. A correct checksum alone does not prove it.
    fn makes_sense(&self) -> bool {
        (1..=self.number).contains(&self.oldest)
            && (1..=COUNT_MAX).contains(&self.first_lsn)
            && self.incarnation <= COUNT_MAX
            && self.identity.is_none_or(|it| it.shard < it.shards)
    }
}

impl BatchHeader {
    /// Fills in the header in front of a body. `batch` is both; its first 64 bytes are replaced.
    pub(crate) fn seal(&self, batch: &mut [u8], salt: u64, offset: u64) {
        batch[0..4].copy_from_slice(&BATCH_MAGIC);
        batch[4..8].copy_from_slice(&self.body_bytes.to_le_bytes());
        batch[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        batch[16..24].copy_from_slice(&self.durable_lsn.to_le_bytes());
        batch[24..32].copy_from_slice(&self.incarnation.to_le_bytes());
        batch[32..40].copy_from_slice(&self.now.to_le_bytes());
        batch[40..48].copy_from_slice(&self.last_number.to_le_bytes());
        batch[48..52].copy_from_slice(&self.oldest.to_le_bytes());
        batch[52..56].copy_from_slice(&self.records.to_le_bytes());
        let sum = checksum(batch, salt, offset);
        batch[56..64].copy_from_slice(&sum.to_le_bytes());
    }

    /// Whether a batch header may begin with these bytes.
    pub(crate) fn may_begin(bytes: &[u8]) -> bool {
        bytes.starts_with(&BATCH_MAGIC)
    }

    /// The fields at the start of `bytes`, if they look like a batch header. Checks neither the
    /// length that they announce nor the checksum.
    pub(crate) fn peek(bytes: &[u8]) -> Option<Self> {
        let fields = bytes.get(..BATCH_HEADER_BYTES)?;
        if !Self::may_begin(fields) {
            return None;
        }
        Some(Self {
            body_bytes: u32_at(fields, 4),
            lsn: u64_at(fields, 8),
            durable_lsn: u64_at(fields, 16),
            incarnation: u64_at(fields, 24),
            now: u64_at(fields, 32),
            last_number: u64_at(fields, 40),
            oldest: u32_at(fields, 48),
            records: u32_at(fields, 52),
        })
    }

    /// The batch at the start of `bytes`, if it is whole and belongs at this offset of the file
    /// with this salt.
    pub(crate) fn verify(bytes: &[u8], salt: u64, offset: u64) -> Option<Self> {
        let header = Self::peek(bytes).filter(|header| header.batch_bytes() <= bytes.len())?;
        (header.makes_sense() && header.confirms(bytes, salt, offset)).then_some(header)
    }

    /// Whether a server can have written this, as far as can be judged without its segment.
    pub(crate) const fn makes_sense(&self) -> bool {
        self.durable_lsn < self.lsn
            && self.records <= self.body_bytes
            && self.lsn <= COUNT_MAX
            && self.incarnation <= COUNT_MAX
            && self.last_number <= COUNT_MAX
    }

    /// Whether the checksum of this batch, which is at the start of `bytes`, is right.
    pub(crate) fn confirms(&self, bytes: &[u8], salt: u64, offset: u64) -> bool {
        let batch = &bytes[..self.batch_bytes()];
        u64_at(batch, 56) == checksum(batch, salt, offset)
    }

    /// Header and body together, without the padding after them.
    pub(crate) const fn batch_bytes(&self) -> usize {
        BATCH_HEADER_BYTES + self.body_bytes as usize
    }
}

/// The checksum of a batch that is read piece by piece.
pub(crate) struct BatchSum {
    hash: Xxh3,
    stated: u64,
}

impl BatchSum {
    /// Begins with the header, which must be complete.
    pub(crate) fn begin(header: &[u8], salt: u64, offset: u64) -> Option<Self> {
        let header = header.get(..BATCH_HEADER_BYTES)?;
        let mut hash = Xxh3::with_seed(salt.wrapping_add(offset));
        hash.update(&header[..56]);
        Some(Self { hash, stated: u64_at(header, 56) })
    }

    /// Adds the next piece of the body.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.hash.update(piece);
    }

    /// Whether the sum of all pieces is the one that the header states.
    pub(crate) fn is_right(&self) -> bool {
        self.hash.digest() == self.stated
    }
}

fn checksum(batch: &[u8], salt: u64, offset: u64) -> u64 {
    let seed = salt.wrapping_add(offset);
    let body = &batch[BATCH_HEADER_BYTES..];
    if body.len() <= ONE_SHOT_BYTES {
        let mut joined = [0; 56 + ONE_SHOT_BYTES];
        joined[..56].copy_from_slice(&batch[..56]);
        joined[56..56 + body.len()].copy_from_slice(body);
        return xxh3_64_with_seed(&joined[..56 + body.len()], seed);
    }
    let mut hash = Xxh3::with_seed(seed);
    hash.update(&batch[..56]);
    hash.update(body);
    hash.digest()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_only_at_its_place_and_in_its_file() {
        for body_bytes in [0_u32, 1, 440, 448, 449, 5_000] {
            let mut batch = vec![7; BATCH_HEADER_BYTES + body_bytes as usize];
            let header = BatchHeader { body_bytes, lsn: 3, oldest: 1, ..BatchHeader::default() };
            header.seal(&mut batch, 11, 8192);
            assert_eq!(BatchHeader::verify(&batch, 11, 8192), Some(header));
            assert_eq!(BatchHeader::verify(&batch, 11, 8200), None);
            assert_eq!(BatchHeader::verify(&batch, 12, 8192), None);
            let seed = 11 + 8192;
            let joined = [&batch[..56], &batch[64..]].concat();
            assert_eq!(u64_at(&batch, 56), xxh3_64_with_seed(&joined, seed));
        }
    }

    #[test]
    fn one_damaged_copy_does_not_cost_the_header() {
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            number: 7,
            oldest: 3,
            salt: 99,
            first_lsn: 12,
            previous_end: 8192,
            incarnation: 4,
            now: 5,
            identity: Some(Identity { directory: 77, shard: 1, shards: 2 }),
        };
        for bit in 0..HEADER_FIELDS_BYTES * 8 {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::parse(&bytes), ParsedHeader::Valid(header), "bit {bit}");
            bytes[4096 + 30] ^= 1;
            assert!(!matches!(SegmentHeader::parse(&bytes), ParsedHeader::Valid(_)), "bit {bit}");
        }
    }

    #[test]
    fn headers_that_no_server_writes_do_not_count_whatever_their_checksum() {
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            number: 7,
            oldest: 7,
            salt: 99,
            first_lsn: 1,
            previous_end: 0,
            incarnation: 1,
            now: 5,
            identity: Some(Identity { directory: 77, shard: 1, shards: 2 }),
        };
        assert_eq!(SegmentHeader::parse(&header.encode()), ParsedHeader::Valid(header));
        for wrong in [
            SegmentHeader { oldest: 8, ..header },
            SegmentHeader { oldest: 0, ..header },
            SegmentHeader { first_lsn: 0, ..header },
            SegmentHeader { first_lsn: u64::MAX, ..header },
            SegmentHeader { incarnation: u64::MAX, ..header },
            SegmentHeader {
                identity: Some(Identity { directory: 77, shard: 2, shards: 2 }),
                ..header
            },
        ] {
            assert_eq!(SegmentHeader::parse(&wrong.encode()), ParsedHeader::Damaged, "{wrong:?}");
        }
        let batch = BatchHeader { lsn: 3, durable_lsn: 2, oldest: 1, ..BatchHeader::default() };
        let sealed = |batch: BatchHeader| {
            let mut bytes = vec![0; BATCH_HEADER_BYTES];
            batch.seal(&mut bytes, 11, 8192);
            BatchHeader::verify(&bytes, 11, 8192)
        };
        assert_eq!(sealed(batch), Some(batch));
        for wrong in [
            BatchHeader { durable_lsn: 3, ..batch },
            BatchHeader { lsn: u64::MAX, ..batch },
            BatchHeader { incarnation: u64::MAX, ..batch },
            BatchHeader { last_number: u64::MAX, ..batch },
            BatchHeader { records: 1, ..batch },
        ] {
            assert_eq!(sealed(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn each_segment_of_each_incarnation_has_a_salt_of_its_own() {
        let salts = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 2, 2)]
            .map(|(seed, number, incarnation)| draw_salt(seed, number, incarnation));
        for (index, salt) in salts.iter().enumerate() {
            assert!(!salts[..index].contains(salt), "salt {index} is one of those before it");
        }
    }

    #[test]
    fn names_are_told_apart() {
        assert_eq!(file_kind(&segment_name(12)), FileKind::Segment(12));
        assert_eq!(file_kind(&spare_name(7)), FileKind::Spare(7));
        assert_eq!(file_kind("LOCK"), FileKind::Lock);
        assert_eq!(file_kind("restored"), FileKind::Restored);
        for foreign in ["segment-1.log", "segment-0000000000.log", "segment-+000000001.log", "x"] {
            assert_eq!(file_kind(foreign), FileKind::Foreign, "{foreign}");
        }
        assert_eq!(file_kind(&segment_name(u32::MAX - 1)), FileKind::Segment(u32::MAX - 1));
        assert_eq!(file_kind(&segment_name(u32::MAX)), FileKind::Foreign);
    }
}
