//! The files that are kept for the next segments.
//!
//! Segments that are put away become spares, three at most, so that under steady work old files
//! serve again. New ones are only made while there are fewer than the journal asks for: none for a
//! small installation, two under load. The second is the reserve of a full disk: when it cannot be
//! made the disk is nearly full, and what is left is for the changes that make room. It is tried
//! again at most once a second, or as soon as a segment was put away.

use std::collections::VecDeque;

use pinpriq_engine::time::{Span, Timestamp};

use super::chores::{Chore, Filled};
use crate::store::StoreError;

/// How many spares are kept.
pub(crate) const SPARES_MAX: usize = 3;

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

    /// Whether the last try to make one failed, so that the disk is nearly full.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// How many can be used now.
    pub(crate) fn ready_count(&self) -> u64 {
        self.ready.len() as u64
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

    /// The next step of preparing, if one is due. `wanted` tells how many there should be.
    pub(crate) fn next_chore(
        &mut self,
        wanted: usize,
        bytes: u64,
        now: Timestamp,
    ) -> Option<Chore> {
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
    pub(crate) fn has_chore(&self, wanted: usize, now: Timestamp) -> bool {
        !self.partial.is_empty() || self.retry_at(wanted).is_some_and(|at| at <= now)
    }

    /// When to make a new file, if one is wanted.
    pub(crate) fn retry_at(&self, wanted: usize) -> Option<Timestamp> {
        (self.ready.len() + self.partial.len() < wanted).then_some(self.retry_at)
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
