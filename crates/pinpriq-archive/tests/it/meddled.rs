//! A place in memory of which a test says what happens before it does what it is asked, and a gate
//! that holds back whoever asks.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{Listing, Place, PlaceError};

/// What a place is asked to do, with names.
pub(crate) enum Asked<'n> {
    /// And with the bytes of the object.
    Create(&'n str, &'n [u8]),
    Get(&'n str),
    List,
    Remove(&'n str),
}

type Before<'a> = Box<dyn Fn(&Asked<'_>) -> Result<(), PlaceError> + Send + Sync + 'a>;

/// A place in memory, which does nothing if what comes before fails.
pub(crate) struct Meddled<'a, P> {
    place: P,
    before: Before<'a>,
}

impl<'a, P> Meddled<'a, P> {
    pub(crate) fn new(
        place: P,
        before: impl Fn(&Asked<'_>) -> Result<(), PlaceError> + Send + Sync + 'a,
    ) -> Self {
        Self { place, before: Box::new(before) }
    }

    /// Something happens before an object of this name and with these bytes is created.
    pub(crate) fn before_creating(
        place: P,
        before: impl Fn(&str, &[u8]) + Send + Sync + 'a,
    ) -> Self {
        Self::new(place, move |asked| {
            if let Asked::Create(name, bytes) = asked {
                before(name, bytes);
            }
            Ok(())
        })
    }
}

impl<P: Deref<Target = MemoryPlace> + Send + Sync> Place for Meddled<'_, P> {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        (self.before)(&Asked::Create(name, bytes))?;
        self.place.create(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        (self.before)(&Asked::Get(name))?;
        self.place.get(name)
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        (self.before)(&Asked::List)?;
        self.place.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        (self.before)(&Asked::Remove(name))?;
        self.place.remove(name)
    }

    fn name(&self) -> String {
        self.place.name()
    }
}

/// The place does not answer.
pub(crate) fn away(what: &'static str, name: &str) -> PlaceError {
    let why = "the test wants it so".to_owned();
    PlaceError::Away { what, name: name.to_owned(), why }
}

/// Holds threads back until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Waits until it is open.
    pub(crate) fn pass(&self) {
        let is_open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open).unwrap());
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}
