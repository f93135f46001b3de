//! The rules of their own that shares have, as the store keeps them: by number, and by queue and
//! share. What turns read of them is in [`crate::memory::queues::Queue::shares`].

use crate::memory::details::{Kept, Records};
use pinpriq_proto::change::Place;
use pinpriq_proto::shares::ShareRecord;
use pinpriq_proto::task::Bytes;

/// The rules of one share.
#[derive(Debug)]
pub(crate) struct OwnShare {
    pub(crate) record: ShareRecord,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
}

/// See the start of this file. Those that can hold tasks back count.
pub(crate) type OwnShares = Records<OwnShare>;

impl Kept for OwnShare {
    type Record = ShareRecord;

    fn names(&self) -> (u64, Bytes, Bytes) {
        (self.record.number, self.record.queue.clone(), self.record.share.clone())
    }

    fn record(&self) -> &ShareRecord {
        &self.record
    }

    fn place(&mut self) -> &mut Option<Place> {
        &mut self.place
    }

    fn counts(&self) -> bool {
        self.record.rules.may_hold_back()
    }
}
