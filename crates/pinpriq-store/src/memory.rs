//! The store that keeps nothing: durability level `memory`.
//!
//! Every batch reaches its level as soon as it is appended, and everything is lost when the process
//! ends. All places are alike, and no record is ever written again.

use std::num::NonZeroU32;

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;

use crate::store::{
    Figures, Loaded, Position, Progress, Reclaims, Rewrite, Room, Store, StoreError, TaskCounts,
    Urgency,
};

/// A store that keeps nothing.
#[derive(Debug, Default)]
pub struct MemoryStore {
    last: Position,
    incarnations_before: u64,
    numbers_after: u64,
}

impl MemoryStore {
    /// Creates a store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store for a server that may have had this many incarnations before. The store
    /// cannot know them, and each incarnation must have a number of its own.
    #[must_use]
    pub fn after(incarnations_before: u64) -> Self {
        Self { incarnations_before, ..Self::default() }
    }

    /// Makes every task number higher than `number`. For one of several shards, with
    /// [`first_number`](crate::shards::first_number).
    #[must_use]
    pub const fn numbering_after(self, number: u64) -> Self {
        Self { numbers_after: number, ..self }
    }
}

impl Store for MemoryStore {
    fn load(&mut self, _sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        let (incarnation, last_number) = (self.incarnations_before, self.numbers_after);
        let header = Header { incarnation, last_number, ..Header::default() };
        Ok(Loaded { header, ..Loaded::default() })
    }

    fn keeps_changes(&self) -> bool {
        false
    }

    fn begin(&mut self, _header: &Header) -> Result<(), StoreError> {
        Ok(())
    }

    fn append(
        &mut self,
        _header: &Header,
        changes: &[Change],
        _urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        for (index, change) in changes.iter().enumerate() {
            if change.key().is_some() {
                placed(index, Place { volume: 0, offset: 0, length: NonZeroU32::MIN });
            }
        }
        self.last.0 += 1;
        Ok(self.last)
    }

    fn drive(&mut self, _now: Timestamp) -> Result<Progress, StoreError> {
        Ok(Progress { reached: self.last })
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn finish(&mut self, _now: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    fn figures(&self) -> Figures {
        Figures { batches: self.last.0, ..Figures::default() }
    }
}

impl Reclaims for MemoryStore {
    fn obsolete(&mut self, _place: Place) {}

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        Vec::new()
    }

    fn room(&mut self, _tasks: &dyn Fn() -> TaskCounts) -> Room {
        Room::Enough
    }
}
