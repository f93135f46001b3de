//! Things by name, each under an id that stays the same while it is there.
//!
//! A name costs one look into a table and one at the thing, next to which short names are. Nothing
//! here is ever gone through in the order of the table.

use std::num::NonZeroU32;

use super::places::Places;
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
    places: Places,
}

#[derive(Debug)]
struct Entry<T> {
    name: Name,
    thing: T,
}

/// The most bytes of a name that needs no allocation.
const SHORT_MAX: usize = 22;

#[derive(Debug)]
enum Name {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(Bytes),
}

impl Id {
    pub(super) fn of(index: usize) -> Self {
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

impl Name {
    fn of(name: &[u8]) -> Self {
        let mut bytes = [0; SHORT_MAX];
        match (u8::try_from(name.len()), bytes.get_mut(..name.len())) {
            (Ok(len), Some(short)) => {
                short.copy_from_slice(name);
                Self::Short { len, bytes }
            }
            _ => Self::Long(name.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { things: Pages::default(), places: Places::default() }
    }
}

impl<T> Named<T> {
    /// Returns the thing of this name.
    pub(super) fn find(&self, name: &[u8], hash: KeyHash) -> Option<Id> {
        self.places.find(part_of(hash), |id| self.is_called(id, name))
    }

    /// Returns the thing under this id, if there is one.
    pub(super) fn find_at(&self, id: Id) -> Option<&T> {
        self.things.find(id.index()).map(|entry| &entry.thing)
    }

    /// Whether there is a thing under this id, and it has this name.
    #[inline]
    pub(super) fn is_called(&self, id: Id, name: &[u8]) -> bool {
        self.things.find(id.index()).is_some_and(|entry| entry.name.bytes() == name)
    }

    /// Adds a thing, whose name must be new.
    pub(super) fn insert(&mut self, name: &[u8], hash: KeyHash, thing: T) -> Id {
        let id = Id::of(self.things.insert(Entry { name: Name::of(name), thing }));
        self.places.insert(part_of(hash), id);
        id
    }

    /// Removes a thing whose name has this hash.
    pub(super) fn remove(&mut self, id: Id, hash: KeyHash) -> T {
        let Some(gone) = self.things.remove(id.index()) else { unreachable!("no thing at {id:?}") };
        self.places.remove(part_of(hash), id);
        gone.thing
    }

    pub(super) fn name(&self, id: Id) -> &[u8] {
        self.entry(id).name.bytes()
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
}

impl<T> std::ops::Index<Id> for Named<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: Id) -> &T {
        &self.entry(id).thing
    }
}

impl<T> std::ops::IndexMut<Id> for Named<T> {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut T {
        match self.things.find_mut(id.index()) {
            Some(entry) => &mut entry.thing,
            None => unreachable!("no thing at {id:?}"),
        }
    }
}

/// The part of a hash that the table holds.
const fn part_of(hash: KeyHash) -> u32 {
    (hash.0 >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_were() {
        let long = [b'x'; 255];
        for len in [0, 1, SHORT_MAX - 1, SHORT_MAX, SHORT_MAX + 1, 255] {
            assert_eq!(Name::of(&long[..len]).bytes(), &long[..len]);
        }
        assert_eq!(size_of::<Name>(), 24);
    }
}
