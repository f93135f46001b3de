//! Which ready task of a queue goes next, where that is not decided by number and age alone.
//!
//! A *share* is on whose behalf a task runs. Tasks that may go *stand*, and the tasks of one share
//! and number that stand are a *pair*. The first task of its best pair is the *turn* of a share.
//! Among the turns of the lowest number, the one that comes first is next: the oldest, or in a fair
//! queue that of the share which has had least by its weight.
//!
//! Where keys and shares have limits, only the first task of each key stands, and only while the
//! key may go. A share that may not go has no turn, but keeps its pairs. So a key and a share move
//! as one thing, whatever the number of their tasks.
//!
//! In an ageing queue, tasks go by rank. They have an order of their own there, which any selection
//! can follow. If keys and shares have limits too, all tasks are of one number, and the turn of a
//! share comes at the rank of its first task.
//!
//! While one share has all tasks of a fair queue without such limits, the main order is its order
//! too, and its tasks are only counted (`latent.rs`). A put, a take and an ack then cost some 450
//! instructions more than without turns, all three together. Otherwise a share takes 160 to 190
//! bytes with up to ten tasks of one number, and the usual take changes its pair and its place in
//! line at once.
//!
//! What the shares have had and the buckets of rates are kept here alone. Everything else follows
//! from the tasks. Each step of the caller ends with [`Turns::conclude`]: what has no task then is
//! forgotten. Nothing here moves a task or knows about commands.

mod aged;
mod check;
mod forecast;
mod latent;
mod line;
mod named;
mod notes;
mod numbered;
mod openings;
mod pairs;
mod places;
mod row;
mod rules;
mod shares;
mod standing;
mod takeover;
#[cfg(test)]
mod tests;
mod why;
mod wide;

use std::num::NonZeroU32;

pub(crate) use self::aged::AgedTasks;
use self::latent::Latent;
use self::line::{Line, Turn};
use self::named::{Id, Named};
use self::notes::Notes;
use self::numbered::{HasNumber, Numbered};
pub(crate) use self::openings::Fullness;
use self::openings::{Openings, Place, Whose};
#[cfg(test)]
pub(crate) use self::rules::Own;
pub(crate) use self::rules::{Candidate, Charge, Entrant, OwnRules, Roster, Rules, SharesRules};
use self::shares::{GUESSES, Share};
use self::standing::Standing;
use self::takeover::Common;
pub(crate) use self::why::HeldBack;
use self::wide::Wide;
use crate::memory::bucket::Bucket;
use crate::memory::slots::Slot;
use pinpriq_proto::command::Selection;
use pinpriq_proto::settings::Rate;
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::Timestamp;

/// The turns of one queue. Every operation costs O(log n) unless its comment says otherwise.
#[derive(Debug)]
pub(crate) struct Turns {
    rules: Rules,
    shares: Named<Share>,
    /// The keys that have tasks which stand, are taken or hold it, or a bucket that is not full.
    /// Only where keys and shares may hold tasks back.
    keys: Named<Key>,
    /// The share of tasks that name none.
    nameless: Id,
    /// The share that was looked for last.
    last: Id,
    /// All tasks that could be handed out, if they age.
    aged: Option<Box<AgedTasks>>,
    /// The task that goes next and its share, if that was asked for and it is still there.
    next: Option<(Slot, Id)>,
    /// How many shares have tasks that may go.
    present: u32,
    /// Whose tasks are only counted.
    latent: Option<Latent>,
    /// Whether one share has all tasks, and they are latent, and no step has changed anything else.
    is_calm: bool,
    /// A task that was counted out when it was charged.
    departing: Option<Slot>,
    levels: Numbered<Level>,
    /// At which places among few numbers levels and pairs are, at the remainders of the numbers.
    guesses: [u8; GUESSES],
    /// The turns of all shares that have one.
    line: Line,
    /// How many takes there have been.
    served: u64,
    openings: Openings,
    common: Common,
    /// The shares that this step has changed, with the turns that they had before.
    touched: Vec<(Id, Option<Turn>)>,
    /// The keys for which another task may have to stand.
    stale: Vec<Id>,
    /// The pairs from which this step has taken the last task.
    emptied: Vec<(Id, i64)>,
    notes: Option<Box<Notes>>,
}

/// Everyone with tasks of one number that may go.
#[derive(Debug)]
struct Level {
    number: i64,
    /// What the shares have had that were served last.
    reached: Wide,
    pairs: u32,
}

#[derive(Debug, Default)]
struct Key {
    taken: u32,
    is_stale: bool,
    /// The task that stands for it.
    standing: Option<Slot>,
    bucket: Place,
    /// The tasks that hold the others back.
    holders: Option<Box<Standing>>,
}

/// How many tasks enter in one step where there are many.
const AT_ONCE: usize = 1_024;

/// How many turns are looked at to find a task with a small payload.
const NARROW_TURNS_MAX: usize = 1_000;

impl Level {
    /// Notes what a share has had when it is served at this turn. Returns what has been reached.
    #[inline]
    fn reach(&mut self, turn: Wide) -> Wide {
        let reached = self.reached.max(turn);
        self.reached = reached;
        reached
    }
}

impl HasNumber for Level {
    #[inline]
    fn number(&self) -> i64 {
        self.number
    }
}

impl Turns {
    fn new(rules: Rules, roster: &impl Roster) -> Self {
        let mut shares = Named::default();
        let name = Bytes::default();
        let nameless = shares.insert(&name, roster.hash(&name), Share::of(roster.own_rules(&name)));
        Self {
            aged: rules.ages.then(Box::default),
            rules,
            shares,
            keys: Named::default(),
            nameless,
            last: nameless,
            next: None,
            present: 0,
            latent: None,
            is_calm: false,
            departing: None,
            levels: Numbered::None,
            guesses: [0; GUESSES],
            line: Line::default(),
            served: 0,
            openings: Openings::default(),
            common: Common::default(),
            touched: Vec::new(),
            stale: Vec::new(),
            emptied: Vec::new(),
            notes: None,
        }
    }

    /// The turns of these tasks, with the buckets that there were before. Costs O(n log n).
    pub(crate) fn of(
        rules: Rules,
        former: Option<&Self>,
        slots: impl Iterator<Item = Slot>,
        roster: &impl Roster,
        now: Timestamp,
    ) -> Self {
        let mut turns = Self::new(rules, roster);
        if let Some(former) = former.filter(|_| turns.rules.is_by_key) {
            for whose in former.openings.all() {
                turns.adopt(former, whose, roster, now);
            }
        }
        for (count, slot) in (1..).zip(slots) {
            turns.insert(slot, roster, now);
            if count % AT_ONCE == 0_usize {
                turns.conclude_tasks(roster);
                turns.conclude_shares(roster);
            }
        }
        turns.conclude(roster);
        turns.pass_all(roster);
        turns
    }

    /// Takes over a bucket of other turns.
    fn adopt(&mut self, former: &Self, whose: Whose, roster: &impl Roster, now: Timestamp) {
        let Some(bucket) = former.bucket(whose).cloned() else { return };
        let whose = match whose {
            Whose::Key(id) => Whose::Key(self.key_of(former.keys.name(id), roster)),
            Whose::Share(id) => Whose::Share(self.share_of(Some(former.shares.name(id)), roster)),
            Whose::EveryKey | Whose::EveryShare => whose,
        };
        self.replace_bucket(whose, Some(bucket), roster, now);
        self.change_rate(whose, roster, now);
    }

    /// The turns of the same queue without tasks. Buckets stay what they are.
    pub(crate) fn emptied(&self, roster: &impl Roster, now: Timestamp) -> Self {
        Self::of(self.rules.clone(), Some(self), std::iter::empty(), roster, now)
    }

    /// Frees some memory, of turns that are used no longer. After a call for each of the tasks that
    /// they had, little is left.
    pub(crate) fn free_some(&mut self) {
        self.shares.free_some();
        self.keys.free_some();
        self.aged.iter_mut().for_each(|aged| aged.free_some());
        self.levels.remove_first();
        self.openings.free_some();
    }

    /// Whether they look at ready tasks alone.
    pub(crate) const fn are_plain(&self) -> bool {
        self.rules.are_plain()
    }

    /// Whether these rules need other turns instead of [`Turns::set_rules`].
    pub(crate) fn differ_in_kind(&self, rules: &Rules) -> bool {
        self.rules.differ_in_kind(rules)
    }

    /// Changes numbers in the rules. `taken` are its taken tasks. Costs O(log n) for each
    /// of these and each bucket that is not full, and a step for each key if `key_hold` changes.
    pub(crate) fn set_rules(
        &mut self,
        rules: Rules,
        taken: impl Iterator<Item = Slot>,
        roster: &impl Roster,
        now: Timestamp,
    ) {
        debug_assert!(!self.differ_in_kind(&rules), "such turns are made anew");
        if !self.rules.is_by_key {
            // Nothing holds anything back.
            self.rules = rules;
            return;
        }
        self.advance(roster, now);
        let former = std::mem::replace(&mut self.rules, rules);
        let has_other_rates =
            (former.key_rate, former.share_rate) != (self.rules.key_rate, self.rules.share_rate);
        if has_other_rates {
            for whose in self.openings.all().collect::<Vec<_>>() {
                self.change_rate(whose, roster, now);
            }
        }
        for slot in taken {
            let task = roster.entrant(slot);
            let share = self.share_of(task.share(), roster);
            self.touch(share, roster);
            if let Some(key) = task.key {
                let key = self.key_of(key, roster);
                self.mark_stale(key);
            }
        }
        if former.key_hold != self.rules.key_hold {
            let held = self.keys.iter().filter(|(_, key)| key.holders.is_some());
            for key in held.map(|(id, _)| id).collect::<Vec<_>>() {
                self.mark_stale(key);
            }
        }
        self.conclude(roster);
    }

    /// Notes that a share has got other rules of its own.
    pub(crate) fn note_own_rules(&mut self, share: &[u8], roster: &impl Roster, now: Timestamp) {
        self.advance(roster, now);
        let Some(id) = self.shares.find(share, roster.hash(share)) else { return };
        let own = roster.own_rules(share).unwrap_or_default();
        self.touch(id, roster).besides.get_or_insert_default().own = own;
        self.change_rate(Whose::Share(id), roster, now);
        self.conclude(roster);
    }

    /// The number of buckets of single keys and shares that are not full.
    pub(crate) fn buckets(&self) -> usize {
        let Common { keys, shares } = &self.common;
        self.openings.len() - usize::from(keys.is_some()) - usize::from(shares.is_some())
    }

    /// How full each of these is, the fullest first.
    pub(crate) fn fullness(&self) -> impl Iterator<Item = Fullness> {
        self.openings.by_fullness().map(|(fullness, _)| fullness)
    }

    /// Forgets the bucket that is fullest, as if it were full.
    pub(crate) fn forget_fullest(&mut self, roster: &impl Roster) {
        if let Some((_, whose)) = self.openings.fullest() {
            self.replace_bucket(whose, None, roster, Timestamp::ZERO);
            self.conclude(roster);
        }
    }

    /// When something opens that holds tasks back now. It may have tasks that could not go even so.
    pub(crate) fn next_opening(&self) -> Option<Timestamp> {
        self.openings.next()
    }

    /// Returns the task that goes next. Where turns fix the order, of the selection only counts
    /// whether it is for a consumer of small payloads, who gets the first of those whose turn comes
    /// soon.
    pub(crate) fn first(
        &mut self,
        selection: Selection,
        roster: &impl Roster,
        now: Timestamp,
    ) -> Option<Slot> {
        self.advance(roster, now);
        if selection.narrow || !self.rules.fix_order() {
            return self.peek(selection, roster);
        }
        self.next = self.upcoming(roster);
        self.next.map(|(slot, _)| slot)
    }

    /// Like [`Self::first`], without a look at what has opened.
    pub(crate) fn peek(&self, selection: Selection, roster: &impl Roster) -> Option<Slot> {
        debug_assert!(self.touched.is_empty() && self.stale.is_empty(), "the step was concluded");
        if let Some(aged) = self.aged.as_ref().filter(|_| !self.rules.is_by_key) {
            return aged.first(selection);
        }
        if !selection.narrow {
            return self.upcoming(roster).map(|(slot, _)| slot);
        }
        let is_wanted = |slot: &Slot| roster.entrant(*slot).is_narrow;
        if self.alone().is_some() {
            return roster.first().filter(is_wanted);
        }
        let turns = self.line.iter().take(NARROW_TURNS_MAX);
        turns.filter_map(|turn| self.task_of(turn)).find(is_wanted)
    }

    /// The task that goes next, and its share.
    #[inline]
    fn upcoming(&self, roster: &impl Roster) -> Option<(Slot, Id)> {
        debug_assert!(self.touched.is_empty() && self.stale.is_empty(), "the step was concluded");
        if let Some(share) = self.alone() {
            return roster.first().map(|slot| (slot, share));
        }
        let turn = self.line.first()?;
        self.task_of(turn).map(|slot| (slot, turn.share))
    }

    fn task_of(&self, turn: &Turn) -> Option<Slot> {
        self.shares[turn.share].pairs.first()?.row.first()
    }

    /// Charges a task that is about to be handed out, while it is still ready.
    pub(crate) fn charge(&mut self, slot: Slot, roster: &impl Roster, now: Timestamp) {
        if self.rules.are_plain() {
            let there = roster.candidate(slot);
            // A task can be taken out of turn that could not be handed out.
            if let Some(task) = there.or_else(|| roster.entrant(slot).candidate()) {
                self.charge_plainly(slot, &task, roster);
            }
            return;
        }
        self.advance(roster, now);
        if !self.rules.fix_order() {
            return;
        }
        let task = roster.entrant(slot);
        let id = self.share_at(slot, task.share(), roster);
        self.touch(id, roster);
        if self.rules.is_by_key {
            self.pay(Whose::Share(id), task.cost.get(), roster, now);
            if let Some(key) = task.key {
                let key = self.key_of(key, roster);
                self.pay(Whose::Key(key), task.cost.get(), roster, now);
            }
        }
        if let Some(number) = task.number.filter(|_| self.rules.is_fair) {
            self.charge_share(id, number, task.cost);
        }
    }

    fn charge_plainly(&mut self, slot: Slot, task: &Candidate<'_>, roster: &impl Roster) {
        let id = self.share_at(slot, task.share, roster);
        if self.alone() != Some(id) {
            self.touch(id, roster);
        }
        self.charge_share(id, task.number, task.cost);
    }

    /// Takes back what a task was charged that was not sent. It is ready again, or gone.
    pub(crate) fn give_back(&mut self, charge: &Charge, roster: &impl Roster, now: Timestamp) {
        self.advance(roster, now);
        if !self.rules.fix_order() {
            return;
        }
        let Charge { share, key, number, cost } = charge;
        let id = self.share_of(share.as_ref(), roster);
        self.touch(id, roster);
        if self.rules.is_by_key {
            self.refund(Whose::Share(id), cost.get(), roster, now);
            if let Some(key) = key {
                let key = self.key_of(key, roster);
                self.refund(Whose::Key(key), cost.get(), roster, now);
            }
        }
        // It may stand only now.
        self.conclude(roster);
        if let Some(number) = number.filter(|_| self.rules.is_fair) {
            let id = self.share_of(share.as_ref(), roster);
            self.touch(id, roster);
            self.note_pair(id, number);
            if let Some(pair) = self.shares[id].pairs.find_mut(number) {
                pair.account.give_back(*cost);
            }
            self.conclude(roster);
        }
    }

    /// Notes what a taken task did cost, instead of what it was put with.
    pub(crate) fn correct(
        &mut self,
        slot: Slot,
        cost: NonZeroU32,
        roster: &impl Roster,
        now: Timestamp,
    ) {
        self.advance(roster, now);
        if !self.rules.is_by_key {
            return;
        }
        let task = roster.entrant(slot);
        let share = self.share_of(task.share(), roster);
        self.touch(share, roster);
        let key = task.key.map(|key| self.key_of(key, roster));
        for whose in [Some(Whose::Share(share)), key.map(Whose::Key)].into_iter().flatten() {
            let (was, is) = (task.cost.get(), cost.get());
            self.pay(whose, is.saturating_sub(was), roster, now);
            self.refund(whose, was.saturating_sub(is), roster, now);
        }
        self.conclude(roster);
    }

    /// Adds a task with its current fields. It must be in the indexes of its queue.
    pub(crate) fn insert(&mut self, slot: Slot, roster: &impl Roster, now: Timestamp) {
        if self.rules.are_plain() {
            if let Some(task) = roster.candidate(slot) {
                self.stand(slot, &task, roster);
            }
            return;
        }
        self.advance(roster, now);
        let task = roster.entrant(slot);
        self.age(slot, &task, true);
        if !self.rules.is_by_key {
            return;
        }
        let is_taken = task.kind == StateKind::Taken;
        if is_taken {
            let share = self.share_of(task.share(), roster);
            self.touch(share, roster).taken += 1;
        }
        match task.key {
            Some(key) if is_taken || task.is_selectable() || task.holds_key() => {
                let id = self.key_of(key, roster);
                let key = &mut self.keys[id];
                key.taken += u32::from(is_taken);
                if task.holds_key() {
                    key.holders.get_or_insert_default().insert(task.seq, slot);
                }
                self.age_in_key(id, slot, &task, true);
                self.mark_stale(id);
            }
            None if task.is_selectable() => self.stand_if_numbered(slot, &task, roster),
            _ => {}
        }
    }

    /// Removes a task that was added with its current fields.
    pub(crate) fn remove(&mut self, slot: Slot, roster: &impl Roster, now: Timestamp) {
        if self.rules.are_plain() {
            if let Some(task) = roster.candidate(slot) {
                self.unstand(slot, &task, roster);
            }
            return;
        }
        self.advance(roster, now);
        let task = roster.entrant(slot);
        self.age(slot, &task, false);
        if !self.rules.is_by_key {
            return;
        }
        let is_taken = task.kind == StateKind::Taken;
        if is_taken {
            let share = self.share_of(task.share(), roster);
            self.touch(share, roster).taken -= 1;
        }
        match task.key {
            Some(key) if is_taken || task.is_selectable() || task.holds_key() => {
                let id = self.key_of(key, roster);
                let key = &mut self.keys[id];
                key.taken -= u32::from(is_taken);
                if task.holds_key()
                    && let Some(holders) = &mut key.holders
                {
                    holders.remove(task.seq);
                    if holders.is_empty() {
                        key.holders = None;
                    }
                }
                if key.standing.take_if(|standing| *standing == slot).is_some() {
                    self.unstand_if_numbered(slot, &task, roster);
                }
                self.age_in_key(id, slot, &task, false);
                self.mark_stale(id);
            }
            None if task.is_selectable() => self.unstand_if_numbered(slot, &task, roster),
            _ => {}
        }
    }

    /// Ends a step: the right task of each key stands, pairs without tasks are forgotten, and
    /// shares have the turns that are due to them.
    #[inline]
    pub(crate) fn conclude(&mut self, roster: &impl Roster) {
        if !self.is_settled() {
            self.conclude_all(roster);
        }
    }

    /// Whether a step that ends now has nothing left to do.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        // A pair is emptied only where a share is touched.
        self.touched.is_empty() && self.stale.is_empty() && !self.has_to_pass()
    }

    #[inline(never)]
    fn conclude_all(&mut self, roster: &impl Roster) {
        self.conclude_tasks(roster);
        if self.rules.are_plain() {
            self.settle_latent(roster);
        }
        self.conclude_shares(roster);
        self.note_calm();
    }

    /// Lets the right task of each key stand, and forgets pairs without tasks.
    fn conclude_tasks(&mut self, roster: &impl Roster) {
        while let Some(key) = self.stale.pop() {
            self.refresh(key, roster);
        }
        while let Some((share, number)) = self.emptied.pop() {
            self.forget_if_empty(share, number);
        }
    }

    /// Gives shares the turns that are due to them.
    fn conclude_shares(&mut self, roster: &impl Roster) {
        while let Some((share, former)) = self.touched.pop() {
            self.line_up(share, former, roster);
        }
    }

    /// Notes what has opened by now.
    #[inline]
    fn advance(&mut self, roster: &impl Roster, now: Timestamp) {
        if self.openings.due(now).is_some() {
            self.open(roster, now);
        }
    }

    #[inline(never)]
    fn open(&mut self, roster: &impl Roster, now: Timestamp) {
        while let Some(whose) = self.openings.due(now) {
            let (place, openings) = self.place(whose);
            openings.look(place, whose, now);
            self.mark(whose, roster);
        }
        self.conclude(roster);
    }

    /// Makes the task stand for a key that is due to do so, and forgets a key without tasks.
    fn refresh(&mut self, id: Id, roster: &impl Roster) {
        let key = &mut self.keys[id];
        key.is_stale = false;
        let key = &self.keys[id];
        let limit = self.rules.key_limit;
        let is_full = limit.is_some_and(|limit| u64::from(key.taken) >= limit);
        let holder = key.holders.as_ref().and_then(|holders| holders.first());
        let next = match holder.filter(|_| self.rules.key_hold) {
            _ if is_full || self.is_paced(key) => None,
            Some((_, slot)) => Some(slot).filter(|slot| roster.entrant(*slot).is_selectable()),
            None => self.first_of_key(id, roster),
        };
        let standing = key.standing;
        if next != standing {
            if let Some(slot) = standing {
                self.unstand_if_numbered(slot, &roster.entrant(slot), roster);
            }
            if let Some(slot) = next {
                self.stand_if_numbered(slot, &roster.entrant(slot), roster);
            }
            self.keys[id].standing = next;
        }
        let key = &self.keys[id];
        let has_nothing = next.is_none()
            && key.taken == 0
            && key.holders.is_none()
            && key.bucket.is_none()
            && !(self.waits_for_common(key) && self.first_of_key(id, roster).is_some());
        if has_nothing {
            let hash = roster.hash(self.keys.name(id));
            self.keys.remove(id, hash);
        }
    }

    fn first_of_key(&self, id: Id, roster: &impl Roster) -> Option<Slot> {
        match &self.aged {
            Some(aged) => aged.first_of_key(id),
            None => roster.first_of_key(self.keys.name(id)),
        }
    }

    fn stand_if_numbered(&mut self, slot: Slot, task: &Entrant<'_>, roster: &impl Roster) {
        if let Some(task) = task.candidate() {
            self.stand(slot, &task, roster);
        }
    }

    fn unstand_if_numbered(&mut self, slot: Slot, task: &Entrant<'_>, roster: &impl Roster) {
        if let Some(task) = task.candidate() {
            self.unstand(slot, &task, roster);
        }
    }

    /// Returns the share of this name, which comes into being if it is not there.
    #[inline]
    fn share_of<N: AsRef<[u8]> + ?Sized>(&mut self, name: Option<&N>, roster: &impl Roster) -> Id {
        let Some(name) = name else { return self.nameless };
        if !self.shares.is_called(self.last, name.as_ref()) {
            self.last = self.look_up_share(name.as_ref(), roster);
        }
        self.last
    }

    #[inline(never)]
    fn look_up_share(&mut self, name: &[u8], roster: &impl Roster) -> Id {
        let hash = roster.hash(name);
        let found = self.shares.find(name, hash);
        found.unwrap_or_else(|| self.shares.insert(name, hash, Share::of(roster.own_rules(name))))
    }

    /// Returns the key of this name, which comes into being if it is not there.
    fn key_of(&mut self, name: &[u8], roster: &impl Roster) -> Id {
        let hash = roster.hash(name);
        let found = self.keys.find(name, hash);
        found.unwrap_or_else(|| self.keys.insert(name, hash, Key::default()))
    }

    fn mark_stale(&mut self, id: Id) {
        if !std::mem::replace(&mut self.keys[id].is_stale, true) {
            self.stale.push(id);
        }
    }

    fn mark(&mut self, whose: Whose, roster: &impl Roster) {
        match whose {
            Whose::Key(id) => self.mark_stale(id),
            Whose::Share(id) => {
                self.touch(id, roster);
            }
            Whose::EveryKey => self.mark_keys_in_common(),
            Whose::EveryShare => self.mark_shares_in_common(roster),
        }
    }

    fn pay(&mut self, whose: Whose, cost: u32, roster: &impl Roster, now: Timestamp) {
        if let Some(rate) = self.rate(whose) {
            self.note_bucket(whose);
            let common = self.common(whose).map(|timed| timed.bucket().clone());
            let (place, openings) = self.place(whose);
            openings.pay(place, whose, (rate, common), (cost, now));
            self.mark(whose, roster);
        }
    }

    fn refund(&mut self, whose: Whose, cost: u32, roster: &impl Roster, now: Timestamp) {
        self.note_bucket(whose);
        let common = self.common(whose).map(|timed| timed.bucket().clone());
        let (place, openings) = self.place(whose);
        openings.refund(place, whose, common, (cost, now));
        self.mark(whose, roster);
    }

    /// Gives a bucket the rate that holds for it now.
    fn change_rate(&mut self, whose: Whose, roster: &impl Roster, now: Timestamp) {
        let rate = self.rate(whose);
        let (place, openings) = self.place(whose);
        openings.change(place, whose, (rate, now));
        self.mark(whose, roster);
    }

    fn replace_bucket(
        &mut self,
        whose: Whose,
        bucket: Option<Bucket>,
        roster: &impl Roster,
        now: Timestamp,
    ) {
        let (place, openings) = self.place(whose);
        openings.take_out(place, whose);
        openings.put_back(place, whose, bucket, now);
        self.mark(whose, roster);
    }

    fn rate(&self, whose: Whose) -> Option<Rate> {
        match whose {
            Whose::Key(_) | Whose::EveryKey => self.rules.key_rate,
            Whose::EveryShare => self.rules.share_rate,
            Whose::Share(id) => self.shares[id].own().rate.or(self.rules.share_rate),
        }
    }

    fn bucket(&self, whose: Whose) -> Option<&Bucket> {
        let place = match whose {
            Whose::Key(id) => self.keys[id].bucket.as_ref(),
            Whose::Share(id) => self.shares[id].besides.as_ref()?.bucket.as_ref(),
            Whose::EveryKey => self.common.keys.as_ref(),
            Whose::EveryShare => self.common.shares.as_ref(),
        };
        place.map(|timed| timed.bucket())
    }

    /// The place of a bucket, and the index that it is in.
    fn place(&mut self, whose: Whose) -> (&mut Place, &mut Openings) {
        let place = match whose {
            Whose::Key(id) => &mut self.keys[id].bucket,
            Whose::Share(id) => self.shares[id].bucket(),
            Whose::EveryKey => &mut self.common.keys,
            Whose::EveryShare => &mut self.common.shares,
        };
        (place, &mut self.openings)
    }
}
