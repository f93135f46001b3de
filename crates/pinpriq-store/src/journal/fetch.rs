//! Reading single records back: payloads that were left on the disk.
//!
//! Records that are wanted together mostly lie together, so whole windows of a segment are read and
//! kept for a while. What a record says is checked by whoever knows what it must be; a checksum for
//! one record alone does not exist.

use std::collections::VecDeque;
use std::sync::Arc;

use pinpriq_engine::change::{Change, Place};

use super::segment::segment_name;
use crate::codec::{Names, decode};
use crate::disk::{Disk, DiskFile, OpenMode, index, read_full_at};
use crate::store::StoreError;

/// How much is read at a time.
const WINDOW_BYTES: u64 = 256 << 10;

/// How many windows are kept, the ones that were used last.
const WINDOWS_KEPT: usize = 16;

/// How many segments are kept open.
const FILES_KEPT: usize = 4;

pub(crate) struct Fetcher {
    disk: Arc<dyn Disk>,
    /// Open segments by number, the one that was used last at the end.
    files: VecDeque<(u32, Box<dyn DiskFile>)>,
    /// Windows by segment and offset, the one that was used last at the end.
    windows: VecDeque<(u32, u64, Vec<u8>)>,
    names: Names,
}

impl Fetcher {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, files: VecDeque::new(), windows: VecDeque::new(), names: Names::default() }
    }

    /// The record at this place, which must have been written. `finished` says that nothing is
    /// written to that segment any more, so that what is read may be kept.
    pub(crate) fn fetch(&mut self, place: Place, finished: bool) -> Result<Change, StoreError> {
        let (start, length) = (u64::from(place.offset), u64::from(place.length));
        let mut record = Vec::with_capacity(index(length));
        if finished && length <= WINDOW_BYTES {
            let mut at = start;
            while at < start + length {
                let window = at / WINDOW_BYTES * WINDOW_BYTES;
                let bytes = self.window(place.volume, window)?;
                let from = index(at - window).min(bytes.len());
                let to = index(start + length - window).min(bytes.len());
                if from == to {
                    break;
                }
                record.extend_from_slice(&bytes[from..to]);
                at = window + to as u64;
            }
        } else {
            record.resize(index(length), 0);
            let read = self.read(place.volume, start, &mut record)?;
            record.truncate(read);
        }
        let mut rest = record.as_slice();
        match decode(&mut rest, &mut self.names) {
            Ok(change) if rest.is_empty() && record.len() as u64 == length => Ok(change),
            _ => {
                let name = segment_name(place.volume);
                Err(StoreError::damage(&name, start, "a record cannot be read back"))
            }
        }
    }

    /// Forgets what belongs to segments before this one, which go.
    pub(crate) fn forget_before(&mut self, segment: u32) {
        if planted!(GoneSegmentsKeptOpen) {
            return;
        }
        self.files.retain(|(number, _)| *number >= segment);
        self.windows.retain(|(number, _, _)| *number >= segment);
    }

    fn window(&mut self, segment: u32, offset: u64) -> Result<&[u8], StoreError> {
        let known = self.windows.iter().position(|known| (known.0, known.1) == (segment, offset));
        let window = if let Some(window) = known.and_then(|at| self.windows.remove(at)) {
            window
        } else {
            let spare = self.windows.len() >= WINDOWS_KEPT;
            let spare = if spare { self.windows.pop_front() } else { None };
            let mut bytes = spare.map(|(_, _, bytes)| bytes).unwrap_or_default();
            bytes.resize(index(WINDOW_BYTES), 0);
            let read = self.read(segment, offset, &mut bytes)?;
            bytes.truncate(read);
            (segment, offset, bytes)
        };
        self.windows.push_back(window);
        Ok(self.windows.back().map_or(&[], |(_, _, bytes)| bytes.as_slice()))
    }

    fn read(&mut self, segment: u32, offset: u64, out: &mut [u8]) -> Result<usize, StoreError> {
        let name = segment_name(segment);
        let failed = |error| StoreError::from_io("read", &name, offset, error);
        let known = self.files.iter().position(|(number, _)| *number == segment);
        let file = match known.and_then(|at| self.files.remove(at)) {
            Some((_, file)) => file,
            None => self.disk.open(&name, OpenMode::Read).map_err(failed)?,
        };
        let read = read_full_at(&*file, offset, out);
        self.files.push_back((segment, file));
        if self.files.len() > FILES_KEPT {
            self.files.pop_front();
        }
        read.map_err(failed)
    }
}
