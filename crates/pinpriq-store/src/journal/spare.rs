//! The files kept for the next segments, and for the next start.
//!
//! Segments that are put away become spares, three at most, so that under steady work old files are
//! reused. New ones are made only while there are fewer than the journal asks for: none for a small
//! installation, two under load. The second is the reserve of a full disk: when it cannot be made,
//! the disk is nearly full, and what is left is for the changes that make room. It is tried again
//! at most once a second, or as soon as a segment was put away. Meanwhile one smaller spare may use
//! the available room. One small file is kept for the next start alone: a running server makes no
//! segment from it.

use std::collections::VecDeque;

use pinpriq_proto::time::{Span, Timestamp};

use super::chores::{Chore, Filled};
use super::segment::SEGMENT_START;
use crate::store::{Shortage, StoreError};

/// The most spares that are kept.
pub(crate) const SPARES_MAX: usize = 3;

/// How long to wait after a spare could not be prepared.
const RETRY: Span = Span::from_ms(1_000);

/// The sizes of files, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// Of a segment.
    pub(crate) usual: u64,
    /// Of the smallest spare that is made where there is no room for the usual size.
    pub(crate) least: u64,
    /// Of the file for the next start, and of the smallest segment that a start makes.
    pub(crate) start: u64,
}

impl Sizes {
    pub(crate) fn of(usual: u64) -> Self {
        Self {
            usual,
            least: (usual / 16).max(2 * SEGMENT_START),
            start: ((usual / 512) & !4095).max(SEGMENT_START + 4096),
        }
    }
}

/// A file for a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spare {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
}

/// The files that a start has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Of the usual size.
    pub(crate) whole: VecDeque<u32>,
    /// Incomplete ones.
    pub(crate) partial: Vec<u32>,
    /// Kept for a start.
    pub(crate) for_start: Option<u32>,
    /// The highest number in use.
    pub(crate) highest: u32,
    /// Whether there was no room for the usual size.
    pub(crate) is_full: bool,
    /// The numbers of the segments that are not needed and stay nevertheless, oldest first.
    pub(crate) kept: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Spares {
    sizes: Sizes,
    ready: VecDeque<Spare>,
    /// Files to fill up to their size. The first one is next.
    partial: VecDeque<Spare>,
    /// The file that a step of filling is under way for.
    filling: Option<u32>,
    /// The file of the usual size whose room is reserved but not filled yet.
    reserved: Option<u32>,
    /// The file for the next start, and whether it is whole.
    for_start: Option<(u32, bool)>,
    next_number: u32,
    retry_at: Timestamp,
    retry_for_start_at: Timestamp,
    /// Whether to look for room for a smaller file, because there is not enough for the usual size.
    wants_rest: bool,
    /// Whether the last try to make one of the usual size failed.
    refused: bool,
    /// Why it failed.
    shortage: Shortage,
}

impl Spares {
    pub(crate) fn new(sizes: Sizes, found: &Found) -> Self {
        let of_usual_size = |&number| Spare { number, bytes: sizes.usual };
        Self {
            sizes,
            ready: found.whole.iter().map(of_usual_size).collect(),
            partial: found.partial.iter().map(of_usual_size).collect(),
            filling: None,
            reserved: None,
            for_start: found.for_start.map(|number| (number, true)),
            next_number: found.highest.wrapping_add(1).max(1),
            retry_at: Timestamp::ZERO,
            retry_for_start_at: Timestamp::ZERO,
            wants_rest: false,
            refused: found.is_full,
            shortage: Shortage::Space,
        }
    }

    /// Why the last try to make one failed, if it did.
    pub(crate) const fn shortage(&self) -> Shortage {
        self.shortage
    }

    /// Whether the last try to make one failed. Usually the disk is nearly full.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// The bytes of batches that fit into the spares that can be used now.
    pub(crate) fn room(&self) -> u64 {
        self.ready.iter().map(|spare| spare.bytes - SEGMENT_START).sum()
    }

    /// Takes the largest one, for a segment of at least this size.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<Spare> {
        let largest = (0..self.ready.len()).rev().max_by_key(|at| self.ready[*at].bytes)?;
        let fits = self.ready[largest].bytes >= bytes;
        fits.then(|| self.ready.remove(largest)).flatten()
    }

    /// Returns a name for a segment that is put away, if it is to be kept.
    pub(crate) fn adopt(&mut self) -> Option<u32> {
        let kept = self.ready.len() + self.partial.len();
        (kept < SPARES_MAX).then(|| self.draw_number())
    }

    fn draw_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1).max(1);
        number
    }

    /// Notes the result of putting a segment away.
    pub(crate) fn put_away(&mut self, adopted: Option<u32>, succeeded: bool) {
        if let (Some(number), true) = (adopted, succeeded) {
            self.partial.push_back(Spare { number, bytes: self.sizes.usual });
        }
        (self.retry_at, self.wants_rest) = (Timestamp::ZERO, false);
    }

    /// The next step of preparing, if one is due. `wanted` is the number of spares there should be.
    pub(crate) fn next_chore(&mut self, wanted: usize, now: Timestamp) -> Option<Chore> {
        if !self.has_chore(wanted, now) {
            return None;
        }
        let for_start = self.next_for_start(wanted, now);
        if for_start.is_some() {
            return for_start;
        }
        if self.partial.is_empty() {
            let number = self.draw_number();
            if self.wants_rest {
                return Some(Chore::Reserve { spare: number, sizes: self.sizes });
            }
            self.partial.push_back(Spare { number, bytes: self.sizes.usual });
        }
        let next = self.partial.front()?;
        self.filling = Some(next.number);
        Some(Chore::Fill { spare: next.number, bytes: next.bytes })
    }

    /// The making of the file for the next start, if that is due.
    pub(crate) fn next_for_start(&mut self, wanted: usize, now: Timestamp) -> Option<Chore> {
        self.for_start_at(wanted).filter(|at| *at <= now)?;
        let spare = self.draw_number();
        self.for_start = Some((spare, false));
        Some(Chore::Fill { spare, bytes: self.sizes.start })
    }

    /// The number of spares whose room is certain, filled or not.
    pub(crate) fn certain(&self) -> usize {
        self.ready.len() + usize::from(self.reserved.is_some())
    }

    /// The bytes of batches that fit into the one that is reserved and not filled yet.
    pub(crate) fn room_reserved(&self) -> u64 {
        self.reserved.map_or(0, |_| self.sizes.usual - SEGMENT_START)
    }

    /// Whether none can be used now, but one can once the current step has ended.
    pub(crate) fn is_about_to_have_one(&self) -> bool {
        self.ready.is_empty() && self.filling.is_some()
    }

    /// Takes the one that is reserved and not filled yet, for a segment of the usual size. No step
    /// of filling may be under way.
    pub(crate) fn take_reserved(&mut self) -> Option<Spare> {
        let number = self.reserved.take_if(|_| self.filling.is_none())?;
        let at = self.partial.iter().position(|spare| spare.number == number)?;
        self.partial.remove(at)
    }

    /// Whether a file is there that only has to be filled.
    pub(crate) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether a step of preparing is due.
    pub(crate) fn has_chore(&self, wanted: usize, now: Timestamp) -> bool {
        !self.partial.is_empty() || self.retry_at(wanted).is_some_and(|at| at <= now)
    }

    /// When to make a new file, if one is wanted.
    pub(crate) fn retry_at(&self, wanted: usize) -> Option<Timestamp> {
        let all = self.ready.len() + self.partial.len();
        let is_short = if self.refused {
            self.of_usual_size() < wanted && all < SPARES_MAX
        } else {
            all < wanted
        };
        let spare_at = is_short.then_some(self.retry_at);
        match (spare_at, self.for_start_at(wanted)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// When to make the file for the next start: once there is something to start with.
    fn for_start_at(&self, wanted: usize) -> Option<Timestamp> {
        let is_missing = self.for_start.is_none() && (wanted > 0 || self.refused);
        is_missing.then_some(self.retry_for_start_at)
    }

    fn of_usual_size(&self) -> usize {
        let all = self.ready.iter().chain(&self.partial);
        all.filter(|spare| spare.bytes == self.sizes.usual).count()
    }

    /// Notes how many bytes were reserved for a smaller one, if any.
    pub(crate) fn reserved(
        &mut self,
        number: u32,
        outcome: Result<u64, StoreError>,
        now: Timestamp,
    ) {
        (self.retry_at, self.wants_rest) = (now.after(RETRY), false);
        match outcome {
            Ok(0) => {}
            Ok(bytes) => self.partial.push_back(Spare { number, bytes }),
            Err(error) => tracing::debug!(%error, "no smaller segment can be prepared either"),
        }
    }

    /// Notes that a step of preparing has failed while there is room to be gained. Nothing counts
    /// as refused, and the step is done again soon.
    pub(crate) fn interrupted(&mut self, number: u32) {
        (self.filling, self.reserved) = (None, None);
        if self.for_start == Some((number, false)) {
            self.for_start = None;
        }
        self.partial.retain(|spare| spare.number != number);
        (self.retry_at, self.wants_rest) = (Timestamp::ZERO, false);
    }

    /// Notes the result of a step of preparing.
    pub(crate) fn filled(
        &mut self,
        number: u32,
        outcome: Result<Filled, StoreError>,
        wanted: usize,
        now: Timestamp,
    ) {
        self.filling = None;
        if matches!(outcome, Ok(Filled::Partly)) {
            let is_usual = |it: &&Spare| it.bytes == self.sizes.usual && it.number == number;
            self.reserved = self.partial.iter().find(is_usual).map(|spare| spare.number);
            return;
        }
        self.reserved = None;
        if self.for_start == Some((number, false)) {
            self.for_start = outcome.is_ok().then_some((number, true));
            self.retry_for_start_at = now.after(RETRY);
            return;
        }
        let at = self.partial.iter().position(|spare| spare.number == number);
        let Some(spare) = at.and_then(|at| self.partial.remove(at)) else { return };
        match outcome {
            Ok(_) => {
                self.ready.push_back(spare);
                if self.refused && self.of_usual_size() >= wanted {
                    tracing::info!("there is room for the next segment again");
                    self.refused = false;
                    // Another one may be wanted soon, and who appends would wait for it.
                    (self.retry_at, self.wants_rest) = (Timestamp::ZERO, false);
                }
            }
            Err(error) => {
                if !self.refused {
                    tracing::warn!(%error, "the next segment cannot be prepared");
                }
                self.refused = true;
                self.shortage = match error {
                    StoreError::Full { .. } => Shortage::Space,
                    _ => Shortage::File,
                };
                // If a smaller one cannot be filled either, it is not tried again at once.
                let is_usual = |it: &Spare| it.bytes == self.sizes.usual;
                self.wants_rest = is_usual(&spare) && self.ready.iter().all(is_usual);
                self.retry_at = if self.wants_rest { now } else { now.after(RETRY) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { usual: 1 << 20, least: 1 << 16, start: 1 << 14 };

    /// Carries out the next step of preparing, which must be to fill a file.
    fn fill(spares: &mut Spares, wanted: usize, now: Timestamp, has_room: bool) {
        let Some(Chore::Fill { spare, .. }) = spares.next_chore(wanted, now) else {
            panic!("no file is filled: {spares:?}")
        };
        let outcome = if has_room { Ok(Filled::Whole) } else { Err(StoreError::Unfinished) };
        spares.filled(spare, outcome, wanted, now);
    }

    #[test]
    fn once_there_is_room_again_the_next_file_is_made_at_once() {
        let found = Found { for_start: Some(1), highest: 1, ..Found::default() };
        let (mut spares, now) = (Spares::new(SIZES, &found), Timestamp::from_ms(5_000));
        for _ in 0..2 {
            let adopted = spares.adopt();
            spares.put_away(adopted, true);
        }
        fill(&mut spares, 1, now, false);
        assert!(spares.is_refused(), "{spares:?}");
        fill(&mut spares, 1, now, true);
        assert!(!spares.is_refused(), "{spares:?}");
        fill(&mut spares, 2, now, true);
        assert_eq!(spares.certain(), 2, "{spares:?}");
    }
}
