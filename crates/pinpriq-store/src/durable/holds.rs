//! What keeps the payloads of an output readable that were left in the store.
//!
//! Reads nothing itself: see [`Durable::start_read`](super::Durable::start_read).

use std::collections::BTreeMap;
use std::sync::Arc;

use pinpriq_proto::change::Place;
use pinpriq_proto::task::Away;

use crate::store::Volume;

/// Keeps the payloads that an output needs from the store readable. Empty for most outputs.
#[derive(Clone, Default)]
#[expect(clippy::box_collection, reason = "every output carries it, and nearly all are empty")]
pub struct Holds(Option<Box<BTreeMap<u32, Arc<dyn Volume>>>>);

/// A payload to read back.
pub struct Wanted {
    /// The number of the task.
    pub number: u64,
    /// Where its payload is.
    pub away: Away,
    /// Keeps the payload readable.
    pub volume: Arc<dyn Volume>,
}

impl Holds {
    /// Whether no payload of the output was left in the store.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the volume that keeps this place readable.
    #[must_use]
    pub fn volume(&self, place: Place) -> Option<&Arc<dyn Volume>> {
        self.0.as_ref()?.get(&place.volume)
    }

    /// The oldest volume that is held.
    #[must_use]
    pub fn oldest(&self) -> Option<u32> {
        self.0.as_ref()?.first_key_value().map(|(number, _)| *number)
    }

    /// Adds a place. Without a volume the place cannot be read.
    pub(super) fn add(&mut self, place: Place, volume: Option<Arc<dyn Volume>>) {
        let volumes = self.0.get_or_insert_default();
        volumes.extend(volume.map(|volume| (place.volume, volume)));
    }
}
