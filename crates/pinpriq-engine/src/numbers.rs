//! Where the task of each number is.
//!
//! Numbers come from a counter, so that those in use lie close together: a page holds the slots of
//! a run of numbers, and the pages that are not empty stand in a tree. A number in a full page
//! costs five bytes, and one that is alone in its page about a hundred.

use std::collections::BTreeMap;

use crate::tasks::Slot;

/// How many numbers a page spans.
const PAGE_NUMBERS: usize = 16;

/// Slots by number. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pages: BTreeMap<u64, Box<Page>>,
}

#[derive(Debug, Default)]
struct Page {
    slots: [Option<Slot>; PAGE_NUMBERS],
}

impl Numbers {
    /// Adds a number that must be new.
    pub(crate) fn insert(&mut self, number: u64, slot: Slot) {
        let (page, index) = address(number);
        let known = self.pages.entry(page).or_default().slots[index].replace(slot);
        assert!(known.is_none(), "task {number} was inserted twice");
    }

    /// Forgets a number that must be known.
    pub(crate) fn remove(&mut self, number: u64) {
        let (key, index) = address(number);
        let Some(page) = self.pages.get_mut(&key) else {
            unreachable!("task {number} is not known")
        };
        let known = page.slots[index].take();
        assert!(known.is_some(), "task {number} is not known");
        if page.slots.iter().all(Option::is_none) {
            self.pages.remove(&key);
        }
    }

    /// The slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        let (page, index) = address(number);
        self.pages.get(&page)?.slots[index]
    }

    /// Whether no number is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// All slots in the order of their numbers.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.pages.values().flat_map(|page| page.slots.iter().flatten().copied())
    }
}

/// The page of a number, and its place there.
const fn address(number: u64) -> (u64, usize) {
    let span = PAGE_NUMBERS as u64;
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is smaller than the span")]
    let index = (number % span) as usize;
    (number / span, index)
}
