//! A place in which somebody else does something at a moment that a test chooses.

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{Listing, Place, PlaceError};

/// A place in memory.
pub(crate) struct Meddled<'a> {
    pub(crate) place: &'a MemoryPlace,
    /// Called before an object is created, with its name and its bytes.
    pub(crate) before: &'a (dyn Fn(&str, &[u8]) + Sync),
}

impl Place for Meddled<'_> {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        (self.before)(name, bytes);
        self.place.create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.place.get(name)
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        self.place.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        self.place.remove(name)
    }

    fn name(&self) -> String {
        self.place.name()
    }
}
