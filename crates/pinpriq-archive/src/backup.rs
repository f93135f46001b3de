//! Takes a backup: copies a cut of a running server into a place.
//!
//! First it looks at both sides, and refuses what does not fit (`ground`). Then it checks what an
//! interrupted backup has left, and from which moment on the cut has everything (`prior`). Then it
//! sends what is missing (`sending`): whole segments, then parts of those that are not full, then
//! the mark that names them. So a backup that is interrupted anywhere is nothing yet, and the next
//! one goes on where it ended. How a server is asked is not decided here. A server that archives by
//! itself begins in the same way, and goes on as [`archiver`](crate::archiver) says.

pub(crate) mod ground;
pub(crate) mod prior;
pub(crate) mod sending;

use pinpriq_proto::time::Timestamp;

use crate::error::ArchiveError;
use crate::listed;
use crate::mark::{Mark, ShardMark};
use crate::names::{self, LineId, MARK_MAX};
use crate::place::Place;
use crate::progress::{Meter, Progress};
use crate::sealed::FORMAT;
pub use crate::source::{CutInfo, SegmentEnd, Source, SourceError};

use self::ground::Ground;
use self::prior::Prior;
use self::sending::Sending;

/// A backup that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backup {
    /// The number of its mark.
    pub mark: u64,
    /// Whose history it is.
    pub line: LineId,
    /// Every commit up to this moment is in it.
    pub at: Timestamp,
    /// Any moment from this one on can be restored from it.
    pub since: Timestamp,
    /// How many shards it has.
    pub shards: usize,
    /// How many objects were written, besides the mark.
    pub objects: u64,
    /// How many bytes of segments were read for them.
    pub bytes_read: u64,
    /// How many bytes the objects have.
    pub bytes_sent: u64,
    /// How many segments belong to it.
    pub segments: u64,
    /// How many of them were there already.
    pub segments_there: u64,
}

/// What was sent of a cut, and the mark that names all of it, which is not created yet.
pub(crate) struct Sent {
    pub(crate) mark: Mark,
    /// How many objects were written.
    pub(crate) objects: u64,
    /// How many bytes of segments were read for them.
    pub(crate) bytes_read: u64,
    /// How many bytes the objects have.
    pub(crate) bytes_written: u64,
    segments_there: u64,
}

/// Copies a cut into a place: what is not there yet, and then the mark that names all of it. What
/// was sent is read back and compared, and every commit of it was checked before.
///
/// Refuses, before it writes anything, another data directory than that of the place, an older copy
/// of one, and a place in which the server itself archives. Holds one segment in memory.
pub fn back_up(
    source: &mut dyn Source,
    place: &dyn Place,
    progress: &mut dyn FnMut(Progress),
) -> Result<Backup, ArchiveError> {
    let ground = Ground::look(source, place, None)?;
    let sent = send(source, place, &ground, progress)?;
    write_mark(place, &sent.mark)?;
    let Sent { mark, objects, bytes_read, bytes_written, segments_there } = sent;
    Ok(Backup {
        mark: mark.number,
        line: mark.line,
        at: mark.at(),
        since: mark.since(),
        shards: mark.shards.len(),
        objects,
        bytes_read,
        bytes_sent: bytes_written,
        segments: mark.segments(),
        segments_there,
    })
}

/// Sends what is not in the place yet. Returns the mark that would name all of it.
pub(crate) fn send(
    source: &mut dyn Source,
    place: &dyn Place,
    ground: &Ground,
    progress: &mut dyn FnMut(Progress),
) -> Result<Sent, ArchiveError> {
    refuse_last_number(place, ground.next_mark())?;
    let total = ground.cut.shards.iter().flatten().map(|segment| segment.bytes).sum();
    let mut meter = Meter::new(total, progress);
    let mut priors = Vec::new();
    for shard in 0..ground.cut.shards.len() {
        priors.push(Prior::look(source, place, ground, shard, &mut meter)?);
    }
    let since = priors.iter().map(|prior| prior.since).max().unwrap_or_default();
    refuse_late(since, ground.cut.at)?;
    let mut sending = Sending::new(source, place, ground, meter);
    sending.send_line()?;
    let mut shards = Vec::new();
    for (shard, prior) in priors.iter().enumerate() {
        shards.push(sending.send_whole(shard, prior)?);
    }
    sending.send_parts(&mut shards)?;
    let sent = sending.sent();
    for (shard, prior) in shards.iter_mut().zip(&priors) {
        shard.since_ms = prior.since.ms();
        shard.last_number = shard.last_number.max(prior.last_number);
    }
    let latest = priors.iter().map(|prior| prior.latest).fold(sent.latest, Timestamp::max);
    Ok(Sent {
        mark: mark_of(ground, shards, since, latest),
        objects: sent.objects,
        bytes_read: sent.bytes_read,
        bytes_written: sent.bytes_written,
        segments_there: priors.iter().map(|prior| prior.there.len() as u64).sum(),
    })
}

/// Refuses a number that no mark can have.
pub(crate) fn refuse_last_number(place: &dyn Place, number: u64) -> Result<(), ArchiveError> {
    if number <= MARK_MAX {
        return Ok(());
    }
    let what = format!("{} has as many backups as can be: give another place", place.name());
    Err(ArchiveError::CannotGoOn { what })
}

/// Refuses a cut that no moment suits.
pub(crate) fn refuse_late(since: Timestamp, at: Timestamp) -> Result<(), ArchiveError> {
    if since <= at {
        return Ok(());
    }
    let what = "the server removed segments while it prepared the backup: try again";
    Err(SourceError::new(what).into())
}

/// Puts together what the mark says.
fn mark_of(ground: &Ground, shards: Vec<ShardMark>, since: Timestamp, latest: Timestamp) -> Mark {
    let mark = Mark {
        format: FORMAT,
        number: ground.next_mark(),
        line: ground.line,
        by: ground.by,
        at_ms: ground.cut.at.ms(),
        since_ms: since.ms(),
        shards,
        highest: Vec::new(),
        latest_ms: latest.ms(),
    };
    mark.after(ground.newest.as_ref())
}

/// Creates the mark, if everything that it names is still there. From then on the backup counts.
pub(crate) fn write_mark(place: &dyn Place, mark: &Mark) -> Result<(), ArchiveError> {
    refuse_missing(place, mark)?;
    let (name, bytes) = (names::mark(mark.number), mark.encode());
    if !place.create(&name, &bytes)? {
        let what = format!("another backup has come first and is number {} now", mark.number);
        return Err(ArchiveError::Taken { what });
    }
    sending::compare(place, &name, &bytes)?;
    // A prune that did not see the mark may have gone on meanwhile.
    refuse_missing(place, mark)
}

/// Refuses a mark if something that it names is gone.
fn refuse_missing(place: &dyn Place, mark: &Mark) -> Result<(), ArchiveError> {
    if let Some(name) = listed::missing(place, mark.line, &mark.shards)? {
        let what = format!("{name} was removed while the backup ran, perhaps by a prune");
        return Err(ArchiveError::Taken { what });
    }
    Ok(())
}
