//! Pages of a fixed size for values of one type, each under an index that does not change.
//!
//! Growing copies no values but those of the first page, which begins small: many of these have few
//! values. When the last value of a page is removed, the page can go back to the allocator. This
//! module knows nothing about the values.

use crate::memory::vacancies::{self, Vacancies};

/// The number of values in a page.
pub(crate) const PAGE_PLACES: usize = 256;

/// The number of values for which the first page has room at first.
const FEW_PLACES: usize = 2;

/// A run of places. It has memory for the places from its first value to its last.
#[derive(Debug)]
struct Page<T> {
    places: Vec<Option<T>>,
    /// One bit for each place in use.
    taken: [u64; PAGE_PLACES / 64],
    used: usize,
    /// Whether it is in the list of pages with free places.
    is_listed: bool,
}

/// Values by index.
#[derive(Debug)]
pub(crate) struct Pages<T> {
    all: Vacancies<Page<T>>,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self { all: Vacancies::default() }
    }
}

impl<T> vacancies::Page for Page<T> {
    fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn give_back_room(&mut self) {
        self.places = Vec::new();
    }

    fn is_listed(&mut self) -> &mut bool {
        &mut self.is_listed
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { places: Vec::new(), taken: [0; PAGE_PLACES / 64], used: 0, is_listed: false }
    }
}

impl<T> Page<T> {
    /// Returns the first free place.
    fn free(&self) -> Option<usize> {
        let word = self.taken.iter().position(|word| *word != u64::MAX)?;
        Some(word * 64 + self.taken[word].trailing_ones() as usize)
    }

    /// Makes room for more values.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, is_first: bool) {
        let few = (2 * self.places.len()).max(FEW_PLACES);
        let room = if is_first { few } else { PAGE_PLACES };
        self.places.reserve_exact(room - self.places.len());
        self.places.resize_with(room, || None);
    }

    fn put(&mut self, at: usize, thing: T, is_first: bool) {
        if at >= self.places.len() {
            self.grow(is_first);
        }
        self.taken[at / 64] |= 1 << (at % 64);
        self.used += 1;
        let former = self.places[at].replace(thing);
        debug_assert!(former.is_none(), "place {at} was free");
    }

    fn take(&mut self, at: usize) -> Option<T> {
        let thing = self.places.get_mut(at)?.take()?;
        self.taken[at / 64] &= !(1 << (at % 64));
        self.used -= 1;
        Some(thing)
    }
}

impl<T> Pages<T> {
    /// Adds a value, and returns its index.
    pub(crate) fn insert(&mut self, thing: T) -> usize {
        let page = self.all.roomy(|page| page.used < PAGE_PLACES);
        let Some(at) = self.all.pages[page].free() else { unreachable!("page {page} has room") };
        self.all.pages[page].put(at, thing, page == 0);
        page * PAGE_PLACES + at
    }

    /// Removes and returns the value at `index`, if there is one.
    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        let at = index / PAGE_PLACES;
        let thing = self.all.pages.get_mut(at)?.take(index % PAGE_PLACES)?;
        self.all.freed(at);
        Some(thing)
    }

    /// Returns the value at `index`, if there is one.
    pub(crate) fn find(&self, index: usize) -> Option<&T> {
        self.all.pages.get(index / PAGE_PLACES)?.places.get(index % PAGE_PLACES)?.as_ref()
    }

    /// Like [`Self::find`], but mutable.
    pub(crate) fn find_mut(&mut self, index: usize) -> Option<&mut T> {
        self.all.pages.get_mut(index / PAGE_PLACES)?.places.get_mut(index % PAGE_PLACES)?.as_mut()
    }

    /// Frees the values of one page, of pages that are used no longer.
    pub(crate) fn free_page(&mut self) {
        self.all.pages.pop();
    }

    /// Iterates over all values with their indexes. Costs O(n).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let pages = self.all.pages.iter().enumerate();
        pages.flat_map(|(page, places)| {
            let places = places.places.iter().enumerate();
            places.filter_map(move |(at, thing)| Some((page * PAGE_PLACES + at, thing.as_ref()?)))
        })
    }

    /// The number of values. Costs a step for each page: for checks only.
    pub(crate) fn count(&self) -> usize {
        self.all.pages.iter().map(|page| page.used).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_goes_with_what_was_in_it() {
        let mut pages = Pages::default();
        let count = 20 * PAGE_PLACES;
        let with_room = |pages: &Pages<usize>| {
            pages.all.pages.iter().filter(|page| !page.places.is_empty()).count()
        };
        let indexes: Vec<usize> = (0..count).map(|thing| pages.insert(thing)).collect();
        assert_eq!(with_room(&pages), 20);
        for (thing, index) in indexes.into_iter().enumerate() {
            assert_eq!(pages.find(index), Some(&thing));
            assert_eq!(pages.remove(index), Some(thing));
            assert_eq!(pages.remove(index), None);
        }
        assert_eq!(with_room(&pages), 1, "one page is kept for what comes next");
        for thing in 0..count {
            pages.insert(thing);
        }
        assert_eq!(pages.all.pages.len(), 20, "free places are used again");
    }
}
