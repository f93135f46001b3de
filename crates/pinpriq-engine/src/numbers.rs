//! Where the task of each number is.
//!
//! Numbers come from a counter, so that those in use lie close together: a page holds the slots of
//! a run of numbers, and the pages that are not empty stand in a tree. A number in a full page
//! costs four bytes and a bit, and one that is alone in its page about three hundred.

use std::collections::BTreeMap;

use crate::tasks::Slot;

/// How many numbers a page spans.
const PAGE_NUMBERS: usize = 64;

/// How many pages stand apart from the tree: those that were made last, in which most of what
/// happens in a queue that is short happens.
const RECENT_PAGES: usize = 8;

/// Slots by number. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// All but the recent pages.
    pages: BTreeMap<u64, Box<Page>>,
    /// Each at its number modulo [`RECENT_PAGES`], so that a newer page takes the place of an older
    /// one. They may be empty, and then stand for nothing.
    recent: [Option<(u64, Box<Page>)>; RECENT_PAGES],
}

#[derive(Debug)]
struct Page {
    slots: [Option<Slot>; PAGE_NUMBERS],
    used: u8,
}

impl Page {
    const EMPTY: Self = Self { slots: [None; PAGE_NUMBERS], used: 0 };
}

impl Numbers {
    /// Adds a number that must be new.
    pub(crate) fn insert(&mut self, number: u64, slot: Slot) {
        let (key, index) = address(number);
        let page = self.page_to_fill(key);
        let known = page.slots[index].replace(slot);
        assert!(known.is_none(), "task {number} was inserted twice");
        page.used += 1;
    }

    /// Forgets a number that must be known.
    pub(crate) fn remove(&mut self, number: u64) {
        let (key, index) = address(number);
        if let Some((_, page)) = self.recent[place(key)].as_mut().filter(|(known, _)| *known == key)
        {
            page.forget(number, index);
            return;
        }
        let Some(page) = self.pages.get_mut(&key) else {
            unreachable!("task {number} is not known")
        };
        page.forget(number, index);
        if page.used == 0 {
            self.pages.remove(&key);
        }
    }

    /// The slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        let (key, index) = address(number);
        match &self.recent[place(key)] {
            Some((known, page)) if *known == key => page.slots[index],
            _ => self.pages.get(&key)?.slots[index],
        }
    }

    /// All slots in the order of their numbers. Costs O(n log n): for start and checks only.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let recent = self.recent.iter().flatten().map(|(key, page)| (*key, page));
        let mut pages: Vec<(u64, &Box<Page>)> =
            self.pages.iter().map(|(key, page)| (*key, page)).chain(recent).collect();
        pages.sort_unstable_by_key(|(key, _)| *key);
        pages.into_iter().flat_map(|(_, page)| page.slots.iter().flatten().copied())
    }

    /// The page of that key. A page that is newer than the recent one in its place takes it.
    fn page_to_fill(&mut self, key: u64) -> &mut Page {
        let recent = &mut self.recent[place(key)];
        let is_newer = recent.as_ref().is_none_or(|(known, _)| *known < key);
        if is_newer && !self.pages.contains_key(&key) {
            let former = recent.replace((key, Box::new(Page::EMPTY)));
            if let Some((former, page)) = former.filter(|(_, page)| page.used > 0) {
                self.pages.insert(former, page);
            }
        }
        match recent {
            Some((known, page)) if *known == key => page,
            _ => self.pages.entry(key).or_insert_with(|| Box::new(Page::EMPTY)),
        }
    }
}

impl Page {
    fn forget(&mut self, number: u64, index: usize) {
        let known = self.slots[index].take();
        assert!(known.is_some(), "task {number} is not known");
        self.used -= 1;
    }
}

/// Where a page stands among the recent ones.
const fn place(key: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is smaller than the count")]
    let place = (key % RECENT_PAGES as u64) as usize;
    place
}

/// The page of a number, and its place there.
const fn address(number: u64) -> (u64, usize) {
    let span = PAGE_NUMBERS as u64;
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is smaller than the span")]
    let index = (number % span) as usize;
    (number / span, index)
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
        // Rising, then far behind, then far ahead, so that pages move between both places.
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
            }
        }
        for number in order.iter().step_by(3) {
            numbers.remove(*number);
        }
        assert_eq!(numbers.slots().count(), 0);
    }
}
