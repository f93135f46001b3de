//! The file that is prepared for the next segment.
//!
//! At most one is kept. It is prepared once the active segment is in real use, so that a small
//! installation never pays for it. When there is no space for it the disk is nearly full: then it
//! is tried again at most once a second, or as soon as a segment was put away.

use pinpriq_engine::time::{Span, Timestamp};

use super::chores::{Chore, Filled};
use crate::store::StoreError;

/// How long to wait after a spare could not be prepared.
const RETRY: Span = Span::from_ms(1_000);

#[derive(Debug)]
pub(crate) struct SpareFile {
    state: State,
    next_number: u32,
    retry_at: Timestamp,
    /// The last try failed.
    refused: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    Filling(u32),
    Ready(u32),
}

impl SpareFile {
    /// `left_over` is a file to start with, `highest` the highest number in use.
    pub(crate) fn new(left_over: Option<u32>, highest: u32) -> Self {
        Self {
            state: left_over.map_or(State::Absent, State::Filling),
            next_number: highest.wrapping_add(1).max(1),
            retry_at: Timestamp::ZERO,
            refused: false,
        }
    }

    /// Whether the next segment may find no room.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused && !matches!(self.state, State::Ready(_))
    }

    /// The prepared file, to be used now. It is given back by not being taken out of the option.
    pub(crate) fn lend<T>(&mut self, borrow: impl FnOnce(&mut Option<u32>) -> T) -> T {
        let mut ready = match self.state {
            State::Ready(number) => Some(number),
            State::Absent | State::Filling(_) => None,
        };
        let lent = ready.is_some();
        let result = borrow(&mut ready);
        if lent && ready.is_none() {
            self.state = State::Absent;
        }
        result
    }

    /// The name for a segment that is put away, if there is no spare.
    pub(crate) fn adopt(&mut self) -> Option<u32> {
        (self.state == State::Absent).then(|| self.draw_number())
    }

    fn draw_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1).max(1);
        number
    }

    /// What became of a segment that was put away.
    pub(crate) fn put_away(&mut self, adopted: Option<u32>, succeeded: bool) {
        if let (Some(number), true, State::Absent) = (adopted, succeeded, self.state) {
            self.state = State::Filling(number);
        }
        self.retry_at = Timestamp::ZERO;
    }

    /// The next step of preparing, if one is due.
    pub(crate) fn next_chore(&mut self, wanted: bool, bytes: u64, now: Timestamp) -> Option<Chore> {
        if !self.has_chore(wanted, now) {
            return None;
        }
        let spare = match self.state {
            State::Filling(number) => number,
            State::Absent | State::Ready(_) => self.draw_number(),
        };
        self.state = State::Filling(spare);
        Some(Chore::Fill { spare, bytes })
    }

    /// Whether a step of preparing is due.
    pub(crate) fn has_chore(&self, wanted: bool, now: Timestamp) -> bool {
        match self.state {
            State::Absent => wanted && now >= self.retry_at,
            State::Filling(_) => true,
            State::Ready(_) => false,
        }
    }

    /// When to try again, if that is what is waited for.
    pub(crate) fn retry_at(&self, wanted: bool) -> Option<Timestamp> {
        (self.state == State::Absent && wanted).then_some(self.retry_at)
    }

    pub(crate) fn filled(
        &mut self,
        spare: u32,
        outcome: Result<Filled, StoreError>,
        now: Timestamp,
    ) {
        match outcome {
            Ok(Filled::Partly) => {}
            Ok(Filled::Whole) => {
                if self.refused {
                    tracing::info!("there is room for the next segment again");
                }
                self.state = State::Ready(spare);
                self.refused = false;
            }
            Err(error) => {
                if !self.refused {
                    tracing::warn!(%error, "the next segment cannot be prepared");
                }
                self.state = State::Absent;
                self.refused = true;
                self.retry_at = now.after(RETRY);
            }
        }
    }
}
