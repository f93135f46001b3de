//! Takes a backup: copies a cut of a running server into a place.
//!
//! First it looks at both sides, and refuses what does not fit (`ground`). Then it checks what an
//! interrupted backup has left, and from which moment on the cut has everything (`prior`). Then it
//! sends what is missing (`sending`): whole segments, then parts of those that are not full, then
//! the mark that names them. So a backup that is interrupted anywhere is nothing yet, and the next
//! one goes on where it ended. How a server is asked is not decided here.

mod ground;
mod prior;
mod sending;

use pinpriq_proto::time::Timestamp;

use crate::error::ArchiveError;
use crate::listed;
use crate::mark::{By, Knows, Mark, ShardMark};
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
    let ground = Ground::look(source, place)?;
    if ground.next_mark() > MARK_MAX {
        let what = format!("{} has as many backups as can be: give another place", place.name());
        return Err(ArchiveError::CannotGoOn { what });
    }
    let total = ground.cut.shards.iter().flatten().map(|segment| segment.bytes).sum();
    let mut meter = Meter::new(total, progress);
    let mut priors = Vec::new();
    for shard in 0..ground.cut.shards.len() {
        priors.push(Prior::look(source, place, &ground, shard, &mut meter)?);
    }
    let since = priors.iter().map(|prior| prior.since).max().unwrap_or_default();
    if since > ground.cut.at {
        let what = "the server removed segments while it prepared the backup: try again";
        return Err(SourceError::new(what).into());
    }
    let mut sending = Sending::new(source, place, &ground, meter);
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
    let mark = mark_of(&ground, shards, since, latest);
    write_mark(place, &mark)?;
    Ok(Backup {
        mark: mark.number,
        line: mark.line,
        at: mark.at(),
        since: mark.since(),
        shards: mark.shards.len(),
        objects: sent.objects,
        bytes_read: sent.bytes_read,
        bytes_sent: sent.bytes_written,
        segments: mark.segments(),
        segments_there: priors.iter().map(|prior| prior.there.len() as u64).sum(),
    })
}

/// Puts together what the mark says.
fn mark_of(ground: &Ground, shards: Vec<ShardMark>, since: Timestamp, latest: Timestamp) -> Mark {
    let known = ground.newest.as_ref();
    let highest = shards.iter().enumerate().map(|(index, shard)| {
        let own = Knows { incarnation: shard.incarnation, last_number: shard.last_number };
        let before = known.and_then(|mark| mark.highest.get(index)).copied();
        before.map_or(own, |before| own.and(before))
    });
    let at = ground.cut.at;
    let before = known.map_or(0, |mark| mark.latest_ms);
    Mark {
        format: FORMAT,
        number: ground.next_mark(),
        line: ground.line,
        by: By::Backup,
        at_ms: at.ms(),
        since_ms: since.ms(),
        highest: highest.collect(),
        latest_ms: latest.max(at).ms().max(before),
        shards,
    }
}

/// Creates the mark, if everything that it names is still there. From then on the backup counts.
fn write_mark(place: &dyn Place, mark: &Mark) -> Result<(), ArchiveError> {
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
