//! The list of queues: its order, its filter and the cursor.
//!
//! The cursor stays on its queue when the order changes.

use std::cmp::Ordering;

use super::{Model, Watched};
use crate::cmd::top::figures::plain;

/// What the list is in the order of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cmd::top) enum Sort {
    Name,
    Ready,
    Taken,
    Waiting,
    Buried,
    In,
    Out,
    Oldest,
}

impl Sort {
    /// All, in the order of the columns.
    pub(in crate::cmd::top) const ALL: [Self; 8] = [
        Self::Name,
        Self::Ready,
        Self::Taken,
        Self::Waiting,
        Self::Buried,
        Self::In,
        Self::Out,
        Self::Oldest,
    ];

    /// The name of its column.
    pub(in crate::cmd::top) const fn column(self) -> &'static str {
        match self {
            Self::Name => "queue",
            Self::Ready => "ready",
            Self::Taken => "taken",
            Self::Waiting => "waiting",
            Self::Buried => "buried",
            Self::In => "in/s",
            Self::Out => "out/s",
            Self::Oldest => "oldest",
        }
    }

    /// The one after this.
    pub(super) fn next(self) -> Self {
        let place = Self::ALL.iter().position(|sort| *sort == self).unwrap_or_default();
        Self::ALL.get(place + 1).copied().unwrap_or(Self::Name)
    }

    /// What is compared; none by name, and where nothing is known.
    fn of(self, watched: &Watched) -> Option<i64> {
        let figures = watched.figures.as_ref()?;
        let count = |place: usize| figures.counts.get(place).copied();
        match self {
            Self::Name => None,
            Self::Ready => count(0),
            Self::Taken => count(1),
            Self::Waiting => count(2),
            Self::Buried => count(3),
            Self::In => watched.history.rates().map(|(rate, _)| rate.0),
            Self::Out => watched.history.rates().map(|(_, rate)| rate.0),
            Self::Oldest => {
                figures.oldest_awaited_ms().and_then(|oldest| i64::try_from(oldest).ok())
            }
        }
    }
}

impl Model {
    /// Makes the list anew, after anything that it depends on.
    pub(super) fn list(&mut self) {
        let filter = self.filter.to_lowercase();
        let is_meant =
            |name: &[u8]| filter.is_empty() || plain(name).to_lowercase().contains(&filter);
        let mut rows: Vec<(Option<i64>, &Vec<u8>)> = self
            .queues
            .iter()
            .filter(|(name, _)| is_meant(name))
            .map(|(name, watched)| (self.sort.of(watched), name))
            .collect();
        let (reversed, by_name) = (self.reversed, self.sort == Sort::Name);
        rows.sort_by(|(one, one_name), (other, other_name)| {
            let order = match (one, other) {
                // Numbers begin with the highest.
                (Some(one), Some(other)) => other.cmp(one),
                // What is not known comes last in both directions.
                (Some(_), None) => return Ordering::Less,
                (None, Some(_)) => return Ordering::Greater,
                (None, None) if by_name => one_name.cmp(other_name),
                (None, None) => Ordering::Equal,
            };
            let order = if reversed { order.reverse() } else { order };
            // Equal ones stay where they are.
            order.then_with(|| one_name.cmp(other_name))
        });
        let rows: Vec<Vec<u8>> = rows.into_iter().map(|(_, name)| name.clone()).collect();
        // Where the selected queue was, if it is gone.
        let place = self.place_of_cursor();
        self.rows = rows;
        let is_there = self.selected.as_ref().is_some_and(|name| self.rows.contains(name));
        if !is_there {
            let last = self.rows.len().saturating_sub(1);
            self.selected = self.rows.get(place.unwrap_or_default().min(last)).cloned();
        }
        self.keep_in_sight();
    }

    /// The row of the cursor.
    pub(in crate::cmd::top) fn place_of_cursor(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.rows.iter().position(|name| name == selected)
    }

    /// Puts the cursor on this row, or the nearest that there is.
    pub(super) fn select(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(row).cloned();
        self.keep_in_sight();
    }

    /// Scrolls so far that the cursor is seen.
    pub(super) fn keep_in_sight(&mut self) {
        let lines = usize::from(self.body_lines());
        let cursor = self.place_of_cursor().unwrap_or_default();
        let lowest = (cursor + 1).saturating_sub(lines);
        let highest = cursor.min(self.rows.len().saturating_sub(lines));
        self.first = self.first.clamp(lowest, highest.max(lowest));
    }
}
