//! What each share has of each number: its tasks that may go, and what it has had.

use std::num::NonZeroU32;

use super::Roster;
use super::numbered::HasNumber;
use super::row::Row;
use super::wide::Wide;
use crate::memory::slots::Slot;

/// What a take of a task of cost 1 and of a share of weight 1 counts.
const UNIT: u64 = 1 << 20;

/// A share at one number, while it has tasks there that may go.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) number: i64,
    pub(super) account: Account,
    /// What the first of its tasks cost. Most have the same.
    cost: NonZeroU32,
    /// How many of its tasks may cost something else: those in its row that do, and all
    /// latent ones.
    unsure: u32,
    /// Its tasks that may go, but for latent ones.
    pub(super) row: Row,
}

/// What a share has had at one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// Where it begins to pay for its next turn.
    start: Wide,
    /// How many takes of the queue there had been with its last one. 0 if it has not been served
    /// since it got its turn.
    pub(super) served: u64,
    /// The weight by which it pays for its next turn.
    pub(super) weight: u16,
    /// The weight by which it has paid for its last one.
    paid: u16,
}

impl HasNumber for Pair {
    #[inline]
    fn number(&self) -> i64 {
        self.number
    }
}

impl Pair {
    /// A pair that comes into being with a task of this cost.
    pub(super) fn new(number: i64, account: Account, cost: NonZeroU32, row: Row) -> Self {
        Self { number, account, cost, unsure: 0, row }
    }

    /// Whether none of its tasks is left.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // Those outside of its row are unsure, and nothing else is if that is empty.
        self.unsure == 0 && self.row.is_empty()
    }

    /// Adds a task to its row. Returns whether it is the first there.
    #[inline]
    pub(super) fn insert(
        &mut self,
        slot: Slot,
        task: (u64, NonZeroU32),
        roster: &impl Roster,
    ) -> bool {
        let (seq, cost) = task;
        self.unsure += u32::from(cost != self.cost);
        if let Row::Aged(line) = &mut self.row {
            line.insert(roster.entrant(slot).aged(slot));
            return self.row.first() == Some(slot);
        }
        self.row.insert(seq, slot, |slot| roster.seq(slot))
    }

    /// Removes a task from its row. Returns whether it was the first there.
    #[inline]
    pub(super) fn remove(
        &mut self,
        slot: Slot,
        task: (u64, NonZeroU32),
        roster: &impl Roster,
    ) -> bool {
        let (seq, cost) = task;
        self.unsure -= u32::from(cost != self.cost);
        if let Row::Aged(line) = &mut self.row {
            let was_first = line.first().is_some_and(|task| task.slot == slot);
            line.remove(roster.entrant(slot).aged(slot));
            return was_first;
        }
        self.row.remove(seq, slot)
    }

    /// Removes the first task from its row, which costs so much.
    #[inline]
    pub(super) fn remove_first(&mut self, slot: Slot, cost: NonZeroU32) {
        self.unsure -= u32::from(cost != self.cost);
        self.row.remove_first(slot);
    }

    /// Counts a latent task.
    #[inline]
    pub(super) const fn count_latent(&mut self) {
        self.unsure += 1;
    }

    /// Counts a latent task no longer.
    #[inline]
    pub(super) const fn discount_latent(&mut self) {
        self.unsure -= 1;
    }

    /// Counts a latent task no longer, of tasks that are all latent, unless it is the last one.
    /// Returns whether it has.
    #[inline]
    pub(super) const fn discount_all_but_last(&mut self) -> bool {
        let are_others = self.unsure > 1;
        if are_others {
            self.unsure -= 1;
        }
        are_others
    }

    /// Whether its tasks are counted right if so many are latent. For checks only.
    pub(super) fn counts(&self, latent: usize, roster: &impl Roster) -> bool {
        let others = self.row.iter().filter(|slot| roster.entrant(*slot).cost != self.cost);
        self.unsure as usize == others.count() + latent
    }

    /// The first task in its row, and what it costs.
    pub(super) fn first(&self, roster: &impl Roster) -> Option<(Slot, NonZeroU32)> {
        let slot = self.row.first()?;
        let cost = if self.unsure == 0 { self.cost } else { roster.entrant(slot).cost };
        Some((slot, cost))
    }
}

impl Account {
    /// The account of a share that gets its turn.
    pub(super) const fn new(start: Wide, weight: u16) -> Self {
        Self { start, served: 0, weight, paid: weight }
    }

    /// Where it begins to pay for its next turn.
    pub(super) const fn start(&self) -> Wide {
        self.start
    }

    /// When the turn of a task of this cost comes.
    #[inline]
    pub(super) fn turn(&self, cost: NonZeroU32) -> Wide {
        self.start.plus(price(cost, self.weight))
    }

    /// Begins anew at `start`, after the take with this number. The weight counts from now on.
    #[inline]
    pub(super) fn pay(&mut self, start: Wide, served: u64, weight: u16) {
        *self = Self { start, served, weight, paid: self.weight };
    }

    /// Takes the charge for a task of this cost back.
    pub(super) fn give_back(&mut self, cost: NonZeroU32) {
        self.start = self.start.minus(price(cost, self.paid));
    }
}

/// What a task of this cost counts for a share of this weight.
#[inline]
pub(super) fn price(cost: NonZeroU32, weight: u16) -> u64 {
    // At most 2^52.
    u64::from(cost.get()) * UNIT / u64::from(weight.max(1))
}
