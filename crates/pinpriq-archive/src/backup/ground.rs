//! What is known before a backup writes anything: the cut, what the place holds, and whether one
//! goes on from the other.
//!
//! Everything that a backup refuses it refuses here. Nothing is written.

use std::sync::Arc;

use pinpriq_store::StoreError;
use pinpriq_store::disk::index;
use pinpriq_store::journal::Identity;
use pinpriq_store::journal::raw::{self, HEADER_BYTES, RawHeader};
use pinpriq_store::shards::SHARDS_MAX;
use xxhash_rust::xxh3::xxh3_64;

use crate::catalogue::Catalogue;
use crate::error::ArchiveError;
use crate::fetch::{self, Wanted};
use crate::line::{Line, comes_from};
use crate::mark::{By, Mark, Part, SEGMENT_BYTES_MAX, ShardMark};
use crate::names::{LineId, SegmentId};
use crate::object::PIECE_BYTES;
use crate::ours::{Ours, Wholes, rival};
use crate::place::Place;
use crate::source::{CutInfo, SegmentEnd, Source, SourceError};

/// The bytes of a commit without records.
const EMPTY_COMMIT_BYTES: u64 = 64;

/// What is known before anything is written.
pub(crate) struct Ground {
    pub(crate) cut: CutInfo,
    /// What writes the next mark.
    pub(crate) by: By,
    pub(crate) line: LineId,
    /// Whether the place has the object that says what the line is.
    pub(crate) has_line: bool,
    /// The newest mark of the place.
    pub(crate) newest: Option<Mark>,
    /// The newest mark of the line.
    pub(crate) own: Option<Mark>,
    /// For each shard the header of its newest segment.
    pub(crate) heads: Vec<Head>,
    /// The whole segments that need not be read back. A backup knows none.
    pub(crate) wholes: Arc<Wholes>,
}

/// The header of a segment, and what tells it from others.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) header: RawHeader,
    /// The checksum of each of its two copies.
    sums: [u64; 2],
}

impl Head {
    /// Reads the bytes that a segment begins with.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, StoreError> {
        let header = raw::header(bytes)?;
        let (first, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES / 2));
        let second = rest.get(..HEADER_BYTES / 2).unwrap_or(rest);
        Ok(Self { header, sums: [xxh3_64(first), xxh3_64(second)] })
    }

    /// What a mark notes of it.
    pub(crate) const fn sum(&self) -> u64 {
        self.sums[0]
    }

    /// Whether it is what a mark has noted. One of the copies may have been damaged since.
    pub(crate) fn has_sum(&self, sum: u64) -> bool {
        self.sums.contains(&sum)
    }
}

impl Ground {
    /// Looks at both sides, and refuses what does not go on from what the place holds. A server
    /// that archives by itself says which marks it has written.
    pub(crate) fn look(
        source: &mut dyn Source,
        place: &dyn Place,
        ours: Option<&Ours>,
    ) -> Result<Self, ArchiveError> {
        let cut = source.cut().clone();
        check_cut(&cut)?;
        let (line, heads) = read_heads(source, &cut)?;
        let mut catalogue = Catalogue::look(place)?;
        let newest = catalogue.newest_if_any()?;
        let known = Line::read(place, line)?;
        // The object of a line is older than its first mark, and stays for ever.
        let own = match &known {
            Some(_) => catalogue.newest_of(line)?,
            None => None,
        };
        let has_line = known.is_some();
        let by = if ours.is_some() { By::Serve } else { By::Backup };
        let wholes = ours.map(Ours::wholes).unwrap_or_default();
        let ground = Self { cut, by, line, has_line, newest, own, heads, wholes };
        ground.refuse_strangers(place, known.as_ref())?;
        if let Some(ours) = ours {
            ground.refuse_successors(place)?;
            ground.refuse_rivals(place, ours)?;
        }
        ground.refuse_older_copies(source, place)?;
        Ok(ground)
    }

    /// What the newest mark of the line says about a shard.
    pub(crate) fn own(&self, shard: usize) -> Option<&ShardMark> {
        self.own.as_ref()?.shards.get(shard)
    }

    /// The number of the next mark.
    pub(crate) fn next_mark(&self) -> u64 {
        self.newest.as_ref().map_or(1, |newest| newest.number + 1)
    }

    /// A segment of a shard.
    pub(crate) fn wanted(&self, shard: usize, segment: &SegmentEnd) -> Wanted {
        let (line, shards) = (self.line, self.cut.shards.len());
        Wanted { line, shard, shards, segment: id(segment) }
    }

    fn refuse_strangers(
        &self,
        place: &dyn Place,
        known: Option<&Line>,
    ) -> Result<(), ArchiveError> {
        let Some(newest) = &self.newest else { return Ok(()) };
        let (name, shards) = (place.name(), self.cut.shards.len());
        let is_archived = self.own.as_ref().is_some_and(|own| own.by == By::Serve);
        if self.by == By::Backup && is_archived {
            return Err(ArchiveError::ArchivesItself { place: name });
        }
        if newest.shards.len() != shards {
            let what = format!(
                "{name} holds backups of a data directory with {} shards, and this one has \
                 {shards}: give another place",
                newest.shards.len()
            );
            return Err(ArchiveError::Stranger { what });
        }
        if self.own.is_some() {
            return Ok(());
        }
        // A directory that was restored from here is known here, and so is where it comes from.
        let parent = known.and_then(|line| line.parent);
        let is_related = match parent {
            Some(parent) => Line::read(place, parent.line)?.is_some(),
            None => false,
        };
        if is_related {
            return Ok(());
        }
        let what = format!(
            "{name} holds backups of another data directory, and this one, {}, does not come from \
             it: give another place. A directory that `pinpriq restore` made from here is known \
             here, if it was allowed to write",
            self.line
        );
        Err(ArchiveError::Stranger { what })
    }

    /// Refuses a server if another one has gone on from its line, and archives here since. It was
    /// replaced, and must not take the place back.
    fn refuse_successors(&self, place: &dyn Place) -> Result<(), ArchiveError> {
        match &self.newest {
            Some(newest)
                if newest.line != self.line && comes_from(place, newest.line, self.line)? =>
            {
                Err(rival(place, newest))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a server if another one, which began with the same start of the same directory, has
    /// written the newest mark of the line. A backup of this server may have come before its first.
    /// Nor does one that has written here go on after a server of another line.
    fn refuse_rivals(&self, place: &dyn Place, ours: &Ours) -> Result<(), ArchiveError> {
        let is_rival = |own: &&Mark| {
            let is_of_this_start = |(known, segments): (&ShardMark, &Vec<SegmentEnd>)| {
                segments.last().is_some_and(|newest| newest.incarnation == known.incarnation)
            };
            own.by == By::Serve
                && own.shards.iter().zip(&self.cut.shards).any(is_of_this_start)
                && !ours.has(own)
        };
        let is_other =
            |it: &&Mark| ours.has_written() && it.by == By::Serve && it.line != self.line;
        let other = self.newest.as_ref().filter(is_other);
        let found = other.or_else(|| self.own.as_ref().filter(is_rival));
        found.map_or(Ok(()), |mark| Err(rival(place, mark)))
    }

    /// Refuses a directory that lacks what the newest mark of its own line has.
    fn refuse_older_copies(
        &self,
        source: &mut dyn Source,
        place: &dyn Place,
    ) -> Result<(), ArchiveError> {
        let Some(own) = &self.own else { return Ok(()) };
        for (shard, (known, segments)) in own.shards.iter().zip(&self.cut.shards).enumerate() {
            let older = |what: String| ArchiveError::OlderCopy {
                what: format!("backup {} knows {what} of shard {shard}", own.number),
            };
            let newest = segments.last().map_or(0, |segment| segment.incarnation);
            if newest < known.incarnation {
                return Err(older(format!("start {} instead of {newest}", known.incarnation)));
            }
            for part in &known.parts {
                if let Some(what) = self.lacks(source, place, shard, part)? {
                    return Err(older(what));
                }
            }
        }
        Ok(())
    }

    /// Says what of this part is not in the cut. What was compacted away since is not missed.
    fn lacks(
        &self,
        source: &mut dyn Source,
        place: &dyn Place,
        shard: usize,
        part: &Part,
    ) -> Result<Option<String>, ArchiveError> {
        let segments = &self.cut.shards[shard];
        let Part { number, incarnation, bytes, head, .. } = *part;
        if segments.first().is_some_and(|first| first.number > number) {
            return Ok(None);
        }
        let Some(segment) = segments.iter().find(|segment| segment.number == number) else {
            return Ok(Some(format!("segment {number}")));
        };
        if segment.incarnation > incarnation {
            let replaces = self.replaces(source, place, (shard, segment), part)?
                && self.follows_the_same(source, place, shard, number)?;
            return Ok((!replaces).then(|| format!("more of segment {number}")));
        }
        if segment.incarnation < incarnation || segment.bytes < bytes {
            return Ok(Some(format!("more of segment {number}")));
        }
        let found = match segments.last().zip(self.heads.get(shard)) {
            Some((last, head)) if last.number == number => *head,
            _ => read_head(source, shard, segment)?,
        };
        Ok((!found.has_sum(head)).then(|| format!("another segment {number}")))
    }

    /// Whether a segment is that of a start which took the place of this part. It does so only if
    /// nothing was written, and goes on after the same commit.
    fn replaces(
        &self,
        source: &mut dyn Source,
        place: &dyn Place,
        (shard, segment): (usize, &SegmentEnd),
        part: &Part,
    ) -> Result<bool, ArchiveError> {
        let wanted = Wanted { segment: part.segment(), ..self.wanted(shard, segment) };
        let (name, mut commits) = (part.last_name(self.line), 0_u64);
        let fetched = fetch::part(place, &wanted, part)?;
        let walk = raw::walk_each(&name, &fetched.bytes, &mut |_| commits += 1);
        let before = walk.map_err(|error| ArchiveError::of_segment(&name, error))?.header;
        wanted.check_header(&name, &before)?;
        let after = read_head(source, shard, segment)?.header;
        let is_empty = part.bytes == HEADER_BYTES as u64 + EMPTY_COMMIT_BYTES * commits;
        let goes_on = |header: RawHeader| (header.first_lsn, header.previous_end);
        Ok(is_empty && goes_on(after) == goes_on(before))
    }

    /// Whether the segment before this number is the one that the newest mark of the line has.
    /// Another one may have the same length by chance.
    fn follows_the_same(
        &self,
        source: &mut dyn Source,
        place: &dyn Place,
        shard: usize,
        number: u32,
    ) -> Result<bool, ArchiveError> {
        let before =
            self.cut.shards[shard].iter().find(|it| it.number.checked_add(1) == Some(number));
        let Some((before, own)) = before.zip(self.own(shard)) else { return Ok(true) };
        let wanted = self.wanted(shard, before);
        if !own.has_whole(wanted.segment) {
            return Ok(own.first() == number);
        }
        // What was lost is sent again.
        let Some(fetched) = fetch::whole(place, &wanted)? else { return Ok(true) };
        let there = Head::of(&fetched.bytes);
        let there = there.map_err(|error| ArchiveError::of_segment(&wanted.name(), error))?;
        Ok(read_head(source, shard, before)?.has_sum(there.sum()))
    }
}

/// Refuses a cut that cannot be one.
pub(crate) fn check_cut(cut: &CutInfo) -> Result<(), ArchiveError> {
    let is_wrong = |segments: &Vec<SegmentEnd>| {
        let bytes = HEADER_BYTES as u64..=SEGMENT_BYTES_MAX;
        let in_row =
            segments.windows(2).all(|it| it[0].number.checked_add(1) == Some(it[1].number));
        segments.is_empty() || !in_row || !segments.iter().all(|it| bytes.contains(&it.bytes))
    };
    if !(1..=SHARDS_MAX).contains(&cut.shards.len()) {
        return Err(SourceError::new("the server offers no shards to back up").into());
    }
    match cut.shards.iter().position(is_wrong) {
        Some(shard) => {
            let what = format!("the segments that the server offers of shard {shard} have gaps");
            Err(SourceError::new(what).into())
        }
        None => Ok(()),
    }
}

/// Reads the headers of the newest segments. They say which data directory it is.
fn read_heads(source: &mut dyn Source, cut: &CutInfo) -> Result<(LineId, Vec<Head>), ArchiveError> {
    let (mut line, mut heads) = (None, Vec::new());
    for (shard, segments) in cut.shards.iter().enumerate() {
        let Some(last) = segments.last() else { continue };
        let head = read_head(source, shard, last)?;
        let identity = head.header.identity.ok_or(ArchiveError::NoIdentity { shard })?;
        let Identity { directory, .. } = identity;
        let is_here = usize::try_from(identity.shard) == Ok(shard)
            && usize::try_from(identity.shards) == Ok(cut.shards.len());
        if !is_here || *line.get_or_insert(LineId(directory)) != LineId(directory) {
            let what =
                format!("the segments that the server offers of shard {shard} are another's");
            return Err(SourceError::new(what).into());
        }
        heads.push(head);
    }
    let line = line.ok_or_else(|| SourceError::new("the server offers no segments"))?;
    Ok((line, heads))
}

/// Reads the header of a segment from the source, and checks that it is this segment.
pub(crate) fn read_head(
    source: &mut dyn Source,
    shard: usize,
    segment: &SegmentEnd,
) -> Result<Head, ArchiveError> {
    let bytes = read(source, shard, segment.number, (0, HEADER_BYTES as u64), &mut |_| {})?;
    let head = Head::of(&bytes).map_err(|error| unfit(shard, segment.number, &error))?;
    let found = SegmentId { number: head.header.number, incarnation: head.header.incarnation };
    if found == id(segment) { Ok(head) } else { Err(unlike(shard, segment)) }
}

/// Reads bytes of a segment from the source, and tells how many came.
pub(crate) fn read(
    source: &mut dyn Source,
    shard: usize,
    segment: u32,
    (from, to): (u64, u64),
    tell: &mut dyn FnMut(u64),
) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    read_into(&mut bytes, source, (shard, segment), (from, to), tell)?;
    Ok(bytes)
}

/// Like [`read`], and adds what it reads to `bytes`.
pub(crate) fn read_into(
    bytes: &mut Vec<u8>,
    source: &mut dyn Source,
    (shard, segment): (usize, u32),
    (from, to): (u64, u64),
    tell: &mut dyn FnMut(u64),
) -> Result<(), ArchiveError> {
    // One allocation: a large one takes longer than to fill it.
    bytes.reserve(index(to.saturating_sub(from)));
    let mut at = from;
    while at < to {
        let (before, end) = (bytes.len(), to.min(at + PIECE_BYTES as u64));
        source.read(shard, segment, at, end, bytes)?;
        let more = bytes.len().saturating_sub(before);
        if more as u64 != end - at {
            let what = format!(
                "the server gave {more} bytes of segment {segment} of shard {shard} instead of {}: \
                 try again",
                end - at
            );
            return Err(SourceError::new(what).into());
        }
        tell(end - at);
        at = end;
    }
    Ok(())
}

/// A segment of the source that cannot be backed up as it is.
pub(crate) fn unfit(shard: usize, segment: u32, error: &StoreError) -> ArchiveError {
    let what = format!("segment {segment} of shard {shard} of the server is unfit: {error}");
    SourceError::new(what).into()
}

/// A segment of the source that is another one, or does not go on from what was read of it.
pub(crate) fn unlike(shard: usize, segment: &SegmentEnd) -> ArchiveError {
    let what = format!(
        "segment {} of shard {shard} is another one than the server says: try again",
        segment.number
    );
    SourceError::new(what).into()
}

/// Which segment it is.
pub(crate) const fn id(segment: &SegmentEnd) -> SegmentId {
    SegmentId { number: segment.number, incarnation: segment.incarnation }
}
