//! What the journal does besides commits: preparing a spare file, listing the records of an old
//! segment, and putting away segments that are no longer needed.
//!
//! Each job is one small step, so it delays nothing for long and the work can stop at any time. No
//! failure in here endangers a batch: it is reported, and the journal continues without.

use std::io;
use std::sync::Arc;

use pinpriq_proto::change::{Change, Place, RecordKey};
use pinpriq_proto::task::Bytes;

use super::lane::Worker;
use super::room::reserve_most;
use super::segment::{
    BATCH_HEADER_BYTES, BatchHeader, SEGMENT_START, SegmentHeader, aligned, segment_name,
    spare_name,
};
use super::spare::Sizes;
use super::writer::{sync_dir, sync_file};
use crate::codec::{Names, decode, decode_key};
use crate::disk::{Disk, OpenMode, read_full_at, write_all_at};
use crate::store::{REWRITE_KEYS_MAX, Rewrite, StoreError};

/// The number of bytes of a spare that one step fills.
pub(crate) const FILL_STEP_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) enum Chore {
    /// Fill the next part of this spare with zeros, until it has `bytes` bytes.
    Fill { spare: u32, bytes: u64 },
    /// Reserve the available room for a spare that is smaller than usual.
    Reserve { spare: u32, sizes: Sizes },
    /// List the next records that have a place, about this many bytes of them.
    List { segment: SegmentHeader, end: u64, from: Cursor, most: u64 },
    /// Turn a segment that is no longer needed into a spare, or remove it.
    Retire { segment: u32, spare: Option<u32> },
}

/// Where listing continues: a batch, and how many of its records were listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    batch: u64,
    records: u32,
}

#[derive(Debug)]
pub(crate) enum ChoreDone {
    /// The number of bytes reserved, 0 for none.
    Reserved {
        spare: u32,
        outcome: Result<u64, StoreError>,
    },
    Filled {
        spare: u32,
        outcome: Result<Filled, StoreError>,
    },
    Listed {
        segment: u32,
        outcome: Result<Listed, StoreError>,
    },
    Retired {
        segment: u32,
        spare: Option<u32>,
        outcome: Result<(), StoreError>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    Partly,
    Whole,
}

#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) records: Vec<Rewrite>,
    /// Where to continue, unless this was the end.
    pub(crate) next: Option<Cursor>,
}

impl Cursor {
    pub(crate) const START: Self = Self { batch: SEGMENT_START, records: 0 };
}

pub(crate) struct Chores {
    disk: Arc<dyn Disk>,
    buffer: Vec<u8>,
    /// Whether listed tasks include their payloads.
    lists_payloads: bool,
    names: Names,
}

impl Chores {
    pub(crate) fn new(disk: Arc<dyn Disk>, lists_payloads: bool) -> Self {
        Self { disk, buffer: Vec::new(), lists_payloads, names: Names::default() }
    }

    fn fill(&mut self, spare: u32, bytes: u64) -> Result<Filled, StoreError> {
        let name = spare_name(spare);
        match fill_step(&*self.disk, &name, bytes, &mut self.buffer) {
            Ok(filled) => Ok(filled),
            Err(error) => {
                // Half a spare only occupies room.
                _ = self.disk.remove(&name);
                Err(StoreError::from_io("prepare", &name, 0, error))
            }
        }
    }

    fn list(
        &mut self,
        segment: &SegmentHeader,
        end: u64,
        from: Cursor,
        most: u64,
    ) -> Result<Listed, StoreError> {
        let name = segment_name(segment.number);
        let fail = |offset, error| StoreError::from_io("read", &name, offset, error);
        let file = self.disk.open(&name, OpenMode::Read).map_err(|e| fail(0, e))?;
        let mut listed = Listed::default();
        let mut bytes = 0;
        let mut cursor = from;
        while cursor.batch < end {
            let damaged = |what: &str| StoreError::damage(&name, cursor.batch, what);
            self.buffer.resize(BATCH_HEADER_BYTES, 0);
            read_full_at(&*file, cursor.batch, &mut self.buffer)
                .map_err(|e| fail(cursor.batch, e))?;
            let length = announced_bytes(&self.buffer)
                .filter(|length| cursor.batch + length <= end)
                .ok_or_else(|| damaged("no header of a commit stands where one was written"))?;
            self.buffer.resize(crate::disk::index(length), 0);
            read_full_at(&*file, cursor.batch, &mut self.buffer)
                .map_err(|e| fail(cursor.batch, e))?;
            let batch = BatchHeader::verify(&self.buffer, segment.salt, cursor.batch)
                .ok_or_else(|| damaged("the checksum of a commit is wrong"))?;
            let (names, lists_payloads) = (&mut self.names, self.lists_payloads);
            let more = |key: RecordKey, place: Place, record: &[u8]| {
                let payload = if lists_payloads && matches!(key, RecordKey::Task(_)) {
                    payload_of(record, names)
                } else {
                    None
                };
                listed.records.push(Rewrite { key, place, payload });
                bytes += u64::from(place.length.get());
                bytes < most && listed.records.len() < REWRITE_KEYS_MAX
            };
            let left = list_batch(segment.number, cursor, &batch, &self.buffer, more)
                .ok_or_else(|| damaged("a record cannot be read"))?;
            cursor = match left {
                BatchLeft::Records(from) => from,
                BatchLeft::Nothing => Cursor { batch: aligned(cursor.batch + length), records: 0 },
            };
            if bytes >= most || listed.records.len() >= REWRITE_KEYS_MAX {
                break;
            }
        }
        listed.next = (cursor.batch < end).then_some(cursor);
        Ok(listed)
    }

    fn retire(&self, segment: u32, spare: Option<u32>) -> Result<(), StoreError> {
        let name = segment_name(segment);
        match spare {
            Some(spare) => self.disk.rename(&name, &spare_name(spare)),
            None => self.disk.remove(&name),
        }
        .map_err(|error| StoreError::from_io("put away", &name, 0, error))?;
        sync_dir(&*self.disk)
    }
}

impl Worker for Chores {
    type Job = Chore;
    type Done = ChoreDone;

    fn run(&mut self, chore: Chore) -> ChoreDone {
        match chore {
            Chore::Fill { spare, bytes } => {
                ChoreDone::Filled { spare, outcome: self.fill(spare, bytes) }
            }
            Chore::Reserve { spare, sizes } => {
                let name = spare_name(spare);
                let reserved = reserve_most(&*self.disk, &name, sizes.least, sizes);
                let fail = |error| StoreError::from_io("prepare", &name, 0, error);
                ChoreDone::Reserved { spare, outcome: reserved.map_err(fail) }
            }
            Chore::List { segment, end, from, most } => {
                let outcome = self.list(&segment, end, from, most);
                self.buffer.shrink_to(crate::disk::index(FILL_STEP_BYTES));
                ChoreDone::Listed { segment: segment.number, outcome }
            }
            Chore::Retire { segment, spare } => {
                ChoreDone::Retired { segment, spare, outcome: self.retire(segment, spare) }
            }
        }
    }
}

/// Adds zeros to the end of a spare and syncs them. Each step is synced, so that the disk never
/// receives a whole segment at once while a commit waits behind it.
pub(crate) fn fill_step(
    disk: &dyn Disk,
    name: &str,
    bytes: u64,
    zeros: &mut Vec<u8>,
) -> io::Result<Filled> {
    let file = match disk.open(name, OpenMode::ReadWrite) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.open(name, OpenMode::CreateNew)?
        }
        opened => opened?,
    };
    let length = file.len()?;
    if length == 0 {
        file.allocate(bytes)?;
    }
    let step = bytes.saturating_sub(length).min(FILL_STEP_BYTES);
    zeros.clear();
    zeros.resize(crate::disk::index(step), 0);
    write_all_at(&*file, length, zeros)?;
    sync_file(&*file, name).map_err(io::Error::other)?;
    Ok(if length + step >= bytes { Filled::Whole } else { Filled::Partly })
}

/// The size of the batch whose header is at the start of `bytes`. The body need not be there yet.
fn announced_bytes(bytes: &[u8]) -> Option<u64> {
    let body = bytes.get(4..8)?;
    Some(BATCH_HEADER_BYTES as u64 + u64::from(u32::from_le_bytes(body.try_into().ok()?)))
}

/// The payload in the record of a task.
fn payload_of(mut record: &[u8], names: &mut Names) -> Option<Bytes> {
    match decode(&mut record, names) {
        Ok(Change::Task(task)) => Some(task.payload),
        _ => None,
    }
}

/// What remains of a batch after a part of it was listed.
enum BatchLeft {
    Nothing,
    Records(Cursor),
}

/// Passes the records of a batch to `more` until that returns false. Returns none if a record
/// cannot be read.
fn list_batch(
    segment: u32,
    from: Cursor,
    header: &BatchHeader,
    batch: &[u8],
    mut more: impl FnMut(RecordKey, Place, &[u8]) -> bool,
) -> Option<BatchLeft> {
    let mut rest = &batch[BATCH_HEADER_BYTES..];
    for record in 0..header.records {
        let start = rest;
        let key = decode_key(&mut rest).ok()?;
        let Some(key) = key.filter(|_| record >= from.records) else { continue };
        let offset = from.batch + (batch.len() - start.len()) as u64;
        let place = Place {
            volume: segment,
            offset: u32::try_from(offset).ok()?,
            length: u32::try_from(start.len() - rest.len()).ok()?.try_into().ok()?,
        };
        let bytes = &start[..start.len() - rest.len()];
        if !more(key, place, bytes) && record + 1 < header.records {
            let records = record + 1;
            return Some(BatchLeft::Records(Cursor { batch: from.batch, records }));
        }
    }
    Some(BatchLeft::Nothing)
}
