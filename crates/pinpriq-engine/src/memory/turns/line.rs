//! The order in which shares have their turns.
//!
//! Most turns are taken at the front, and most new ones come at the end of their number. So they
//! are in pages, which are full where turns come in order, and both ends of a page are cheap.

use std::collections::VecDeque;

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
#[derive(Debug, Default)]
pub(super) struct Line {
    /// For each page, a turn that nothing in the page precedes.
    bounds: VecDeque<Turn>,
    /// No page but a single one is empty.
    pages: VecDeque<VecDeque<Turn>>,
}

impl Line {
    pub(super) fn first(&self) -> Option<&Turn> {
        self.pages.front().and_then(VecDeque::front)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.pages.iter().flatten()
    }

    pub(super) fn insert(&mut self, turn: Turn) {
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
            self.bounds.insert(page + 1, turn);
            self.pages.insert(page + 1, VecDeque::from([turn]));
        } else {
            let upper = turns.split_off(PAGE_TURNS / 2);
            self.bounds.insert(page + 1, upper[0]);
            self.pages.insert(page + 1, upper);
            self.insert(turn);
        }
    }

    pub(super) fn remove(&mut self, turn: Turn) {
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
            self.pages.remove(page);
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
    fn page_of(&self, turn: Turn) -> usize {
        position_after(&self.bounds, turn).saturating_sub(1)
    }
}

/// The number of turns before this one.
fn position(turns: &VecDeque<Turn>, turn: Turn) -> usize {
    match (turns.front(), turns.back()) {
        (Some(first), _) if turn <= *first => 0,
        (_, Some(last)) if turn > *last => turns.len(),
        _ => turns.partition_point(|other| *other < turn),
    }
}

/// The number of turns up to this one.
fn position_after(turns: &VecDeque<Turn>, turn: Turn) -> usize {
    match (turns.front(), turns.back()) {
        (Some(first), _) if turn < *first => 0,
        (_, Some(last)) if turn >= *last => turns.len(),
        _ => turns.partition_point(|other| *other <= turn),
    }
}
