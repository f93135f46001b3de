//! Things by name, each under an id that stays the same while it is there.
//!
//! A table maps part of the hash of a name to the first thing with it. Those after it are linked,
//! and the names tell them apart. So a name costs one look into a table and one at the thing.
//! Nothing here is ever gone through in the order of the table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZeroU32;

use crate::memory::pages::Pages;
use crate::memory::slots::KeyHash;
use pinpriq_proto::task::Bytes;

/// The address of a thing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Id(NonZeroU32);

/// See the start of this file.
#[derive(Debug)]
pub(super) struct Named<T> {
    things: Pages<Entry<T>>,
    /// The first thing of each hash.
    heads: HashMap<u32, Id, BuildHasherDefault<Spread>>,
}

#[derive(Debug)]
struct Entry<T> {
    name: Bytes,
    hash: u32,
    /// The next thing with this hash.
    next: Option<Id>,
    thing: T,
}

/// Spreads a hash over the bits that the table looks at.
#[derive(Default)]
struct Spread(u64);

/// The room of a table that is not worth being given back.
const ROOM_KEPT: usize = 1_024;

impl Id {
    fn of(index: usize) -> Self {
        let Some(id) = u32::try_from(index + 1).ok().and_then(NonZeroU32::new) else {
            panic!("more than {} names in one queue", u32::MAX)
        };
        Self(id)
    }

    /// An id that nothing has, counted from the last one.
    pub(super) fn last_but(count: usize) -> Self {
        Self::of((u32::MAX - 1) as usize - count)
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32((*byte).into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { things: Pages::default(), heads: HashMap::default() }
    }
}

impl<T> Named<T> {
    /// Returns the thing of this name.
    pub(super) fn find(&self, name: &[u8], hash: KeyHash) -> Option<Id> {
        let mut next = self.heads.get(&part_of(hash)).copied();
        while let Some(id) = next.filter(|id| !self.is_called(*id, name)) {
            next = self.entry(id).next;
        }
        next
    }

    /// Returns the thing under this id, if there is one.
    pub(super) fn find_at(&self, id: Id) -> Option<&T> {
        self.things.find(id.index()).map(|entry| &entry.thing)
    }

    /// Whether there is a thing under this id, and it has this name.
    pub(super) fn is_called(&self, id: Id, name: &[u8]) -> bool {
        self.things.find(id.index()).is_some_and(|entry| *entry.name == *name)
    }

    /// Adds a thing, whose name must be new.
    pub(super) fn insert(&mut self, name: Bytes, hash: KeyHash, thing: T) -> Id {
        let hash = part_of(hash);
        let next = self.heads.get(&hash).copied();
        let id = Id::of(self.things.insert(Entry { name, hash, next, thing }));
        self.heads.insert(hash, id);
        id
    }

    /// Removes a thing.
    pub(super) fn remove(&mut self, id: Id) -> T {
        let Some(gone) = self.things.remove(id.index()) else { unreachable!("no thing at {id:?}") };
        let mut before = self.heads.get(&gone.hash).copied().filter(|head| *head != id);
        if before.is_none() {
            match gone.next {
                Some(next) => self.heads.insert(gone.hash, next),
                None => self.heads.remove(&gone.hash),
            };
        }
        while let Some(at) = before {
            let entry = self.entry_mut(at);
            if entry.next == Some(id) {
                entry.next = gone.next;
                break;
            }
            before = entry.next;
        }
        let room = self.heads.capacity();
        if room > ROOM_KEPT && self.heads.len() < room / 8 {
            self.heads.shrink_to(room / 4);
        }
        gone.thing
    }

    pub(super) fn name(&self, id: Id) -> &Bytes {
        &self.entry(id).name
    }

    /// Frees some things, of names that are used no longer.
    pub(super) fn free_some(&mut self) {
        self.things.free_page();
    }

    /// Iterates over all things in the order of their addresses. Costs O(n).
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.things.iter().map(|(index, entry)| (Id::of(index), &entry.thing))
    }

    fn entry(&self, id: Id) -> &Entry<T> {
        match self.things.find(id.index()) {
            Some(entry) => entry,
            None => unreachable!("no thing at {id:?}"),
        }
    }

    fn entry_mut(&mut self, id: Id) -> &mut Entry<T> {
        match self.things.find_mut(id.index()) {
            Some(entry) => entry,
            None => unreachable!("no thing at {id:?}"),
        }
    }
}

impl<T> std::ops::Index<Id> for Named<T> {
    type Output = T;

    fn index(&self, id: Id) -> &T {
        &self.entry(id).thing
    }
}

impl<T> std::ops::IndexMut<Id> for Named<T> {
    fn index_mut(&mut self, id: Id) -> &mut T {
        &mut self.entry_mut(id).thing
    }
}

/// The part of a hash that the table holds.
const fn part_of(hash: KeyHash) -> u32 {
    (hash.0 >> 32) as u32
}
