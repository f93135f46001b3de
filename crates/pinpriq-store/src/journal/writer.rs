//! Writes batches and makes them durable: one job is one write to each segment it touches, and at
//! most one sync at the end.
//!
//! A segment is synced before its successor is created, and the successor is whole, synced and in
//! the directory before any batch in it is written. So a segment that exists proves that its
//! predecessor is complete. After a failure the writer is not used again; nothing is retried.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::head::update_head;
use super::lane::Worker;
use super::options::Stopwatch;
use super::segment::{SegmentHeader, segment_name, spare_name};
use crate::disk::{Disk, DiskFile, OpenMode, write_all_at};
use crate::store::StoreError;

/// A write that is due.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    pub(crate) bytes: Vec<u8>,
    pub(crate) steps: Vec<Step>,
    pub(crate) sync: bool,
    /// Whether to look afterwards whether the files are where they were.
    pub(crate) look: bool,
}

/// One step of a commit, in order.
#[derive(Debug)]
pub(crate) enum Step {
    /// The log goes on in a new segment.
    Roll(Roll),
    /// The bytes `from..to` of the commit go to this offset of the segment.
    Write { offset: u64, from: usize, to: usize },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Roll {
    pub(crate) header: SegmentHeader,
    /// The number of bytes that the segment can hold.
    pub(crate) capacity: u64,
    /// The spare to make it from, if one of that size exists.
    pub(crate) spare: Option<u32>,
}

/// A finished commit, successful or not. Its buffers are returned for reuse.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) commit: Commit,
    pub(crate) outcome: Result<(), StoreError>,
    /// How long it took.
    pub(crate) took: Duration,
}

type NamedFile = (String, Box<dyn DiskFile>);

pub(crate) struct Writer {
    disk: Arc<dyn Disk>,
    stopwatch: Stopwatch,
    active: Option<Active>,
}

struct Active {
    name: String,
    file: Box<dyn DiskFile>,
    unsynced: bool,
}

impl Writer {
    pub(crate) fn new(disk: Arc<dyn Disk>, stopwatch: Stopwatch) -> Self {
        Self { disk, stopwatch, active: None }
    }

    fn write_commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        for step in &commit.steps {
            match step {
                Step::Roll(roll) => {
                    self.sync()?;
                    self.look()?;
                    self.active = Some(create_segment(&*self.disk, roll)?);
                    let number = roll.header.number;
                    update_head(&*self.disk, |head| head.newest = head.newest.max(number))?;
                }
                Step::Write { offset, from, to } => {
                    let active = self.active()?;
                    active.unsynced = true;
                    write_all_at(&*active.file, *offset, &commit.bytes[*from..*to])
                        .map_err(|e| StoreError::from_io("write", &active.name, *offset, e))?;
                }
            }
        }
        if commit.sync {
            self.sync()?;
        }
        // After the sync, so that what is confirmed now was found in its place.
        if commit.look { self.look() } else { Ok(()) }
    }

    /// Fails if the segment, or its directory, is no longer where the next start will look for it.
    fn look(&self) -> Result<(), StoreError> {
        let Some(active) = &self.active else { return Ok(()) };
        StoreError::refuse_gone(&*self.disk, &active.name, &*active.file)
    }

    fn active(&mut self) -> Result<&mut Active, StoreError> {
        self.active.as_mut().ok_or(StoreError::OutOfOrder { call: "append" })
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        if let Some(active) = &mut self.active
            && active.unsynced
        {
            sync_file(&*active.file, &active.name)?;
            active.unsynced = false;
        }
        Ok(())
    }
}

impl Worker for Writer {
    type Job = Commit;
    type Done = Committed;

    fn run(&mut self, commit: Commit) -> Committed {
        let began = (self.stopwatch)();
        let outcome = self.write_commit(&commit);
        let took = (self.stopwatch)().saturating_sub(began);
        Committed { commit, outcome, took }
    }
}

pub(crate) fn sync_file(file: &dyn DiskFile, name: &str) -> Result<(), StoreError> {
    file.sync_data().map_err(|error| StoreError::from_io("sync", name, 0, error))
}

pub(crate) fn sync_dir(disk: &dyn Disk) -> Result<(), StoreError> {
    disk.sync_dir().map_err(|error| StoreError::from_io("sync", "the directory", 0, error))
}

/// Makes a segment under the name of a spare, and renames it when it is whole.
fn create_segment(disk: &dyn Disk, roll: &Roll) -> Result<Active, StoreError> {
    let name = segment_name(roll.header.number);
    let prepared = match roll.spare {
        Some(spare) => open_spare(disk, spare)?,
        None => None,
    };
    let (spare, file) = match prepared {
        Some(prepared) => prepared,
        None => create_growing(disk, roll)?,
    };
    write_all_at(&*file, 0, &roll.header.encode())
        .map_err(|error| StoreError::from_io("write the header of", &spare, 0, error))?;
    sync_file(&*file, &spare)?;
    disk.rename(&spare, &name)
        .map_err(|error| StoreError::from_io("rename a spare to", &name, 0, error))?;
    sync_dir(disk)?;
    Ok(Active { name, file, unsynced: false })
}

/// Opens the prepared file, or returns none if it was removed. Its content does not matter.
fn open_spare(disk: &dyn Disk, spare: u32) -> Result<Option<NamedFile>, StoreError> {
    let name = spare_name(spare);
    match disk.open(&name, OpenMode::ReadWrite) {
        Ok(file) => Ok(Some((name, file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::from_io("open", &name, 0, error)),
    }
}

/// Creates a file that grows as it is written. Its space is reserved, so that no later write can
/// fail for lack of space.
fn create_growing(disk: &dyn Disk, roll: &Roll) -> Result<NamedFile, StoreError> {
    // Prepared spares are numbered from 1 upwards, so numbers from the other end are free.
    let name = spare_name(u32::MAX - roll.header.number);
    remove_if_there(disk, &name)?;
    let fail = |error| StoreError::from_io("create", &name, 0, error);
    let file = disk.open(&name, OpenMode::CreateNew).map_err(fail)?;
    if let Err(error) = file.allocate(roll.capacity) {
        drop(file);
        remove_if_there(disk, &name)?;
        return Err(StoreError::from_io("reserve space for", &name, 0, error));
    }
    Ok((name, file))
}

pub(crate) fn remove_if_there(disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
    match disk.remove(name) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::from_io("remove", name, 0, error)),
    }
}
