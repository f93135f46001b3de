//! Decides which old segment to empty next, and tracks the progress.
//!
//! The oldest segment is listed piece by piece, and the engine writes again what still counts. When
//! nothing in it counts, the accounts let it go. A segment that cannot be read is left
//! alone: its tasks are in memory, and it can go once they are gone.

use super::accounts::Accounts;
use super::chores::{Chore, Cursor, Listed};
use crate::store::{Rewrite, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Compaction {
    stage: Stage,
    ready: Vec<Rewrite>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// This segment has to be listed from here.
    ToList(u32, Cursor),
    /// A job is listing it.
    Listing(u32),
    /// All of it was listed, or it cannot be: wait until it holds nothing.
    Waiting(u32),
}

impl Compaction {
    /// Updates the stage from the accounts. `wanted` says whether the oldest segment should go.
    /// Returns whether emptying it begins now.
    pub(crate) fn review(
        &mut self,
        accounts: &Accounts,
        written_segment: u32,
        wanted: bool,
    ) -> bool {
        let oldest = accounts.oldest_number();
        if self.is_over(oldest) {
            self.ready.clear();
            self.stage = Stage::Idle;
        }
        let is_due = self.is_due(accounts, written_segment, wanted);
        if is_due {
            self.stage = Stage::ToList(oldest, Cursor::START);
        }
        is_due
    }

    /// Whether to begin with the next segment. Data that was not handed to the disk yet cannot be
    /// listed from there.
    pub(crate) fn is_due(&self, accounts: &Accounts, written_segment: u32, wanted: bool) -> bool {
        let oldest = accounts.oldest_number();
        let free = self.stage == Stage::Idle || self.is_over(oldest);
        free && wanted && oldest < written_segment
    }

    /// Whether the current segment holds nothing that counts now. A job that lists it is
    /// waited for nevertheless.
    fn is_over(&self, oldest: u32) -> bool {
        match self.stage {
            Stage::ToList(at, _) | Stage::Waiting(at) => at < oldest,
            Stage::Idle | Stage::Listing(_) => false,
        }
    }

    /// The next piece to list, if it is time for it.
    pub(crate) fn next_chore(&mut self, accounts: &Accounts, most: u64) -> Option<Chore> {
        let Stage::ToList(segment, from) = self.stage else { return None };
        let oldest = accounts.oldest().filter(|oldest| oldest.header.number == segment)?;
        if !self.ready.is_empty() {
            return None;
        }
        self.stage = Stage::Listing(segment);
        Some(Chore::List { segment: oldest.header, end: oldest.end, from, most })
    }

    /// Whether there is something to list.
    pub(crate) fn has_chore(&self) -> bool {
        matches!(self.stage, Stage::ToList(..)) && self.ready.is_empty()
    }

    pub(crate) fn listed(&mut self, segment: u32, outcome: Result<Listed, StoreError>) {
        match outcome {
            Ok(listed) => {
                self.ready = listed.records;
                self.stage = match listed.next {
                    Some(next) => Stage::ToList(segment, next),
                    None => Stage::Waiting(segment),
                };
            }
            Err(error) => {
                tracing::error!(
                    segment, %error,
                    "an old segment cannot be read; it stays until all tasks in it are gone"
                );
                self.stage = Stage::Waiting(segment);
            }
        }
    }

    /// Whether more of a segment is to be listed.
    pub(crate) const fn is_listing(&self) -> bool {
        matches!(self.stage, Stage::ToList(..) | Stage::Listing(_))
    }

    /// The bytes of the records that are ready to be written again.
    pub(crate) fn ready_bytes(&self) -> u64 {
        self.ready.iter().map(|ready| u64::from(ready.place.length.get())).sum()
    }

    /// Whether this segment is being written again.
    pub(crate) fn is_in_hand(&self, segment: u32) -> bool {
        match self.stage {
            Stage::ToList(at, _) | Stage::Listing(at) | Stage::Waiting(at) => at == segment,
            Stage::Idle => false,
        }
    }

    pub(crate) fn take_ready(&mut self) -> Vec<Rewrite> {
        std::mem::take(&mut self.ready)
    }
}
