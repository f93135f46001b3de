//! Shares: what they have of each number, what they have had, and when their turns come.

use std::num::NonZeroU32;

use super::line::Turn;
use super::named::Id;
use super::numbered::Numbered;
use super::openings::{Place, is_shut};
use super::pairs::{Account, Pair, price};
use super::row::Row;
use super::wide::Wide;
use super::{Candidate, Level, OwnRules, Roster, Rules, Turns};
use crate::memory::slots::Slot;
use pinpriq_proto::shares::Own;
use pinpriq_proto::task::Bytes;

#[derive(Debug)]
pub(super) struct Share {
    /// How many of its tasks are taken. Counted only where shares have limits.
    pub(super) taken: u32,
    /// Whether its turn is in line.
    pub(super) has_turn: bool,
    is_touched: bool,
    pub(super) besides: Option<Box<Besides>>,
    pub(super) pairs: Numbered<Pair>,
}

/// What only some shares have.
#[derive(Debug, Default)]
pub(super) struct Besides {
    pub(super) own: OwnRules,
    pub(super) bucket: Place,
}

/// A turn ties with those of shares that were served before, and comes after those that were not.
pub(super) const SERVED: u64 = 1 << 63;

impl Share {
    pub(super) fn of(own: Option<OwnRules>) -> Self {
        let besides = own.map(|own| Box::new(Besides { own, bucket: None }));
        Self { taken: 0, has_turn: false, is_touched: false, besides, pairs: Numbered::None }
    }

    pub(super) fn own(&self) -> OwnRules {
        self.besides.as_ref().map_or_else(OwnRules::default, |besides| besides.own)
    }

    pub(super) fn weight(&self) -> u16 {
        self.besides.as_ref().map_or(1, |besides| besides.own.weight)
    }

    pub(super) fn bucket(&mut self) -> &mut Place {
        &mut self.besides.get_or_insert_default().bucket
    }

    /// Whether it has a bucket of its own, which is not full.
    pub(super) fn has_bucket(&self) -> bool {
        self.besides.as_ref().is_some_and(|besides| besides.bucket.is_some())
    }

    /// Whether its limit or rate holds its tasks back. `common` is the bucket of shares without
    /// one of their own, and without a rate of their own.
    pub(super) fn is_shut(&self, rules: &Rules, common: &Place) -> bool {
        let own = self.own();
        let limit = own.limit.or(rules.share_limit);
        let is_full = limit.is_some_and(|limit| u64::from(self.taken) >= limit);
        is_full
            || match self.besides.as_ref().filter(|besides| besides.bucket.is_some()) {
                Some(besides) => is_shut(&besides.bucket),
                None => is_shut(common) && own.rate == Own::Default,
            }
    }

    /// The turn of its best pair.
    pub(super) fn turn(&self, share: Id, is_fair: bool, roster: &impl Roster) -> Option<Turn> {
        let pair = self.pairs.first()?;
        let number = pair.number;
        if !is_fair {
            let (at, tie) = match &pair.row {
                Row::Aged(line) => line.first().map(|task| (Wide::of_signed(task.rank), task.seq)),
                row => row.first().map(|slot| (Wide::ZERO, roster.seq(slot))),
            }?;
            return Some(Turn { number, at, tie, share });
        }
        let (slot, cost) = pair.first(roster)?;
        let at = pair.account.turn(cost);
        let served = pair.account.served;
        let tie = if served == 0 { roster.seq(slot) } else { SERVED | served };
        Some(Turn { number, at, tie, share })
    }
}

/// How many guesses there are.
pub(super) const GUESSES: usize = 16;

/// The place of the guess for a number.
#[inline]
pub(super) fn place_of(number: i64) -> usize {
    usize::from(number.to_le_bytes()[0]) % GUESSES
}

impl Turns {
    /// Lets a task have its place among those that may go.
    #[inline]
    pub(super) fn stand(&mut self, slot: Slot, task: &Candidate<'_>, roster: &impl Roster) {
        let id = self.share_of(task.share, roster);
        self.begin_latent(id);
        let is_latent = self.is_latent(id, (task.number, task.seq));
        let Some(pair) = self.shares[id].pairs.find_mut(task.number) else {
            self.make_pair(id, task.number, task.cost, roster);
            return self.join_pair(id, slot, task, is_latent, roster);
        };
        if is_latent {
            pair.count_latent();
        } else if pair.row.comes_last(task.seq) {
            pair.insert(slot, (task.seq, task.cost), roster);
        } else {
            self.touch(id, roster);
            self.join_pair(id, slot, task, is_latent, roster);
        }
    }

    #[inline(never)]
    fn join_pair(
        &mut self,
        id: Id,
        slot: Slot,
        task: &Candidate<'_>,
        is_latent: bool,
        roster: &impl Roster,
    ) {
        let Some(pair) = self.shares[id].pairs.find_mut(task.number) else { return };
        if is_latent {
            pair.count_latent();
        } else {
            pair.insert(slot, (task.seq, task.cost), roster);
        }
    }

    /// Takes a task out of those that may go.
    #[inline]
    pub(super) fn unstand(&mut self, slot: Slot, task: &Candidate<'_>, roster: &impl Roster) {
        let Candidate { number, seq, cost, .. } = *task;
        let id = self.share_at(slot, task.share, roster);
        self.next = None;
        let is_latent = self.is_latent(id, (number, seq));
        if self.alone().is_none() {
            self.touch(id, roster);
        }
        let Some(pair) = self.shares[id].pairs.find_mut(number) else {
            unreachable!("the task at {slot:?} stands nowhere")
        };
        if is_latent {
            pair.discount_latent();
        } else {
            pair.remove(slot, (seq, cost), roster);
        }
        if pair.is_empty() {
            self.emptied.push((id, number));
            self.touch(id, roster);
        }
    }

    /// A share gets its turn at a number.
    #[inline(never)]
    fn make_pair(&mut self, id: Id, number: i64, cost: NonZeroU32, roster: &impl Roster) {
        if self.alone() != Some(id) {
            self.touch(id, roster);
        }
        self.note_pair(id, number);
        let reached = if let Some(level) = self.levels.find_mut(number) {
            level.pairs += 1;
            level.reached
        } else {
            self.levels.insert(Level { number, reached: Wide::ZERO, pairs: 1 });
            Wide::ZERO
        };
        let row = Row::new(self.rules.ages);
        let share = &mut self.shares[id];
        self.present += u32::from(share.pairs.is_empty());
        let account = Account::new(reached, share.weight());
        share.pairs.insert(Pair::new(number, account, cost, row));
        self.note_calm();
    }

    #[inline(never)]
    pub(super) fn forget_if_empty(&mut self, id: Id, number: i64) {
        if self.shares[id].pairs.find(number).is_none_or(|pair| !pair.is_empty()) {
            return;
        }
        if self.notes.is_some() {
            self.note_pair(id, number);
            self.note_level(number);
        }
        let pairs = &mut self.shares[id].pairs;
        pairs.remove(number);
        self.present -= u32::from(pairs.is_empty());
        if let Some(level) = self.levels.find_mut(number) {
            level.pairs -= 1;
            if level.pairs == 0 {
                self.levels.remove(number);
            }
        }
    }

    #[inline]
    pub(super) fn charge_share(&mut self, id: Id, number: i64, cost: NonZeroU32) {
        if self.notes.is_some() {
            self.note_pair(id, number);
            self.note_level(number);
        }
        let guess = &mut self.guesses[place_of(number)];
        let share = &mut self.shares[id];
        let weight = share.weight();
        let Some(pair) = share.pairs.find_near(number, guess) else {
            return self.charge_absent(number, price(cost, weight));
        };
        let Some(level) = self.levels.find_near(number, guess) else { return };
        let reached = level.reach(pair.account.turn(cost));
        self.served += 1;
        pair.account.pay(reached, self.served, weight);
    }

    /// Charges a share without tasks that may go at this number. Where no share has any, nothing is
    /// kept about the number.
    #[inline(never)]
    fn charge_absent(&mut self, number: i64, price: u64) {
        if let Some(level) = self.levels.find_mut(number) {
            level.reach(level.reached.plus(price));
            self.served += 1;
        }
    }

    /// Charges the task that goes next, which is about to leave, takes it out, and gives its share
    /// its next turn, if that is all there is to do.
    pub(crate) fn charge_next(
        &mut self,
        slot: Slot,
        cost: NonZeroU32,
        roster: &impl Roster,
    ) -> bool {
        let Some((_, id)) = self.next.filter(|(next, _)| *next == slot) else { return false };
        let front = self.line.first().copied().filter(|front| front.share == id);
        let Some(front) = front else { return false };
        let is_simple = self.rules.are_plain() && self.latent.is_none() && self.notes.is_none();
        if !is_simple || !self.touched.is_empty() {
            return false;
        }
        let number = front.number;
        let guess = &mut self.guesses[place_of(number)];
        let share = &mut self.shares[id];
        let weight = share.weight();
        let Some(pair) = share.pairs.find_mut(number) else { return false };
        let is_simple = pair.row.has_several() && pair.row.first() == Some(slot);
        let level = self.levels.find_near(number, guess).filter(|_| is_simple);
        let Some(level) = level else { return false };
        let reached = level.reach(front.at);
        self.served += 1;
        pair.account.pay(reached, self.served, weight);
        pair.remove_first(slot, cost);
        let at = pair.first(roster).map_or(reached, |(_, cost)| pair.account.turn(cost));
        let turn = Turn { number, at, tie: SERVED | self.served, share: id };
        self.line.replace(Some(front), Some(turn));
        // Who has had a turn often gets another task soon.
        (self.next, self.departing, self.last) = (None, Some(slot), id);
        true
    }

    /// Gives a share the turn that is due to it, or forgets it if it has nothing.
    pub(super) fn line_up(&mut self, id: Id, former: Option<Turn>, roster: &impl Roster) {
        let is_alone = self.alone() == Some(id);
        let is_fair = self.rules.is_fair;
        let share = &mut self.shares[id];
        share.is_touched = false;
        let is_shut = self.rules.is_by_key && share.is_shut(&self.rules, &self.common.shares);
        let turn = if is_shut || is_alone { None } else { share.turn(id, is_fair, roster) };
        share.has_turn = turn.is_some();
        let is_idle = share.pairs.is_empty() && share.taken == 0;
        let has_bucket = is_idle && share.has_bucket();
        if turn != former {
            self.line.replace(former, turn);
        }
        if is_idle && !has_bucket && id != self.nameless {
            let hash = roster.hash(self.shares.name(id));
            self.shares.remove(id, hash);
        }
    }

    /// Notes that this step changes a share.
    #[inline]
    pub(super) fn touch(&mut self, id: Id, roster: &impl Roster) -> &mut Share {
        let share = &mut self.shares[id];
        if !share.is_touched {
            share.is_touched = true;
            self.is_calm = false;
            // It is mostly the one whose turn it is.
            let front = self.line.first().filter(|turn| turn.share == id);
            let turn = match front {
                Some(turn) => Some(*turn),
                None if share.has_turn => share.turn(id, self.rules.is_fair, roster),
                None => None,
            };
            self.touched.push((id, turn));
        }
        share
    }

    /// The share of a task that may go.
    #[inline]
    pub(super) fn share_at(
        &mut self,
        slot: Slot,
        share: Option<&Bytes>,
        roster: &impl Roster,
    ) -> Id {
        match self.next {
            Some((next, share)) if next == slot => share,
            _ => self.share_of(share, roster),
        }
    }

    /// Whether a task of which this is the share is one of that share.
    #[inline]
    pub(super) fn is_of(&self, id: Id, share: Option<&impl AsRef<[u8]>>) -> bool {
        share.map_or(id == self.nameless, |name| self.shares.is_called(id, name.as_ref()))
    }
}
