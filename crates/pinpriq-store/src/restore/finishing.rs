//! Makes a directory that followed an archive one that a server serves.
//!
//! First it is decided and noted what counts: of all shards the commits up to one moment. From then
//! on the directory follows no more, and every step can be repeated, since a crash may come between
//! any two. The archive is not asked for anything.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pinpriq_proto::change::Header;
use pinpriq_proto::time::Timestamp;

use super::standby::{read_start, remove_followed};
use super::{Shard, refuse_below};
use crate::disk::{Disk, DiskFile, OpenMode, read_full_at, write_all_at};
use crate::journal::raw::{self, HEADER_BYTES};
use crate::journal::{
    Expected, Identity, JournalOptions, lock, refuse_if_stopped, segment_name, sync_dir,
    take_inventory,
};
use crate::layout::following;
use crate::layout::{
    self, Following, FollowingSegment, JournalAt, Phase, create, directories, is_unfinished,
    open_if_there, refuse_other_shards,
};
use crate::reshard::{DirectoryError, ReshardReport, about};
use crate::store::StoreError;

/// The bytes of each of the two copies of a header.
const COPY_BYTES: usize = HEADER_BYTES / 2;

/// Completes a data directory that follows an archive, so that a server with this number of shards
/// can serve it. It never follows again. Returns what each shard holds, or none if the directory
/// does not follow, or is not there: then nothing has changed.
///
/// Each shard begins anew where the directory says, or further on if an earlier call was
/// interrupted after that. Refuses a directory that somebody uses, one of another number of shards,
/// and one into which nothing was copied yet. Costs one pass over the segments.
///
/// Fails with [`StoreError::Stopped`] soon after any thread sets the flag `stop`. Another call then
/// goes on.
pub fn finish_following(
    data: &Path,
    shards: usize,
    options: JournalOptions,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Vec<ReshardReport>>, DirectoryError> {
    let Some(known) = prepared(data, shards, stop).map_err(about(data))? else { return Ok(None) };
    let mut reports = Vec::new();
    for (shard, directory) in directories(data, shards).into_iter().enumerate() {
        let report = begun((&directory, shard), &known, options, stop);
        reports.push(report.map_err(about(&directory))?);
    }
    layout::finish(data, shards, known.number).map_err(about(data))?;
    // The directory is valid by now, and what is left of the file means nothing.
    let disk = create(data).map_err(about(data))?;
    following::remove(&disk).map_err(about(data))?;
    Ok(Some(reports))
}

/// Puts the segments in their places, up to the moment. Returns what was known, if the directory
/// follows.
fn prepared(
    data: &Path,
    shards: usize,
    stop: &AtomicBool,
) -> Result<Option<Following>, StoreError> {
    let Some(found) = open_if_there(data)? else { return Ok(None) };
    if !following::is_there(&found)? {
        return Ok(None);
    }
    let disk = create(data)?;
    // Each journal is locked by itself later on.
    let _guard = lock(&disk)?;
    let Some(mut known) = following::read(&disk)? else { return Ok(None) };
    if known.phase == Phase::Finishing && !is_unfinished(&disk)? {
        // All was done but this.
        following::remove(&disk)?;
        return Ok(None);
    }
    refuse_if_stopped(stop)?;
    refuse_other_shards(known.shards.len(), shards)?;
    if known.mark == 0 {
        let what =
            "it follows an archive, and nothing was copied yet: let it follow until it says \
                    that it has a state"
                .to_owned();
        return Err(StoreError::Mixed { what });
    }
    let mut disks = Vec::new();
    for directory in directories(data, shards) {
        disks.push(create(&directory)?);
    }
    if known.phase == Phase::Following {
        let at = known.at();
        for (disk, shard) in disks.iter().zip(&mut known.shards) {
            shard.segments = up_to(disk, &shard.segments, at, stop)?;
            shard.ahead.clear();
        }
        known.phase = Phase::Finishing;
        following::write(&disk, &known)?;
    }
    for (shard, (disk, of_shard)) in disks.iter().zip(&known.shards).enumerate() {
        put_in_place(disk, identity(&known, shard), &of_shard.segments, stop)?;
    }
    Ok(Some(known))
}

fn identity(known: &Following, shard: usize) -> Identity {
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let Following { number, shards, .. } = known;
    Identity { directory: *number, shard: narrow(shard), shards: narrow(shards.len()) }
}

/// Leaves out what is later than the moment: of the last segments of a shard, since a cut has one
/// moment for all shards, and some of them may have gone on until it was taken.
fn up_to(
    disk: &dyn Disk,
    segments: &[FollowingSegment],
    at: Timestamp,
    stop: &AtomicBool,
) -> Result<Vec<FollowingSegment>, StoreError> {
    let mut left = segments.to_vec();
    while let Some(last) = left.last_mut() {
        refuse_if_stopped(stop)?;
        let name = last.file_name();
        let bytes = read_start(disk, last, last.bytes)?;
        let walk = raw::walk(&name, &bytes, Some(at))?;
        if walk.last.is_some() {
            last.bytes = walk.end as u64;
            return Ok(left);
        }
        left.pop();
    }
    // A log that began after the moment is empty.
    if segments.first().is_some_and(|first| first.number == 1) {
        return Ok(left);
    }
    let what = "nothing that was copied is old enough: remove the directory, and follow into an \
                empty one"
        .to_owned();
    Err(StoreError::Mixed { what })
}

/// Gives the segments their names, the identity of the directory, and their ends. What an earlier
/// call has put in its place stays as it is.
fn put_in_place(
    disk: &dyn Disk,
    identity: Identity,
    segments: &[FollowingSegment],
    stop: &AtomicBool,
) -> Result<(), StoreError> {
    for segment in segments {
        refuse_if_stopped(stop)?;
        let (name, new_name) = (segment.file_name(), segment_name(segment.number));
        let fail = |what, error| StoreError::from_io(what, &name, 0, error);
        let file = match disk.open(&name, OpenMode::ReadWrite) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(fail("open", error)),
        };
        file.set_len(segment.bytes).map_err(|error| fail("cut", error))?;
        readdress(&*file, &name, identity)?;
        disk.rename(&name, &new_name).map_err(|error| fail("rename", error))?;
    }
    remove_followed(disk, &|_| true)?;
    sync_dir(disk)?;
    // The journal looks for the others itself. It may have removed some that it needs no more.
    let newest = take_inventory(disk)?.segments.last_key_value().map(|(number, _)| *number);
    match segments.last().map(|last| last.number) {
        Some(last) if newest < Some(last) => {
            let what = "the file is missing, and the file following names it";
            Err(StoreError::damage(&segment_name(last), 0, what))
        }
        _ => Ok(()),
    }
}

/// Writes another identity into a file. Its two copies are written one after the other, so that one
/// of them is always whole.
fn readdress(file: &dyn DiskFile, name: &str, identity: Identity) -> Result<(), StoreError> {
    let fail = |what, error| StoreError::from_io(what, name, 0, error);
    let mut bytes = vec![0; HEADER_BYTES];
    let read = read_full_at(file, 0, &mut bytes).map_err(|error| fail("read", error))?;
    bytes.truncate(read);
    raw::readdress(&mut bytes, identity)?;
    for (copy, offset) in bytes.chunks(COPY_BYTES).zip((0_u64..).step_by(COPY_BYTES)) {
        write_all_at(file, offset, copy).map_err(|error| fail("write", error))?;
        file.sync_data().map_err(|error| fail("sync", error))?;
    }
    Ok(())
}

/// Makes a shard begin anew.
fn begun(
    (directory, shard): (&Path, usize),
    known: &Following,
    options: JournalOptions,
    stop: &Arc<AtomicBool>,
) -> Result<ReshardReport, StoreError> {
    let Identity { directory: number, shard: own, shards } = identity(known, shard);
    let expected = Expected { directory: Some(number), shard: own, shards, served: 0 };
    let place = JournalAt { directory: directory.to_owned(), expected };
    let disk: Arc<dyn Disk> = Arc::new(create(directory)?);
    let start = known.shards[shard].start.header();
    let shard = Shard { place, disk, first: 0, last: None, is_cut: false };
    shard.begin_anew(&|log| onward(&start, log), false, options, stop)
}

/// Returns where a shard goes on: at its start, or after an earlier call that was interrupted when
/// the shard had begun. Nobody was given anything by then, but its log knows that incarnation.
fn onward(start: &Header, log: &Header) -> Result<Header, StoreError> {
    if log.incarnation < start.incarnation {
        return refuse_below(start, log).map(|()| *start);
    }
    Ok(Header {
        incarnation: log.incarnation + 1,
        now: start.now.max(log.now),
        last_number: start.last_number.max(log.last_number),
    })
}
