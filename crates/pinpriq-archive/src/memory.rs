//! A place in memory, which can get into trouble when a test wants it to.
//!
//! It is for tests alone: nothing in it outlives the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::place::{Listing, Place, PlaceError};

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryPlace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    /// How many objects were created or removed.
    changes: u64,
    /// How many more changes are carried out. None: any number.
    left: Option<u64>,
    /// How many of the next objects are created without an answer.
    lost_answers: u64,
    /// How many times something was listed.
    listings: u64,
    /// How many objects were read.
    reads: u64,
    /// Whether removing is refused.
    keeps_all: bool,
    /// Whether creating is refused.
    keeps_out: bool,
}

impl MemoryPlace {
    /// A place without objects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails every change after this many more.
    pub fn stop_after(&self, changes: u64) {
        self.state().left = Some(changes);
    }

    /// Creates this many of the next objects, and then says that it has failed.
    pub fn lose_answers(&self, objects: u64) {
        self.state().lost_answers = objects;
    }

    /// Ends all trouble.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.left, state.keeps_all, state.keeps_out) = (None, false, false);
        state.lost_answers = 0;
    }

    /// Refuses to remove anything.
    pub fn keep_all(&self) {
        self.state().keeps_all = true;
    }

    /// Refuses to create anything.
    pub fn keep_out(&self) {
        self.state().keeps_out = true;
    }

    /// How many objects were created or removed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// How many times something was listed.
    #[must_use]
    pub fn listings(&self) -> u64 {
        self.state().listings
    }

    /// How many objects were read, or looked for.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// All objects by their names.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.state().objects.clone()
    }

    /// Puts an object there, whatever was there before.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        self.state().objects.insert(name.to_owned(), bytes);
    }

    /// Takes an object away.
    pub fn take_away(&self, name: &str) {
        self.state().objects.remove(name);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count_change(&mut self, what: &'static str, name: &str) -> Result<(), PlaceError> {
        if self.left == Some(0) {
            let why = "the test wants it so".to_owned();
            return Err(PlaceError::Away { what, name: name.to_owned(), why });
        }
        self.left = self.left.map(|left| left - 1);
        self.changes += 1;
        Ok(())
    }
}

fn refused(what: &'static str, name: &str) -> PlaceError {
    let why = "the test wants it so".to_owned();
    PlaceError::Denied { what, name: name.to_owned(), why }
}

impl Place for MemoryPlace {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        let mut state = self.state();
        if state.keeps_out {
            return Err(refused("write", name));
        }
        if state.objects.contains_key(name) {
            return Ok(false);
        }
        state.count_change("write", name)?;
        state.objects.insert(name.to_owned(), bytes.to_vec());
        if state.lost_answers > 0 {
            state.lost_answers -= 1;
            let why = "the test loses the answer".to_owned();
            return Err(PlaceError::Away { what: "write", name: name.to_owned(), why });
        }
        Ok(true)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        let mut state = self.state();
        state.reads += 1;
        Ok(state.objects.get(name).cloned())
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let mut listing = Listing::default();
        let mut state = self.state();
        state.listings += 1;
        for (name, bytes) in &state.objects {
            match name.strip_prefix(&start).map(|rest| (rest, rest.split_once('/'))) {
                Some((_, Some((first, _)))) => listing.prefixes.push(first.to_owned()),
                Some((rest, None)) => listing.objects.push((rest.to_owned(), bytes.len() as u64)),
                None => {}
            }
        }
        listing.sort();
        Ok(listing)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        let mut state = self.state();
        if state.keeps_all {
            return Err(refused("remove", name));
        }
        if !state.objects.contains_key(name) {
            return Ok(false);
        }
        state.count_change("remove", name)?;
        Ok(state.objects.remove(name).is_some())
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}
