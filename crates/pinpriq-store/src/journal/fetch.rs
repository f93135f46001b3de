//! Reads single records back: payloads that were left on the disk.
//!
//! A reader holds the segment of a payload that is to be shown later, and reads it when it is to be
//! sent. A segment that is put away while it is held is removed and not reused: the
//! operating system keeps it until the last holder has gone. The caller checks the content of a
//! record, because a single record has no checksum.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use pinpriq_proto::change::{Change, Place};

use super::lane::Worker;
use super::segment::segment_name;
use crate::codec::{Names, decode};
use crate::disk::{Disk, DiskFile, OpenMode, index, read_full_at};
use crate::store::{ReadJob, StoreError, Volume};

/// The number of segments kept open without a holder.
const FILES_KEPT: usize = 4;

/// The segments from which records are read back.
pub(crate) struct Volumes {
    disk: Arc<dyn Disk>,
    /// Every segment that is open, by number.
    open: BTreeMap<u32, Weak<OpenSegment>>,
    /// The segments that were held last.
    recent: VecDeque<Arc<OpenSegment>>,
    /// Segments that were removed while they were held, with their bytes.
    removed: Vec<(Weak<OpenSegment>, u64)>,
}

struct OpenSegment {
    number: u32,
    name: String,
    file: Box<dyn DiskFile>,
}

impl Volumes {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, open: BTreeMap::new(), recent: VecDeque::new(), removed: Vec::new() }
    }

    /// Keeps a segment readable. It must exist.
    pub(crate) fn hold(&mut self, number: u32) -> Result<Arc<dyn Volume>, StoreError> {
        if let Some(known) = self.open.get(&number).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let name = segment_name(number);
        let opened = self.disk.open(&name, OpenMode::Read);
        let file = opened.map_err(|error| StoreError::from_io("open", &name, 0, error))?;
        let opened = Arc::new(OpenSegment { number, name, file });
        self.open.retain(|_, segment| segment.strong_count() > 0);
        self.open.insert(number, Arc::downgrade(&opened));
        self.recent.push_back(Arc::clone(&opened));
        if self.recent.len() > FILES_KEPT {
            self.recent.pop_front();
        }
        Ok(opened)
    }

    /// Notes that a segment of this many bytes is about to be put away. Returns whether a reader
    /// holds it; then its file must not be reused.
    pub(crate) fn release(&mut self, number: u32, bytes: u64) -> bool {
        self.recent.retain(|segment| segment.number != number);
        let Some(open) = self.open.remove(&number) else { return false };
        let is_held = open.strong_count() > 0;
        if is_held {
            self.removed.push((open, bytes));
        }
        is_held
    }

    /// The bytes of segments that exist only because they are held.
    pub(crate) fn held_bytes(&mut self) -> u64 {
        self.removed.retain(|(segment, _)| segment.strong_count() > 0);
        self.removed.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl Volume for OpenSegment {
    fn read(&self, place: Place) -> Result<Change, StoreError> {
        let offset = u64::from(place.offset);
        let mut record = vec![0; index(u64::from(place.length.get()))];
        let read = read_full_at(&*self.file, offset, &mut record)
            .map_err(|error| StoreError::from_io("read", &self.name, offset, error))?;
        let mut rest = &record[..read];
        match decode(&mut rest, &mut Names::default()) {
            Ok(change) if rest.is_empty() && read == record.len() => Ok(change),
            _ => Err(StoreError::damage(&self.name, offset, "a record cannot be read back")),
        }
    }
}

/// Reads records back, one job after the other.
pub(crate) struct Reading;

impl Worker for Reading {
    type Job = ReadJob;
    type Done = Result<Vec<Change>, StoreError>;

    fn run(&mut self, job: ReadJob) -> Self::Done {
        job.into_iter().map(|(place, volume)| volume.read(place)).collect()
    }
}
