//! The store that keeps nothing: durability level `memory`.
//!
//! Every batch has reached its level as soon as it is appended, and everything is gone with the
//! process. Places are all alike, and nothing is ever written again.

use pinpriq_engine::change::{Change, Header, Place, RecordKey};
use pinpriq_engine::time::Timestamp;

use crate::store::{Figures, Loaded, Position, Progress, Room, Store, StoreError, Urgency};

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct MemoryStore {
    last: Position,
}

impl MemoryStore {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    fn load(&mut self, _sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        Ok(Loaded::default())
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
            if matches!(change, Change::Task(_) | Change::Queue(_)) {
                placed(index, Place { volume: 0, offset: 0, length: 0 });
            }
        }
        self.last.0 += 1;
        Ok(self.last)
    }

    fn obsolete(&mut self, _place: Place) {}

    fn drive(&mut self, _now: Timestamp) -> Result<Progress, StoreError> {
        Ok(Progress { reached: self.last })
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn poll_rewrite(&mut self) -> Vec<(RecordKey, Place)> {
        Vec::new()
    }

    fn room(&self) -> Room {
        Room::Enough
    }

    fn finish(&mut self, _now: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    fn figures(&self) -> Figures {
        Figures { batches: self.last.0, ..Figures::default() }
    }
}
