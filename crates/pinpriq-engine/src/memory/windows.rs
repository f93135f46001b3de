//! The windows of unique tasks, by number, and by queue and key. What they do is in
//! `operations/unique.rs`.

use crate::memory::details::{Kept, Records};
use pinpriq_proto::change::Place;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::unique::WindowRecord;

/// A window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) record: WindowRecord,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
    /// Whether its task is in the queue, unfinished and unique.
    pub(crate) held: bool,
}

/// See the start of this file. Those without a holder count.
pub(crate) type Windows = Records<Window>;

impl Kept for Window {
    type Record = WindowRecord;

    fn names(&self) -> (u64, Bytes, Bytes) {
        (self.record.number, self.record.queue.clone(), self.record.key.clone())
    }

    fn record(&self) -> &WindowRecord {
        &self.record
    }

    fn place(&mut self) -> &mut Option<Place> {
        &mut self.place
    }

    fn counts(&self) -> bool {
        !self.held
    }
}

impl Windows {
    /// Notes whether the task of a window is there, if it has a window.
    pub(crate) fn hold(&mut self, number: u64, held: bool) {
        self.change(number, |window| window.held = held);
    }
}
