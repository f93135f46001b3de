//! The batches that wait for the next write.
//!
//! Each is encoded directly into the buffer that will be written, at a place that is fixed as soon
//! as it is appended. The headers are filled in last, when the write starts. By then more is known
//! to be durable, and the more each batch says, the less damage can be mistaken for a torn tail.

use std::num::NonZeroU32;

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;

use super::segment::{BATCH_HEADER_BYTES, BatchHeader, aligned};
use super::writer::{Commit, Roll, Step};
use crate::codec::encode;
use crate::store::Urgency;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    commit: Commit,
    seals: Vec<Seal>,
    records: Vec<PlacedRecord>,
    /// The number of records in the batches.
    count: usize,
    soon: bool,
    since: Timestamp,
}

/// A header to fill in.
#[derive(Debug)]
struct Seal {
    at: usize,
    offset: u64,
    salt: u64,
    header: BatchHeader,
}

/// A record with a place in the batch being encoded: which change, and where in the batch.
#[derive(Clone, Copy, Debug)]
struct PlacedRecord {
    index: usize,
    at: usize,
    length: usize,
}

/// An encoded batch without a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded {
    at: usize,
    body_bytes: usize,
    records: usize,
    /// The bytes that it occupies in the file, padding included.
    pub(crate) padded_bytes: u64,
    /// The bytes of its records that have a place.
    pub(crate) placed_bytes: u64,
}

/// Where a batch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) salt: u64,
    pub(crate) oldest: u32,
    pub(crate) lsn: u64,
}

impl Encoded {
    /// Whether it has records, and all of them have a place.
    pub(crate) const fn has_places_only(&self) -> bool {
        self.records > 0 && self.placed_bytes == self.body_bytes as u64
    }
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.seals.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.commit.bytes.len()
    }

    pub(crate) fn batches(&self) -> usize {
        self.seals.len()
    }

    /// The number of records in all batches.
    pub(crate) fn records(&self) -> usize {
        self.count
    }

    /// Whether a caller waits for any of it.
    pub(crate) fn is_urgent(&self) -> bool {
        self.soon
    }

    /// The moment of its first batch.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Encodes a batch at the end of the buffer. The caller has to place or drop it next.
    pub(crate) fn encode(&mut self, changes: &[Change]) -> Encoded {
        let at = self.commit.bytes.len();
        let bytes = &mut self.commit.bytes;
        bytes.resize(at + BATCH_HEADER_BYTES, 0);
        self.records.clear();
        for (index, change) in changes.iter().enumerate() {
            let start = bytes.len();
            encode(change, bytes);
            if change.key().is_some() {
                let length = bytes.len() - start;
                self.records.push(PlacedRecord { index, at: start - at, length });
            }
        }
        let batch_bytes = bytes.len() - at;
        Encoded {
            at,
            body_bytes: batch_bytes - BATCH_HEADER_BYTES,
            records: changes.len(),
            padded_bytes: aligned(batch_bytes as u64),
            placed_bytes: self.records.iter().map(|record| record.length as u64).sum(),
        }
    }

    /// Removes an encoded batch again.
    pub(crate) fn drop_encoded(&mut self, encoded: Encoded) {
        self.commit.bytes.truncate(encoded.at);
    }

    /// Continues the log in a new segment.
    pub(crate) fn roll(&mut self, roll: Roll) {
        self.commit.steps.push(Step::Roll(roll));
    }

    /// Gives the encoded batch its place. It must fit there, and offsets must fit in four bytes.
    pub(crate) fn place(
        &mut self,
        encoded: Encoded,
        target: &Target,
        facts: &Header,
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) {
        for record in &self.records {
            placed(
                record.index,
                Place {
                    volume: target.segment,
                    offset: narrow(crate::disk::index(target.offset) + record.at),
                    length: NonZeroU32::new(narrow(record.length)).unwrap_or(NonZeroU32::MIN),
                },
            );
        }
        let end = encoded.at + crate::disk::index(encoded.padded_bytes);
        self.commit.bytes.resize(end, 0);
        if let Some(Step::Write { to, .. }) = self.commit.steps.last_mut() {
            *to = end;
        } else {
            let step = Step::Write { offset: target.offset, from: encoded.at, to: end };
            self.commit.steps.push(step);
        }
        if self.seals.is_empty() {
            self.since = facts.now;
        }
        self.soon |= urgency == Urgency::Soon;
        self.count += encoded.records;
        self.seals.push(Seal {
            at: encoded.at,
            offset: target.offset,
            salt: target.salt,
            header: BatchHeader {
                body_bytes: narrow(encoded.body_bytes),
                lsn: target.lsn,
                durable_lsn: 0,
                incarnation: facts.incarnation,
                now: facts.now.ms(),
                last_number: facts.last_number,
                oldest: target.oldest,
                records: narrow(encoded.records),
            },
        });
    }

    /// Whether a new segment of this size has no spare yet.
    pub(crate) fn lacks_spare(&self, bytes: u64) -> bool {
        self.commit.steps.iter().any(|step| {
            matches!(step, Step::Roll(roll) if roll.spare.is_none() && roll.capacity == bytes)
        })
    }

    /// Returns all pending batches as one write. New segments for which there was no spare yet take
    /// one from `spares` if one of their size exists now.
    pub(crate) fn seal(
        &mut self,
        durable_lsn: u64,
        mut spares: impl FnMut(u64) -> Option<u32>,
        buffers: Commit,
    ) -> Commit {
        for seal in &self.seals {
            let header = BatchHeader { durable_lsn, ..seal.header };
            let end = seal.at + header.batch_bytes();
            header.seal(&mut self.commit.bytes[seal.at..end], seal.salt, seal.offset);
        }
        for step in &mut self.commit.steps {
            if let Step::Roll(roll) = step
                && roll.spare.is_none()
            {
                roll.spare = spares(roll.capacity);
            }
        }
        self.seals.clear();
        self.soon = false;
        self.count = 0;
        std::mem::replace(&mut self.commit, buffers)
    }
}

/// Batches are limited far below what four bytes can express.
fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
