//! The files that are kept for the next segments.
//!
//! Segments that are put away become spares, two at most, so that under steady work old files
//! serve again. A new one is only made when there is none, once the active segment is in real use:
//! a small installation never pays for it. When there is no space for it the disk is nearly full;
//! then it is tried again at most once a second, or as soon as a segment was put away.

use std::collections::VecDeque;

use pinpriq_engine::time::{Span, Timestamp};

use super::chores::{Chore, Filled};
use crate::store::StoreError;

/// How many spares are kept.
pub(crate) const SPARES_MAX: usize = 2;

/// How long to wait after a spare could not be prepared.
const RETRY: Span = Span::from_ms(1_000);

#[derive(Debug)]
pub(crate) struct Spares {
    ready: VecDeque<u32>,
    /// To be filled up to the usual size, the first one next.
    partial: VecDeque<u32>,
    next_number: u32,
    retry_at: Timestamp,
    /// The last try failed.
    refused: bool,
}

impl Spares {
    /// `left_over` are files to start with, `highest` the highest number in use.
    pub(crate) fn new(left_over: &[u32], highest: u32) -> Self {
        Self {
            ready: VecDeque::new(),
            partial: left_over.iter().copied().collect(),
            next_number: highest.wrapping_add(1).max(1),
            retry_at: Timestamp::ZERO,
            refused: false,
        }
    }

    /// Whether the next segment may find no room.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused && self.ready.is_empty()
    }

    /// The spares that can be used now.
    pub(crate) const fn ready_mut(&mut self) -> &mut VecDeque<u32> {
        &mut self.ready
    }

    /// A name for a segment that is put away, if it is to be kept.
    pub(crate) fn adopt(&mut self) -> Option<u32> {
        let kept = self.ready.len() + self.partial.len();
        (kept < SPARES_MAX).then(|| self.draw_number())
    }

    fn draw_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1).max(1);
        number
    }

    /// What became of a segment that was put away.
    pub(crate) fn put_away(&mut self, adopted: Option<u32>, succeeded: bool) {
        if let (Some(number), true) = (adopted, succeeded) {
            self.partial.push_back(number);
        }
        self.retry_at = Timestamp::ZERO;
    }

    /// The next step of preparing, if one is due. `wanted` tells whether a new file may be made.
    pub(crate) fn next_chore(&mut self, wanted: bool, bytes: u64, now: Timestamp) -> Option<Chore> {
        if !self.has_chore(wanted, now) {
            return None;
        }
        let spare = if let Some(&number) = self.partial.front() {
            number
        } else {
            let number = self.draw_number();
            self.partial.push_back(number);
            number
        };
        Some(Chore::Fill { spare, bytes })
    }

    /// Whether a step of preparing is due.
    pub(crate) fn has_chore(&self, wanted: bool, now: Timestamp) -> bool {
        !self.partial.is_empty() || self.retry_at(wanted).is_some_and(|at| at <= now)
    }

    /// When to make a new file, if one is wanted.
    pub(crate) fn retry_at(&self, wanted: bool) -> Option<Timestamp> {
        (wanted && self.ready.is_empty() && self.partial.is_empty()).then_some(self.retry_at)
    }

    /// What became of a step of preparing.
    pub(crate) fn filled(
        &mut self,
        spare: u32,
        outcome: Result<Filled, StoreError>,
        now: Timestamp,
    ) {
        if matches!(outcome, Ok(Filled::Partly)) {
            return;
        }
        self.partial.retain(|&number| number != spare);
        match outcome {
            Ok(_) => {
                if self.refused {
                    tracing::info!("there is room for the next segment again");
                }
                self.ready.push_back(spare);
                self.refused = false;
            }
            Err(error) => {
                if !self.refused {
                    tracing::warn!(%error, "the next segment cannot be prepared");
                }
                self.refused = true;
                self.retry_at = now.after(RETRY);
            }
        }
    }
}
