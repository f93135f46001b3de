//! The tasks of one share that have their place in the main order alone.
//!
//! While one share has all tasks, the main order of the queue is its order too, so its tasks are
//! only counted. If another one comes, they get places in the rows of their pairs, some in each
//! step, in the main order. So every task up to a place there is in a row, and beyond it those of
//! one share are *latent*. When that share is alone again, they leave their rows in the same way.
//!
//! In each step at most one task enters and one leaves, and [`PASSED`] are passed. Whatever has
//! entered and left, one of the share that was passed is still there, or all were passed. So the
//! first task of the share is in a row whenever there are others.

use std::num::NonZeroU32;

use super::aged::Aged;
use super::named::Id;
use super::pairs::Pair;
use super::shares::place_of;
use super::{Roster, Turns};
use crate::memory::ranked::Rank;
use crate::memory::slots::Slot;
use pinpriq_proto::command::Selection;
use pinpriq_proto::task::{Bytes, StateKind};

/// Whose tasks are latent, and beyond which place in the main order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latent {
    pub(super) share: Id,
    pub(super) beyond: Rank,
}

/// How many tasks are passed in a step.
const PASSED: usize = 3;

/// Before all places of the main order, and after them.
pub(super) const FIRST: Rank = (i64::MIN, 0);
const LAST: Rank = (i64::MAX, u64::MAX);

impl Turns {
    /// The share that has all tasks, if turns need not decide between shares for that reason.
    #[inline]
    pub(super) fn alone(&self) -> Option<Id> {
        let latent = self.latent.filter(|_| self.present == 1)?;
        Some(latent.share)
    }

    /// Notes whether turns are calm, when that may have changed.
    pub(super) fn note_calm(&mut self) {
        let is_sole = self.latent.is_some_and(|it| self.present == 1 && it.beyond == FIRST);
        self.is_calm = is_sole && self.rules.are_plain() && self.touched.is_empty();
    }

    /// Whether one share has all tasks, so that they are only counted.
    #[inline]
    pub(crate) const fn is_calm(&self) -> bool {
        self.is_calm
    }

    /// The share that has all tasks, if turns are calm.
    #[inline]
    fn sole(&self) -> Option<Id> {
        self.latent.filter(|_| self.is_calm).map(|latent| latent.share)
    }

    /// Whether the next task for this selection is simply the one that it chooses.
    #[inline]
    pub(crate) fn follow_main_order(&self, selection: Selection) -> bool {
        self.is_calm && selection == Selection::DEFAULT
    }

    /// Whether nothing is to be done for a task that enters this state, nor to end the step.
    #[inline]
    pub(crate) fn ignore(&self, kind: StateKind) -> bool {
        kind != StateKind::Ready && (self.is_calm || !self.rules.is_by_key && self.is_settled())
    }

    /// Whether nothing is to be done for a task that leaves this state.
    #[inline]
    pub(crate) fn ignore_former(&self, kind: StateKind) -> bool {
        kind != StateKind::Ready && !self.rules.is_by_key
    }

    /// Counts a ready task of this number and share that has entered, if that is all there is to
    /// do. Otherwise it has to be inserted.
    #[inline]
    pub(crate) fn count_in(&mut self, (number, name): (Option<i64>, Option<&Bytes>)) -> bool {
        let Some(share) = self.sole() else { return false };
        let Some(number) = number else { return true };
        if !self.is_of(share, name) {
            return false;
        }
        let guess = &mut self.guesses[place_of(number)];
        let Some(pair) = self.shares[share].pairs.find_near(number, guess) else { return false };
        pair.count_latent();
        true
    }

    /// Counts a ready task of this number and share that leaves, if that is all there is to do.
    /// Otherwise it has to be removed.
    #[inline]
    pub(crate) fn count_out(&mut self, (number, name): (Option<i64>, Option<&Bytes>)) -> bool {
        let Some(share) = self.sole() else { return false };
        let Some(number) = number else { return true };
        if !self.is_of(share, name) {
            return false;
        }
        self.next = None;
        let guess = &mut self.guesses[place_of(number)];
        let pair = self.shares[share].pairs.find_near(number, guess);
        pair.is_some_and(Pair::discount_all_but_last)
    }

    /// Charges a task that is about to leave, if turns are calm, and counts it out already if that
    /// is all there is to do.
    #[inline]
    pub(crate) fn charge_sole(
        &mut self,
        slot: Slot,
        (number, name): (Option<i64>, Option<&Bytes>),
        cost: NonZeroU32,
    ) -> bool {
        let Some(share) = self.sole() else { return false };
        let Some(number) = number.filter(|_| self.is_of(share, name)) else { return false };
        self.next = None;
        if self.notes.is_some() {
            self.charge_share(share, number, cost);
            return true;
        }
        let guess = &mut self.guesses[place_of(number)];
        let its = &mut self.shares[share];
        let weight = its.weight();
        let Some(pair) = its.pairs.find_near(number, guess) else { return true };
        let Some(level) = self.levels.find_near(number, guess) else { return true };
        let reached = level.reach(pair.account.turn(cost));
        self.served += 1;
        pair.account.pay(reached, self.served, weight);
        if pair.discount_all_but_last() {
            self.departing = Some(slot);
        }
        true
    }

    /// Whether the task at this slot has been counted out when it was charged.
    #[inline]
    pub(crate) fn has_departed(&self, slot: Slot) -> bool {
        self.departing == Some(slot)
    }

    /// The same, and forgets that.
    #[inline]
    pub(crate) fn end_departure(&mut self, slot: Slot) -> bool {
        self.departing.take() == Some(slot)
    }

    /// Whether the end of a step in which no ready task has moved changes nothing.
    #[inline]
    pub(crate) const fn are_at_rest(&self) -> bool {
        self.is_calm && self.departing.is_none()
    }

    /// Ends a step, unless there is something left to do.
    #[inline]
    pub(crate) fn end_quietly(&mut self) -> bool {
        self.departing = None;
        self.is_calm || self.is_settled()
    }

    /// Whether a task of this share with this place in the main order is latent.
    #[inline]
    pub(super) fn is_latent(&self, share: Id, place: Rank) -> bool {
        self.latent.is_some_and(|latent| latent.share == share && place > latent.beyond)
    }

    /// Lets the tasks of the first share be latent.
    #[inline]
    pub(super) fn begin_latent(&mut self, share: Id) {
        if self.present == 0 && self.latent.is_none() && self.rules.are_plain() {
            self.latent = Some(Latent { share, beyond: FIRST });
        }
    }

    /// Whether the next step has to pass tasks.
    #[inline]
    pub(super) fn has_to_pass(&self) -> bool {
        self.latent.is_some_and(|latent| self.present != 1 || latent.beyond != FIRST)
    }

    /// Passes all tasks, unless they are of one share.
    pub(super) fn pass_all(&mut self, roster: &impl Roster) {
        while let Some(latent) = self.latent.filter(|_| self.present > 1) {
            self.pass(latent.share, roster);
        }
    }

    /// Lets tasks be latent or no longer so, as this step asks for.
    pub(super) fn settle_latent(&mut self, roster: &impl Roster) {
        if let Some(latent) = self.latent
            && self.shares[latent.share].pairs.is_empty()
        {
            self.latent = None;
        }
        match self.latent {
            None if self.present == 1 => {
                let touched = self.touched.iter().map(|(id, _)| *id);
                let mut known = touched.chain(self.line.iter().map(|turn| turn.share));
                let share = known.find(|id| !self.shares[*id].pairs.is_empty());
                drop(known);
                if let Some(share) = share {
                    self.touch(share, roster);
                    self.latent = Some(Latent { share, beyond: LAST });
                }
            }
            None => {}
            Some(latent) if self.present == 1 => {
                if self.shares[latent.share].has_turn {
                    self.touch(latent.share, roster);
                }
                self.retreat(latent, roster);
            }
            Some(latent) => {
                self.touch(latent.share, roster);
                self.pass(latent.share, roster);
            }
        }
    }

    /// Gives the next tasks of the main order places in rows, until the first one of the share has
    /// one.
    fn pass(&mut self, share: Id, roster: &impl Roster) {
        let mut passed = 0;
        let needs_first = |turns: &Self| {
            turns.shares[share].pairs.first().is_some_and(|pair| pair.row.is_empty())
        };
        while let Some(Latent { beyond, .. }) = self.latent
            && (passed < PASSED || needs_first(self))
        {
            passed += 1;
            let Some((place, slot)) = roster.after(beyond) else {
                self.latent = None;
                return;
            };
            self.latent = Some(Latent { share, beyond: place });
            let task = roster.entrant(slot);
            if self.is_of(share, task.share())
                && let Some(pair) = self.shares[share].pairs.find_mut(place.0)
            {
                pair.discount_latent();
                pair.insert(slot, (task.seq, task.cost), roster);
            }
        }
    }

    /// Lets the last tasks of rows be latent, of the share that has all of them.
    fn retreat(&mut self, latent: Latent, roster: &impl Roster) {
        let Latent { share, mut beyond } = latent;
        for _ in 0..PASSED {
            if beyond == FIRST {
                break;
            }
            // At most one pair up to there has no row.
            let pairs = &mut self.shares[share].pairs;
            let last = pairs.down_from(beyond.0).take(2).find(|pair| !pair.row.is_empty());
            let last = last.and_then(|pair| Some((pair.number, pair.row.last()?)));
            beyond = last.map_or(FIRST, |(number, slot)| {
                let task = roster.entrant(slot);
                if let Some(pair) = pairs.find_mut(number) {
                    pair.remove(slot, (task.seq, task.cost), roster);
                    pair.count_latent();
                }
                (number, task.seq.saturating_sub(1))
            });
        }
        self.latent = Some(Latent { share, beyond });
    }

    /// The first task of a share at a number that goes after this one, or the first of all. Looks
    /// at all latent tasks of the number up to there, whosever they are.
    pub(super) fn next_of(
        &self,
        share: Id,
        number: i64,
        last: Option<Aged>,
        roster: &impl Roster,
    ) -> Option<Aged> {
        let pair = self.shares.find_at(share).and_then(|share| share.pairs.find(number))?;
        let in_row = pair.row.next(last, |slot| roster.seq(slot));
        in_row.or_else(|| {
            let beyond = self.latent.filter(|latent| latent.share == share)?.beyond;
            let mut place = beyond.max((number, last.map_or(0, |last| last.seq)));
            loop {
                let (next, slot) = roster.after(place).filter(|((it, _), _)| *it == number)?;
                if self.is_of(share, roster.entrant(slot).share()) {
                    return Some(Aged { rank: 0, seq: next.1, slot });
                }
                place = next;
            }
        })
    }

    /// The tasks of a share at a number that may go, the oldest first, with their seqs. Costs
    /// O(log n) for each task of the number that is looked at, and no task of the row is looked at
    /// twice.
    pub(super) fn tasks_of<'t>(
        &'t self,
        share: Id,
        number: i64,
        roster: &'t impl Roster,
    ) -> impl Iterator<Item = (u64, Slot)> + 't {
        let pair = self.shares[share].pairs.find(number);
        let in_row = pair.into_iter().flat_map(|pair| pair.row.iter());
        let in_row = in_row.map(|slot| (roster.seq(slot), slot));
        let beyond = self.latent.filter(|latent| latent.share == share).map(|it| it.beyond);
        let mut place = beyond.map(|beyond| beyond.max((number, 0)));
        let latent = std::iter::from_fn(move || {
            let (next, slot) = roster.after(place?).filter(|((other, _), _)| *other == number)?;
            place = Some(next);
            Some((next.1, slot))
        });
        let is_its = move |slot: Slot| self.is_of(share, roster.entrant(slot).share());
        in_row.chain(latent.filter(move |(_, slot)| is_its(*slot)))
    }
}
