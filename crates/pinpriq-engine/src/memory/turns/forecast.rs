//! In which order the tasks of a queue go, for those who ask.
//!
//! It is what comes of it if one task after the other is taken and finished at once, none comes,
//! and no key or share opens or closes. Nothing changes: what the takes would change is kept here.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::num::NonZeroU32;

use super::aged::Aged;
use super::latent::FIRST;
use super::line::Turn;
use super::named::Id;
use super::openings::is_shut;
use super::pairs::{Account, Pair as Known};
use super::shares::SERVED;
use super::wide::Wide;
use super::{Entrant, OwnRules, Roster, Rules, Turns};
use crate::memory::slots::Slot;
use pinpriq_proto::command::Selection;
use pinpriq_proto::shares::Own;
use pinpriq_proto::task::Bytes;

/// See the start of this file. A step costs O(log n).
pub(crate) struct Forecast<'t, R> {
    turns: &'t Turns,
    roster: &'t R,
    /// Whether a task would leave without being taken, and is charged nothing.
    is_gone: &'t dyn Fn(Slot) -> bool,
    /// The turns that have not changed, among others.
    line: Peekable<Box<dyn Iterator<Item = &'t Turn> + 't>>,
    /// All tasks in their order, if they go in one whatever their shares.
    fixed: Option<Box<dyn Iterator<Item = Slot> + 't>>,
    /// The turns of all shares that have changed.
    changed: BTreeSet<Turn>,
    shares: BTreeMap<Id, Share>,
    levels: BTreeMap<i64, Level>,
    keys: BTreeMap<Id, Key<'t>>,
    /// The tasks that have been taken.
    taken: BTreeSet<Slot>,
    served: u64,
    /// The key and the share whose tasks go, whatever holds them.
    freed_key: Option<Id>,
    freed_share: Option<Id>,
    /// Shares that have no place among the turns yet.
    fresh: BTreeMap<&'t Bytes, Id>,
}

/// A share that has changed.
#[derive(Default)]
struct Share {
    turn: Option<Turn>,
    /// The pairs that have changed and have tasks.
    pairs: BTreeMap<i64, Pair>,
    /// Up to this number, all other pairs are gone.
    gone: Option<i64>,
    /// What its weight is if it has no place among the turns, and whether it has a rate of its own.
    weight: u16,
    has_rate: bool,
}

/// What has been reached at a number, and how many pairs there are.
struct Level {
    reached: Wide,
    pairs: u32,
}

struct Pair {
    account: Account,
    /// Whether tasks stand there already.
    is_known: bool,
    /// The last of these that was taken.
    taken: Option<Aged>,
    /// The tasks that stand there only now.
    added: BTreeSet<Aged>,
}

/// A key of which a task was taken.
struct Key<'t> {
    tasks: Box<dyn Iterator<Item = Slot> + 't>,
    /// The seq of the last of its holders that went.
    holder: u64,
}

impl Turns {
    /// Foresees the order of the tasks. The key and share of `freed` may go, whatever holds them.
    pub(crate) fn forecast<'t, R: Roster>(
        &'t self,
        freed: Option<Slot>,
        roster: &'t R,
        is_gone: &'t dyn Fn(Slot) -> bool,
    ) -> Forecast<'t, R> {
        let line: Box<dyn Iterator<Item = &'t Turn> + 't> = Box::new(self.line.iter());
        let fixed: Option<Box<dyn Iterator<Item = Slot> + 't>> = match &self.aged {
            Some(aged) if !self.fix_order() => Some(Box::new(aged.walk(Selection::DEFAULT))),
            _ => self.alone().map(|_| Box::new(main_order(roster)) as _),
        };
        let mut forecast = Forecast {
            turns: self,
            roster,
            is_gone,
            line: line.peekable(),
            fixed,
            changed: BTreeSet::new(),
            shares: BTreeMap::new(),
            levels: BTreeMap::new(),
            keys: BTreeMap::new(),
            taken: BTreeSet::new(),
            served: self.served,
            freed_key: None,
            freed_share: None,
            fresh: BTreeMap::new(),
        };
        if let Some(task) = freed.map(|slot| roster.entrant(slot)) {
            forecast.free(&task);
        }
        forecast
    }
}

/// All tasks that could be handed out, by number and seq.
fn main_order(roster: &impl Roster) -> impl Iterator<Item = Slot> {
    let mut place = FIRST;
    std::iter::from_fn(move || {
        let (next, slot) = roster.after(place)?;
        place = next;
        Some(slot)
    })
}

impl<R: Roster> Iterator for Forecast<'_, R> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        if let Some(fixed) = &mut self.fixed {
            return fixed.next();
        }
        let turn = self.next_turn()?;
        self.take(turn)
    }
}

impl<'t, R: Roster> Forecast<'t, R> {
    /// Lets the key and the share of a task go, whatever holds them.
    fn free(&mut self, task: &Entrant<'t>) {
        if !self.turns.rules.is_by_key {
            return;
        }
        let share = self.share_of(task.share());
        self.freed_share = Some(share);
        self.line_up(share);
        let Some(name) = task.key else { return };
        self.freed_key = self.turns.keys.find(name, self.roster.hash(name));
        if self.freed_key.is_some_and(|key| self.turns.keys[key].standing.is_none()) {
            self.stand_next(name);
        }
    }

    fn next_turn(&mut self) -> Option<Turn> {
        while self.line.next_if(|turn| self.shares.contains_key(&turn.share)).is_some() {}
        let (unchanged, changed) = (self.line.peek(), self.changed.first());
        unchanged.into_iter().copied().chain(changed).min().copied()
    }

    fn take(&mut self, turn: Turn) -> Option<Slot> {
        let Turn { share, number, .. } = turn;
        let first = self.first(share, number)?;
        let slot = first.slot;
        let task = self.roster.entrant(slot);
        if self.turns.rules.is_fair && !(self.is_gone)(slot) {
            self.charge(share, number, task.cost);
        }
        let pair = self.pair(share, number);
        if !pair.added.remove(&first) {
            pair.taken = Some(first);
        }
        self.taken.insert(slot);
        if self.turns.rules.is_by_key
            && let Some(key) = task.key
        {
            self.stand_next(key);
        }
        if self.first(share, number).is_none() {
            self.forget(share, number);
        }
        self.line_up(share);
        Some(slot)
    }

    fn charge(&mut self, share: Id, number: i64, cost: NonZeroU32) {
        let weight = self.weight(share);
        let turn = self.pair(share, number).account.turn(cost);
        let level = self.level(number);
        level.reached = level.reached.max(turn);
        let reached = level.reached;
        self.served += 1;
        let served = self.served;
        self.pair(share, number).account.pay(reached, served, weight);
    }

    /// Lets the next task of a key stand, if one may go.
    fn stand_next(&mut self, name: &'t Bytes) {
        let Some(id) = self.turns.keys.find(name, self.roster.hash(name)) else { return };
        let Some(slot) = self.next_of_key(id, name) else { return };
        let task = self.roster.entrant(slot);
        let Some(number) = task.number else { return };
        let share = self.share_of(task.share());
        self.pair(share, number).added.insert(task.aged(slot));
        self.line_up(share);
    }

    fn next_of_key(&mut self, id: Id, name: &'t Bytes) -> Option<Slot> {
        let (roster, turns) = (self.roster, self.turns);
        let key = self.keys.entry(id).or_insert_with(|| Key {
            tasks: match &turns.aged {
                Some(aged) => Box::new(aged.all_of_key(id)),
                None => Box::new(roster.all_of_key(name)),
            },
            holder: 0,
        });
        let holders = turns.keys[id].holders.as_ref().filter(|_| turns.rules.key_hold);
        while let Some((seq, slot)) = holders.and_then(|holders| holders.after(key.holder)) {
            let is_taken = self.taken.contains(&slot);
            if !is_taken && roster.entrant(slot).is_selectable() {
                return Some(slot);
            }
            if !is_taken && self.freed_key != Some(id) {
                return None;
            }
            key.holder = seq;
        }
        key.tasks.find(|slot| !self.taken.contains(slot))
    }

    /// Forgets a pair that has no tasks.
    fn forget(&mut self, share: Id, number: i64) {
        let share = self.shares.entry(share).or_default();
        share.pairs.remove(&number);
        // It was the best one.
        share.gone = share.gone.max(Some(number));
        let level = self.level(number);
        level.pairs -= 1;
        if level.pairs == 0 {
            level.reached = Wide::ZERO;
        }
    }

    /// Gives a share the turn that is due to it.
    fn line_up(&mut self, id: Id) {
        let turn = if self.is_shut(id) { None } else { self.turn(id) };
        let share = self.shares.entry(id).or_default();
        if let Some(former) = std::mem::replace(&mut share.turn, turn) {
            self.changed.remove(&former);
        }
        self.changed.extend(turn);
    }

    fn is_shut(&self, id: Id) -> bool {
        let Turns { rules, shares, common, .. } = self.turns;
        let is_held = rules.is_by_key && self.freed_share != Some(id);
        is_held
            && match shares.find_at(id) {
                Some(share) => share.is_shut(rules, &common.shares),
                None => {
                    is_shut(&common.shares) && !self.shares.get(&id).is_some_and(|it| it.has_rate)
                }
            }
    }

    fn turn(&self, id: Id) -> Option<Turn> {
        let changed = self.shares.get(&id);
        let own = changed.and_then(|share| share.pairs.keys().next()).copied();
        let known = self.unchanged(id, changed.and_then(|share| share.gone));
        let number = own.into_iter().chain(known.map(|pair| pair.number)).min()?;
        let Aged { rank, seq, slot } = self.first(id, number)?;
        let Rules { is_fair, ages, .. } = self.turns.rules;
        if !is_fair {
            let at = if ages { Wide::of_signed(rank) } else { Wide::ZERO };
            return Some(Turn { number, at, tie: seq, share: id });
        }
        let pair = changed.and_then(|share| share.pairs.get(&number));
        let account = pair.map(|pair| pair.account).or_else(|| known.map(|pair| pair.account))?;
        let at = account.turn(self.roster.entrant(slot).cost);
        let tie = if account.served == 0 { seq } else { SERVED | account.served };
        Some(Turn { number, at, tie, share: id })
    }

    /// The first task of a share at a number.
    fn first(&self, id: Id, number: i64) -> Option<Aged> {
        let changed = self.shares.get(&id).and_then(|share| share.pairs.get(&number));
        let taken = changed.and_then(|pair| pair.taken);
        let known = if changed.is_none_or(|pair| pair.is_known) {
            self.turns.next_of(id, number, taken, self.roster)
        } else {
            None
        };
        let added = changed.and_then(|pair| pair.added.first()).copied();
        known.into_iter().chain(added).min()
    }

    /// The first pair beyond a number that a share has had before.
    fn unchanged(&self, id: Id, beyond: Option<i64>) -> Option<&'t Known> {
        self.turns.shares.find_at(id)?.pairs.after(beyond)
    }

    /// A pair that changes. It comes into being if it is not there.
    fn pair(&mut self, id: Id, number: i64) -> &mut Pair {
        let changed = self.shares.entry(id).or_default();
        let (is_there, gone) = (changed.pairs.contains_key(&number), changed.gone);
        if !is_there {
            let known = self.turns.shares.find_at(id).and_then(|share| share.pairs.find(number));
            let known = known.filter(|_| gone.is_none_or(|gone| number > gone));
            let (account, is_known) = if let Some(pair) = known {
                (pair.account, true)
            } else {
                let weight = self.weight(id);
                let level = self.level(number);
                level.pairs += 1;
                (Account::new(level.reached, weight), false)
            };
            let pair = Pair { account, is_known, taken: None, added: BTreeSet::new() };
            self.shares.entry(id).or_default().pairs.insert(number, pair);
        }
        match self.shares.get_mut(&id).and_then(|share| share.pairs.get_mut(&number)) {
            Some(pair) => pair,
            None => unreachable!("the pair has just come into being"),
        }
    }

    fn level(&mut self, number: i64) -> &mut Level {
        let known = self.turns.levels.find(number);
        self.levels.entry(number).or_insert_with(|| {
            known.map_or(Level { reached: Wide::ZERO, pairs: 0 }, |level| Level {
                reached: level.reached,
                pairs: level.pairs,
            })
        })
    }

    fn weight(&self, id: Id) -> u16 {
        match self.turns.shares.find_at(id) {
            Some(share) => share.weight(),
            None => self.shares.get(&id).map_or(1, |share| share.weight),
        }
    }

    /// Returns the share of this name. One that has no task yet that may go is made up.
    fn share_of(&mut self, name: Option<&'t Bytes>) -> Id {
        let Some(name) = name else { return self.turns.nameless };
        let known = self.turns.shares.find(name, self.roster.hash(name));
        if let Some(id) = known.or_else(|| self.fresh.get(name).copied()) {
            return id;
        }
        let id = Id::last_but(self.fresh.len());
        self.fresh.insert(name, id);
        let OwnRules { weight, rate, .. } = self.roster.own_rules(name).unwrap_or_default();
        let has_rate = rate != Own::Default;
        self.shares.insert(id, Share { weight, has_rate, ..Share::default() });
        id
    }
}
