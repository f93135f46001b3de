//! What goes in which order: the turns of shares, and the tasks of ageing queues.
//!
//! Most are taken at the front, and most new ones come at the end of their number. So they are in
//! pages, which are full where they come in order, and both ends of a page are cheap.

use std::collections::VecDeque;
use std::fmt;

use super::named::Id;
use super::wide::Wide;

/// The turn of a share. Those that come first are less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Turn {
    /// The number of its best tasks.
    pub(super) number: i64,
    /// When it comes, in what the shares have had. Zero where their order is strict.
    pub(super) at: Wide,
    /// Which of those at the same moment comes first.
    pub(super) tie: u64,
    pub(super) share: Id,
}

/// The most turns in a page.
const PAGE_TURNS: usize = 128;

/// Turns in order. Every operation costs O(log n), plus a move of a part of a page.
#[derive(Debug)]
pub(super) struct Line<T = Turn> {
    /// For each page, a turn that nothing in the page precedes.
    bounds: VecDeque<T>,
    /// No page but a single one is empty.
    pages: VecDeque<VecDeque<T>>,
    /// A page that was emptied, for the next one that is needed. Where turns come in order, that
    /// is as often as one is emptied.
    spare: Option<VecDeque<T>>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { bounds: VecDeque::new(), pages: VecDeque::new(), spare: None }
    }
}

impl<T: Copy + Ord + fmt::Debug> Line<T> {
    pub(super) fn first(&self) -> Option<&T> {
        self.pages.front().and_then(VecDeque::front)
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.pages.back().and_then(VecDeque::back)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The first one after this place.
    pub(super) fn above(&self, place: T) -> Option<&T> {
        let page = self.page_of(place);
        let turns = self.pages.get(page)?;
        let found = turns.get(position_after(turns, place));
        found.or_else(|| self.pages.get(page + 1)?.front())
    }

    /// The last one before this place.
    pub(super) fn below(&self, place: T) -> Option<&T> {
        let page = self.page_of(place);
        let turns = self.pages.get(page)?;
        match position(turns, place).checked_sub(1) {
            Some(at) => turns.get(at),
            None => self.pages.get(page.checked_sub(1)?)?.back(),
        }
    }

    /// Frees a page, of a line that is used no longer.
    pub(super) fn free_some(&mut self) {
        self.pages.pop_back();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten()
    }

    /// Puts a turn in the place that is due to it, instead of its former one.
    pub(super) fn replace(&mut self, former: Option<T>, turn: Option<T>) {
        // In this order, the last page of the line stays.
        if let Some(turn) = turn {
            self.put(turn);
        }
        if let Some(former) = former {
            self.take(former);
        }
    }

    /// Inserts a turn that probably comes last.
    #[inline]
    fn put(&mut self, turn: T) {
        match self.pages.back_mut() {
            Some(page)
                if page.len() < PAGE_TURNS && page.back().is_some_and(|last| *last < turn) =>
            {
                page.push_back(turn);
            }
            _ => self.insert(turn),
        }
    }

    /// Removes a turn that is probably the first one.
    #[inline]
    fn take(&mut self, turn: T) {
        match self.pages.front_mut() {
            Some(page) if page.len() > 1 && page.front() == Some(&turn) => {
                page.pop_front();
            }
            _ => self.remove(turn),
        }
    }

    pub(super) fn insert(&mut self, turn: T) {
        if self.pages.is_empty() {
            self.bounds.push_back(turn);
            self.pages.push_back(VecDeque::new());
        }
        let page = self.page_of(turn);
        let turns = &mut self.pages[page];
        let at = position(turns, turn);
        if turns.len() < PAGE_TURNS {
            turns.insert(at, turn);
            self.bounds[page] = self.bounds[page].min(turn);
        } else if at == PAGE_TURNS {
            let mut turns = self.spare.take().unwrap_or_default();
            turns.push_back(turn);
            self.bounds.insert(page + 1, turn);
            self.pages.insert(page + 1, turns);
        } else {
            let upper = turns.split_off(PAGE_TURNS / 2);
            self.bounds.insert(page + 1, upper[0]);
            self.pages.insert(page + 1, upper);
            self.insert(turn);
        }
    }

    pub(super) fn remove(&mut self, turn: T) {
        let page = self.page_of(turn);
        let turns = &mut self.pages[page];
        let at = position(turns, turn);
        let removed = turns.remove(at);
        assert_eq!(removed, Some(turn), "a turn stands in its place");
        let left = turns.len();
        if self.pages.len() == 1 {
            return;
        }
        if left == 0 {
            self.spare = self.pages.remove(page);
            self.bounds.remove(page);
        } else if left < PAGE_TURNS / 4 && page > 0 {
            let before = self.pages[page - 1].len();
            if before + left <= PAGE_TURNS / 2 {
                let turns = self.pages.remove(page);
                self.bounds.remove(page);
                self.pages[page - 1].extend(turns.into_iter().flatten());
            }
        }
    }

    /// The position of the page in which a turn is, if it is in the line.
    fn page_of(&self, turn: T) -> usize {
        position_after(&self.bounds, turn).saturating_sub(1)
    }
}

/// The number of turns before this one.
fn position<T: Copy + Ord>(turns: &VecDeque<T>, turn: T) -> usize {
    match (turns.front(), turns.back()) {
        (Some(first), _) if turn <= *first => 0,
        (_, Some(last)) if turn > *last => turns.len(),
        _ => turns.partition_point(|other| *other < turn),
    }
}

/// The number of turns up to this one.
fn position_after<T: Copy + Ord>(turns: &VecDeque<T>, turn: T) -> usize {
    match (turns.front(), turns.back()) {
        (Some(first), _) if turn < *first => 0,
        (_, Some(last)) if turn >= *last => turns.len(),
        _ => turns.partition_point(|other| *other <= turn),
    }
}
