//! Where things are, by the hash of their names.
//!
//! A table of hashes and addresses in one piece of memory, eight bytes each. A search reads
//! neighbours, so it usually costs one look into memory that no cache has. Names are not here: the
//! caller compares them. Nothing is ever gone through in the order of the table.

use super::named::Id;

/// The hash of a name, and the address of what has it. `None` where nothing is.
type Place = (u32, Option<Id>);

/// See the start of this file. Adding costs O(1), and O(n) when the table grows.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Place>,
    used: usize,
}

/// At least so many places, and a table of so many that is not worth being made smaller.
const PLACES_MIN: usize = 8;
const PLACES_KEPT: usize = 1_024;

impl Places {
    /// Returns what has this hash and is the right one.
    pub(super) fn find(&self, hash: u32, is_wanted: impl Fn(Id) -> bool) -> Option<Id> {
        let mut at = self.home(hash);
        while let Some((other, Some(id))) = self.places.get(at) {
            if *other == hash && is_wanted(*id) {
                return Some(*id);
            }
            at = self.after(at);
        }
        None
    }

    pub(super) fn insert(&mut self, hash: u32, id: Id) {
        // At most four fifths are in use.
        if (self.used + 1) * 5 > self.places.len() * 4 {
            self.resize((self.places.len() * 3 / 2).max(PLACES_MIN));
        }
        self.put(hash, id);
    }

    /// Removes an address, which must be there.
    pub(super) fn remove(&mut self, hash: u32, id: Id) {
        let mut gap = self.home(hash);
        while self.places[gap].1 != Some(id) {
            assert!(self.places[gap].1.is_some(), "there is a place for {id:?}");
            gap = self.after(gap);
        }
        // Those that would not be found beyond a gap move into it.
        let mut next = self.after(gap);
        while let (hash, Some(_)) = self.places[next] {
            let home = self.home(hash);
            let is_between =
                if gap <= next { gap < home && home <= next } else { gap < home || home <= next };
            if !is_between {
                self.places[gap] = self.places[next];
                gap = next;
            }
            next = self.after(next);
        }
        self.places[gap] = (0, None);
        self.used -= 1;
        if self.places.len() > PLACES_KEPT && self.used < self.places.len() / 8 {
            self.resize(self.places.len() / 4);
        }
    }

    fn put(&mut self, hash: u32, id: Id) {
        let mut at = self.home(hash);
        while self.places[at].1.is_some() {
            at = self.after(at);
        }
        self.places[at] = (hash, Some(id));
        self.used += 1;
    }

    fn resize(&mut self, room: usize) {
        let former = std::mem::replace(&mut self.places, vec![(0, None); room]);
        self.used = 0;
        for (hash, id) in former {
            if let Some(id) = id {
                self.put(hash, id);
            }
        }
    }

    /// The place at which the search for a hash begins.
    const fn home(&self, hash: u32) -> usize {
        ((hash as u64 * self.places.len() as u64) >> 32) as usize
    }

    const fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() { 0 } else { at + 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::memory::sorted::tests::draws;

    /// Adds and removes by a fixed sequence of numbers, and compares with a map. Many have the same
    /// hash, and some are at the end of the table.
    #[test]
    fn what_was_added_is_found_until_it_is_removed() {
        let mut draw = draws();
        let (mut places, mut known) = (Places::default(), BTreeMap::new());
        for step in 0..40_000_u64 {
            let number = usize::try_from(draw(3_000)).unwrap_or(0);
            let id = Id::of(number);
            let hash = match number % 3 {
                0 => u32::MAX - u32::try_from(number % 7).unwrap_or(0),
                1 => u32::try_from(number % 50).unwrap_or(0) << 24,
                _ => u32::try_from(number).unwrap_or(0).wrapping_mul(0x9E37_79B9),
            };
            let is_full = (step / 10_000) % 2 == 0;
            if !known.contains_key(&number) && (is_full || draw(4) == 0) {
                places.insert(hash, id);
                known.insert(number, hash);
            } else if known.remove(&number).is_some() {
                places.remove(hash, id);
            }
            let found = places.find(hash, |other| other == id);
            assert_eq!(found.is_some(), known.contains_key(&number));
            assert_eq!(places.used, known.len());
        }
        for (number, hash) in &known {
            assert!(places.find(*hash, |other| other == Id::of(*number)).is_some());
        }
    }
}
