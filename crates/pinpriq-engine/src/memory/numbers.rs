//! Finds the slot of a task by its number.
//!
//! Numbers come from a counter, so those in use are close together. A page holds the slots of a run
//! of numbers, a shelf holds a run of pages, and the shelves that are not empty are sorted. A
//! number in a full page costs a little more than four bytes. One that is alone in its page costs
//! about three hundred bytes, and one that is alone in its shelf two thousand more. Knows nothing
//! about the tasks themselves.

use crate::memory::slots::Slot;
use crate::memory::sorted::{Cursor, Key, Sorted};

/// The number of task numbers in a page.
const PAGE_NUMBERS: usize = 64;

/// The number of pages in a shelf.
const SHELF_PAGES: usize = 256;

/// Slots by number. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    shelves: Sorted<Box<Shelf>>,
    /// The highest number yet. Its page stays even when it is empty, since the next number goes
    /// there.
    newest: u64,
}

#[derive(Debug)]
struct Shelf {
    pages: [Option<Box<Page>>; SHELF_PAGES],
    used: usize,
}

#[derive(Debug)]
struct Page {
    slots: [Option<Slot>; PAGE_NUMBERS],
    used: usize,
}

/// The shelf, the page and the position of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Address {
    shelf: Key,
    page: usize,
    at: usize,
}

impl Shelf {
    const EMPTY: Self = Self { pages: [const { None }; SHELF_PAGES], used: 0 };
}

impl Page {
    const EMPTY: Self = Self { slots: [None; PAGE_NUMBERS], used: 0 };
}

impl Address {
    #[expect(clippy::cast_possible_truncation, reason = "remainders are smaller than the spans")]
    const fn of(number: u64) -> Self {
        let page = number / PAGE_NUMBERS as u64;
        Self {
            shelf: (page / SHELF_PAGES as u64) as Key,
            page: (page % SHELF_PAGES as u64) as usize,
            at: (number % PAGE_NUMBERS as u64) as usize,
        }
    }

    fn is_on_page_of(self, other: Self) -> bool {
        (self.shelf, self.page) == (other.shelf, other.page)
    }
}

impl Numbers {
    /// Adds a number that must be new.
    pub(crate) fn insert(&mut self, number: u64, slot: Slot) {
        let address = Address::of(number);
        if number > self.newest {
            let former = Address::of(std::mem::replace(&mut self.newest, number));
            if !former.is_on_page_of(address) {
                self.tidy(former);
            }
        }
        let cursor = match self.shelf(address) {
            Some(cursor) => cursor,
            None => self.shelves.insert(address.shelf, Box::new(Shelf::EMPTY)),
        };
        let Shelf { pages, used } = &mut **self.shelves.value_mut(cursor);
        let page = pages[address.page].get_or_insert_with(|| {
            *used += 1;
            Box::new(Page::EMPTY)
        });
        let known = page.slots[address.at].replace(slot);
        assert!(known.is_none(), "task {number} was inserted twice");
        page.used += 1;
    }

    /// Removes a number that must be known.
    pub(crate) fn remove(&mut self, number: u64) {
        let address = Address::of(number);
        let page = self.page_mut(address).map(|(_, page)| page);
        let known = page.and_then(|page| {
            page.used -= 1;
            page.slots[address.at].take().map(|_| page.used)
        });
        let Some(left) = known else { unreachable!("task {number} is not known") };
        if left == 0 && !address.is_on_page_of(Address::of(self.newest)) {
            self.tidy(address);
        }
    }

    /// Returns the slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        let Address { shelf, page, at } = Address::of(number);
        let found = self.shelves.value(self.shelves.find_in_row(shelf)?);
        found.pages[page].as_ref()?.slots[at]
    }

    /// Iterates over all slots in the order of their numbers. Costs O(n): for start and checks
    /// only.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let pages = self.shelves.iter().flat_map(|(_, shelf)| shelf.pages.iter().flatten());
        pages.flat_map(|page| page.slots.iter().flatten().copied())
    }

    /// The shelf of a new number, which mostly belongs on the last one.
    #[inline]
    fn shelf(&self, address: Address) -> Option<Cursor> {
        let last = self.shelves.last().filter(|last| self.shelves.key(*last) == address.shelf);
        last.or_else(|| self.shelves.find(address.shelf))
    }

    fn page_mut(&mut self, address: Address) -> Option<(Cursor, &mut Page)> {
        let cursor = self.shelves.find_in_row(address.shelf)?;
        let page = self.shelves.value_mut(cursor).pages[address.page].as_mut()?;
        Some((cursor, page))
    }

    /// Removes a page if it is empty, and its shelf with the last page.
    fn tidy(&mut self, address: Address) {
        let Some((cursor, _)) = self.page_mut(address).filter(|(_, page)| page.used == 0) else {
            return;
        };
        let Shelf { pages, used } = &mut **self.shelves.value_mut(cursor);
        pages[address.page] = None;
        *used -= 1;
        if *used == 0 {
            self.shelves.remove(cursor);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn numbers_are_found_wherever_their_page_stands() {
        let slot = |number: u64| {
            let index = u32::try_from(number).unwrap_or(u32::MAX);
            Slot::of(NonZeroU32::MIN.saturating_add(index))
        };
        let mut numbers = Numbers::default();
        // Rising, then far ahead, then far behind, on several shelves.
        let order: Vec<u64> = (0..2_000).chain(100_000..100_700).chain(50_000..50_300).collect();
        for number in &order {
            numbers.insert(*number, slot(*number));
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(
            numbers.slots().collect::<Vec<_>>(),
            sorted.iter().map(|n| slot(*n)).collect::<Vec<_>>()
        );
        for (index, number) in order.iter().enumerate() {
            assert_eq!(numbers.find(*number), Some(slot(*number)));
            if index % 3 > 0 {
                numbers.remove(*number);
                assert_eq!(numbers.find(*number), None);
                assert_eq!(numbers.find(*number + (1 << 40)), None);
            }
        }
        for number in order.iter().step_by(3) {
            numbers.remove(*number);
        }
        assert_eq!(numbers.slots().count(), 0);
        assert_eq!(numbers.shelves.len(), 1, "only the newest page stays");
    }
}
