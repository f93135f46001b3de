//! Segments as bytes in memory, for those who copy a log, or put one together again: what their
//! header says, where their commits end, and how they get another identity.
//!
//! Checks everything but the records. Opens no file: names are only for messages. What there is to
//! copy of a journal that does not run is listed in `rest`.

use pinpriq_proto::time::Timestamp;

use super::segment::{
    BatchHeader, FORMAT_VERSION, HEADER_COPY_BYTES, Identity, ParsedHeader, SegmentHeader, aligned,
};
use crate::disk::index;
use crate::store::StoreError;

pub use super::rest::{AtRest, at_rest};

/// The number of bytes with which every segment begins: both copies of its header.
pub const HEADER_BYTES: usize = 2 * HEADER_COPY_BYTES;

/// The header of a segment, as a file states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawHeader {
    /// The number of the segment, from 1.
    pub number: u32,
    /// The incarnation that began it.
    pub incarnation: u64,
    /// The oldest segment that was still needed then.
    pub oldest: u32,
    /// The number of its first commit.
    pub first_lsn: u64,
    /// Where the commits of the segment before it end, or 0.
    pub previous_end: u64,
    /// When it was begun.
    pub now: Timestamp,
    /// Which journal it belongs to. None in older versions.
    pub identity: Option<Identity>,
}

/// A commit, without its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawCommit {
    /// Its number.
    pub lsn: u64,
    /// Its moment.
    pub now: Timestamp,
    /// The incarnation that wrote it.
    pub incarnation: u64,
    /// The highest number that anything had by then.
    pub last_number: u64,
    /// The oldest segment that was still needed.
    pub oldest: u32,
}

/// What a walk over a segment has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawWalk {
    /// The header of the segment.
    pub header: RawHeader,
    /// Where the commits end that were asked for.
    pub end: usize,
    /// The last of them, if there is one.
    pub last: Option<RawCommit>,
    /// Whether a commit with a later moment follows.
    pub is_cut: bool,
}

/// Checks a segment that comes bit by bit.
#[derive(Clone, Debug)]
pub struct Walker {
    salt: u64,
    walk: RawWalk,
}

impl Walker {
    /// Begins with the first [`HEADER_BYTES`] of a segment. Refuses a newer version.
    pub fn begin(name: &str, header_bytes: &[u8]) -> Result<Self, StoreError> {
        let segment = parse(name, header_bytes)?;
        if header_bytes.len() != HEADER_BYTES {
            return Err(StoreError::damage(name, 0, "it does not begin with a whole header"));
        }
        let header = RawHeader::of(&segment);
        let walk = RawWalk { header, end: HEADER_BYTES, last: None, is_cut: false };
        Ok(Self { salt: segment.salt, walk })
    }

    /// Checks the bytes that follow, which must be whole commits. `each` sees every one. After
    /// a refusal, what was right before the first wrong commit counts as passed on.
    pub fn push(
        &mut self,
        name: &str,
        more: &[u8],
        each: &mut dyn FnMut(&RawCommit),
    ) -> Result<(), StoreError> {
        self.follow(name, more, None, each)
    }

    /// What was found so far. It ends with the bytes that were passed on.
    #[must_use]
    pub const fn walk(&self) -> RawWalk {
        self.walk
    }

    /// Like [`Walker::push`], up to the first commit with a later moment than `until`.
    fn follow(
        &mut self,
        name: &str,
        more: &[u8],
        until: Option<Timestamp>,
        each: &mut dyn FnMut(&RawCommit),
    ) -> Result<(), StoreError> {
        let number = self.walk.header.number;
        let mut rest = more;
        while !rest.is_empty() {
            let (offset, due) = (self.walk.end as u64, self.walk.next_lsn());
            let broken = || {
                let what = format!("commit {due} is missing, broken or not whole");
                StoreError::damage(name, offset, what)
            };
            let batch = BatchHeader::verify(rest, self.salt, offset)
                .filter(|batch| batch.lsn == due && (1..=number).contains(&batch.oldest))
                .ok_or_else(broken)?;
            let commit = RawCommit::of(&batch);
            if until.is_some_and(|until| commit.now > until) {
                self.walk.is_cut = true;
                return Ok(());
            }
            // The padding after it belongs to it.
            let bytes = index(aligned(batch.batch_bytes() as u64));
            rest = rest.get(bytes..).ok_or_else(broken)?;
            each(&commit);
            self.walk.last = Some(commit);
            self.walk.end += bytes;
        }
        Ok(())
    }
}

impl RawWalk {
    /// The number of the commit that would be next.
    #[must_use]
    pub fn next_lsn(&self) -> u64 {
        self.last.map_or(self.header.first_lsn, |last| last.lsn + 1)
    }

    /// Whether the log goes on with the segment that has this header.
    #[must_use]
    pub fn goes_on_with(&self, next: &RawHeader) -> bool {
        (next.previous_end, next.first_lsn) == (self.end as u64, self.next_lsn())
    }
}

impl RawHeader {
    fn of(header: &SegmentHeader) -> Self {
        Self {
            number: header.number,
            incarnation: header.incarnation,
            oldest: header.oldest,
            first_lsn: header.first_lsn,
            previous_end: header.previous_end,
            now: Timestamp::from_ms(header.now),
            identity: header.identity,
        }
    }
}

impl RawCommit {
    fn of(batch: &BatchHeader) -> Self {
        Self {
            lsn: batch.lsn,
            now: Timestamp::from_ms(batch.now),
            incarnation: batch.incarnation,
            last_number: batch.last_number,
            oldest: batch.oldest,
        }
    }
}

/// Returns the header of a segment. `bytes` is the start of the file. Refuses a newer version.
pub fn header(bytes: &[u8]) -> Result<RawHeader, StoreError> {
    parse("a segment", bytes).map(|header| RawHeader::of(&header))
}

/// Checks every commit of a segment that is in memory, from its header on, up to the first one
/// with a later moment than `until`. Refuses bytes that do not end with a whole commit.
pub fn walk(name: &str, bytes: &[u8], until: Option<Timestamp>) -> Result<RawWalk, StoreError> {
    follow(name, bytes, until, &mut |_| {})
}

/// Like [`walk`] over the whole segment. Passes on every commit.
pub fn walk_each(
    name: &str,
    bytes: &[u8],
    each: &mut dyn FnMut(&RawCommit),
) -> Result<RawWalk, StoreError> {
    follow(name, bytes, None, each)
}

/// Writes both copies of the header anew, with another identity. Everything else stays, and the
/// commits remain valid. The header of a version without an identity stays as it is.
pub fn readdress(bytes: &mut [u8], identity: Identity) -> Result<(), StoreError> {
    let header = parse("a segment", bytes)?;
    if header.identity.is_none() {
        return Ok(());
    }
    let renewed = SegmentHeader { identity: Some(identity), ..header }.encode();
    let Some(place) = bytes.get_mut(..renewed.len()) else {
        return Err(StoreError::damage("a segment", 0, "it ends within its header"));
    };
    place.copy_from_slice(&renewed);
    Ok(())
}

fn parse(name: &str, bytes: &[u8]) -> Result<SegmentHeader, StoreError> {
    match SegmentHeader::parse(bytes) {
        ParsedHeader::Valid(header) => Ok(header),
        ParsedHeader::Newer(version) => {
            Err(StoreError::NewerFormat { file: name.to_owned(), version, known: FORMAT_VERSION })
        }
        ParsedHeader::Damaged => {
            Err(StoreError::damage(name, 0, "both copies of the segment header are bad"))
        }
    }
}

fn follow(
    name: &str,
    bytes: &[u8],
    until: Option<Timestamp>,
    each: &mut dyn FnMut(&RawCommit),
) -> Result<RawWalk, StoreError> {
    let (header, commits) = bytes.split_at(bytes.len().min(HEADER_BYTES));
    let mut walker = Walker::begin(name, header)?;
    walker.follow(name, commits, until, each)?;
    let walk = walker.walk();
    if walk.last.is_none() && !walk.is_cut {
        return Err(StoreError::damage(name, 0, "it holds no commit"));
    }
    Ok(walk)
}
