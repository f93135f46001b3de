//! Compares turns with a plain model of the rules, in random steps, and measures them.

mod measures;
mod model;
mod world;

use std::num::NonZeroU32;

use self::model::Model;
use self::world::{Fake, NAMES, World};
use super::why::HeldBack;
use super::{Own, OwnRules, Roster, Rules, Turns};
use crate::memory::slots::Slot;
use pinpriq_proto::command::Selection;
use pinpriq_proto::settings::Rate;
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::Dice;

/// The most tasks at once.
const TASKS_MAX: usize = 28;

/// After so many steps everything begins anew.
const STEPS_PER_ROUND: u64 = 1_000;

/// `PINPRIQ_TURNS_STEPS` says how many steps, and `PINPRIQ_TURNS_SEED` where they begin.
#[test]
fn turns_agree_with_the_model_in_random_steps() {
    let given = |name: &str| std::env::var(name).ok()?.parse().ok();
    let steps: u64 = given("PINPRIQ_TURNS_STEPS").unwrap_or(100_000);
    let first: u64 = given("PINPRIQ_TURNS_SEED").unwrap_or(1);
    for seed in first..first + steps.div_ceil(STEPS_PER_ROUND) {
        let mut round = Round::new(seed);
        for step in 0..STEPS_PER_ROUND {
            let what = round.step();
            round.compare(&format!("seed {seed}, step {step}, {what}"));
        }
    }
}

/// One queue, its turns and their model.
struct Round {
    dice: Dice,
    now: Timestamp,
    world: World,
    turns: Turns,
    model: Model,
    /// How many names are in use besides the empty one.
    names: usize,
}

impl Round {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let names = dice.pick(&[0, 1, 1, 2, NAMES - 1, NAMES - 1]);
        let mut world = World::default();
        let rules = some_rules(&mut dice);
        for name in 0..NAMES {
            world.own[name] = some_own_rules(&mut dice, &rules);
        }
        world.ages = rules.ages;
        let now = Timestamp::from_ms(1_000);
        let turns = Turns::of(rules.clone(), None, std::iter::empty(), &world, now);
        let model = Model::new(rules, now);
        Self { dice, now, world, turns, model, names }
    }

    /// Makes one step. Returns what it was.
    fn step(&mut self) -> &'static str {
        self.model.settle(&self.world, self.now);
        let what = match self.dice.below(100) {
            0..=24 => self.put(),
            25..=52 => self.take_next(),
            53..=54 => self.take_any(),
            55..=72 => self.end_taken(),
            73..=78 => self.change_any(),
            79..=82 => self.remove_any(),
            83..=92 => self.pass_time(),
            93 if self.dice.chance(50) => self.foresee(),
            93 => self.change_own_rules(),
            94 => self.change_numbers(),
            95 if self.dice.chance(20) => self.change_kind(),
            96 if self.dice.chance(20) => self.forget_fullest(),
            96 if self.dice.chance(20) => self.take_over(),
            _ => self.transact(),
        };
        self.model.settle(&self.world, self.now);
        what
    }

    fn put(&mut self) -> &'static str {
        if self.world.len() >= TASKS_MAX {
            return "nothing";
        }
        self.enter();
        "put"
    }

    fn enter(&mut self) {
        let (dice, names) = (&mut self.dice, self.names);
        let kind = if dice.chance(85) { StateKind::Ready } else { StateKind::Waiting };
        let name = |dice: &mut Dice| (names > 0 && dice.chance(60)).then(|| 1 + dice.index(names));
        let fake = Fake {
            seq: 0,
            number: (!dice.once_in(20)).then(|| some_number(dice)),
            rank: some_rank(dice),
            kind,
            key: name(dice),
            share: name(dice),
            cost: some_cost(dice),
            is_held: false,
            is_narrow: dice.chance(70),
        };
        let slot = self.world.add(fake);
        self.join(slot);
    }

    fn take_next(&mut self) -> &'static str {
        let is_narrow = self.dice.once_in(10);
        let Some(slot) = self.turns.first(select(is_narrow), &self.world, self.now) else {
            return "nothing";
        };
        assert_eq!(self.model.first(is_narrow, &self.world), Some(slot), "the next task");
        let pops = self.dice.once_in(10);
        self.take(slot, pops);
        if pops { "pop" } else { "take" }
    }

    fn take_any(&mut self) -> &'static str {
        // Even such as could not be handed out.
        let kinds = [StateKind::Ready, StateKind::Ready, StateKind::Ready, StateKind::Waiting];
        let kind = self.dice.pick(&kinds);
        let Some(slot) = self.world.any(&mut self.dice, |fake| fake.kind == kind) else {
            return "nothing";
        };
        self.take(slot, false);
        "take by id"
    }

    fn take(&mut self, slot: Slot, pops: bool) {
        self.charge(slot);
        self.model.charge(slot, &self.world);
        if pops {
            self.leave(slot);
        } else {
            self.change(slot, |fake| fake.kind = StateKind::Taken);
        }
    }

    fn end_taken(&mut self) -> &'static str {
        let taken = |fake: &Fake| fake.kind == StateKind::Taken;
        let Some(slot) = self.world.any(&mut self.dice, taken) else { return "nothing" };
        match self.dice.below(10) {
            0..=4 => {
                self.leave(slot);
                "ack"
            }
            5 => {
                self.change(slot, |fake| fake.kind = StateKind::Ready);
                self.model.settle(&self.world, self.now);
                let charge = self.world.entrant(slot).charge();
                self.turns.give_back(&charge, &self.world, self.now);
                self.model.give_back(slot, &self.world, self.now);
                "give back"
            }
            6 => {
                let cost = some_cost(&mut self.dice);
                self.turns.correct(slot, cost, &self.world, self.now);
                self.model.correct(slot, cost, &self.world);
                self.model.settle(&self.world, self.now);
                self.leave(slot);
                "ack with another cost"
            }
            _ => {
                let is_held = self.dice.chance(70);
                let waits = self.dice.chance(50);
                self.change(slot, |fake| {
                    fake.kind = if waits { StateKind::Waiting } else { StateKind::Ready };
                    fake.is_held |= is_held;
                });
                "fail"
            }
        }
    }

    fn change_any(&mut self) -> &'static str {
        let Some(slot) = self.world.any(&mut self.dice, |_| true) else { return "nothing" };
        self.change_somehow(slot);
        "change"
    }

    fn change_somehow(&mut self, slot: Slot) {
        let (number, cost) = (some_number(&mut self.dice), some_cost(&mut self.dice));
        let (seq, rank) = (self.world.next_seq(), some_rank(&mut self.dice));
        match self.dice.below(8) {
            7 => self.change(slot, |fake| fake.rank = rank),
            0 => self.change(slot, |fake| fake.number = Some(number)),
            1 => self.change(slot, |fake| fake.number = None),
            2 => self.change(slot, |fake| fake.cost = cost),
            3 => self.change(slot, |fake| fake.seq = seq),
            4 => self.change(slot, |fake| fake.is_held = false),
            5 => self.change(slot, |fake| fake.kind = StateKind::Buried),
            _ => self.change(slot, |fake| {
                if fake.kind != StateKind::Taken {
                    fake.kind = StateKind::Ready;
                }
            }),
        }
    }

    fn remove_any(&mut self) -> &'static str {
        let Some(slot) = self.world.any(&mut self.dice, |_| true) else { return "nothing" };
        self.leave(slot);
        "kill"
    }

    fn pass_time(&mut self) -> &'static str {
        let most = if self.dice.once_in(10) { 5_000 } else { 200 };
        self.now = self.now.after(Span::from_ms(self.dice.below(most)));
        // The next look notices what has opened.
        self.turns.first(select(false), &self.world, self.now);
        "time"
    }

    fn change_own_rules(&mut self) -> &'static str {
        let name = self.dice.index(NAMES);
        self.world.own[name] = some_own_rules(&mut self.dice, &self.model.rules);
        self.turns.note_own_rules(&self.world.names[name], &self.world, self.now);
        self.model.note_own_rules(&self.world);
        "QUEUE SHARE"
    }

    fn change_numbers(&mut self) -> &'static str {
        let rules = some_rules(&mut self.dice);
        let Rules { is_fair, ages, is_by_key, .. } = self.model.rules;
        let rules = Rules { is_fair, ages, is_by_key, ..rules };
        let taken = self.world.slots(|fake| fake.kind == StateKind::Taken);
        self.turns.set_rules(rules.clone(), taken.into_iter(), &self.world, self.now);
        self.model.set_rules(rules, &self.world);
        "QUEUE SET"
    }

    fn change_kind(&mut self) -> &'static str {
        let rules = some_rules(&mut self.dice);
        for own in &mut self.world.own {
            *own = own.filter(|_| rules.is_by_key || !has_limits(own.as_ref()));
        }
        self.world.ages = rules.ages;
        let slots = self.world.slots(|_| true).into_iter();
        self.turns = Turns::of(rules.clone(), Some(&self.turns), slots, &self.world, self.now);
        self.model.begin_anew(rules, &self.world);
        "another RANKING"
    }

    fn take_over(&mut self) -> &'static str {
        let own = self.world.names.iter().zip(&self.world.own);
        let own = own.filter_map(|(name, own)| Some((name.clone(), (*own)?))).collect();
        self.turns.begin_empty(Some(&own), &self.world, self.now);
        self.model.begin_empty(&self.world);
        "a take-over"
    }

    fn forget_fullest(&mut self) -> &'static str {
        if let Some((_, whose)) = self.turns.openings.fullest() {
            let is_key = matches!(whose, super::Whose::Key(_));
            let name = match whose {
                super::Whose::Key(id) => self.turns.keys.name(id),
                super::Whose::Share(id) => self.turns.shares.name(id),
                other => unreachable!("{other:?} is that of nobody alone"),
            };
            let name = self.world.names.iter().position(|other| **other == *name);
            self.model.forget_bucket(is_key, name.expect("it has one of the names"));
            self.turns.forget_fullest(&self.world);
        }
        "a bucket is forgotten"
    }

    /// Some steps that are undone, or not.
    fn transact(&mut self) -> &'static str {
        self.model.settle(&self.world, self.now);
        let before = (self.world.clone(), self.model.clone());
        self.turns.begin_notes(&self.world, self.now);
        for _ in 0..=self.dice.below(6) {
            self.model.settle(&self.world, self.now);
            match self.dice.below(4) {
                0 if self.world.len() < TASKS_MAX => self.enter(),
                1 => {
                    let taken = |fake: &Fake| fake.kind == StateKind::Taken;
                    if let Some(slot) = self.world.any(&mut self.dice, taken) {
                        let cost = some_cost(&mut self.dice);
                        self.turns.correct(slot, cost, &self.world, self.now);
                        self.model.correct(slot, cost, &self.world);
                        self.model.settle(&self.world, self.now);
                        self.leave(slot);
                    }
                }
                2 => {
                    self.change_any();
                }
                _ => {
                    self.remove_any();
                }
            }
        }
        self.model.settle(&self.world, self.now);
        if self.dice.chance(30) {
            self.turns.end_notes();
            return "a transaction";
        }
        let (world, model) = before;
        for slot in self.world.differences(&world) {
            if self.world.at(slot).is_some() {
                self.depart(slot);
                self.world.tasks[world::index(slot)] = None;
                self.conclude();
            }
        }
        for slot in self.world.differences(&world) {
            self.world.tasks[world::index(slot)] = world.tasks[world::index(slot)];
            self.join(slot);
        }
        self.turns.undo(&self.world, self.now);
        self.model = model;
        "an undone transaction"
    }

    /// Compares the whole forecast of a fair queue with what the model does next.
    fn foresee(&mut self) -> &'static str {
        if !self.model.rules.are_plain() {
            return "nothing";
        }
        let (mut world, mut model) = (self.world.clone(), self.model.clone());
        for slot in self.turns.forecast(None, &self.world, &|_| false) {
            assert_eq!(model.first(false, &world), Some(slot), "the next one of a forecast");
            model.charge(slot, &world);
            world.tasks[world::index(slot)] = None;
            model.settle(&world, self.now);
        }
        assert_eq!(model.first(false, &world), None, "a forecast ends with the last task");
        "a forecast"
    }

    fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Fake)) {
        self.depart(slot);
        if let Some(fake) = &mut self.world.tasks[world::index(slot)] {
            change(fake);
        }
        self.join(slot);
    }

    fn leave(&mut self, slot: Slot) {
        self.depart(slot);
        self.world.tasks[world::index(slot)] = None;
        self.conclude();
    }

    /// What the engine does when a task has entered its state.
    fn join(&mut self, slot: Slot) {
        let turns = &mut self.turns;
        let kind = self.world.entrant(slot).kind;
        let is_done = turns.end_departure(slot)
            || match kind {
                StateKind::Ready => turns.count_in(self.world.number_and_share(slot)),
                _ => turns.ignore(kind),
            };
        if !is_done {
            turns.insert(slot, &self.world, self.now);
            turns.conclude(&self.world);
        }
    }

    /// What the engine does when a task leaves its state.
    fn depart(&mut self, slot: Slot) {
        let kind = self.world.entrant(slot).kind;
        let is_done = self.turns.has_departed(slot)
            || self.turns.ignore_former(kind)
            || self.turns.count_out(self.world.number_and_share(slot));
        if !is_done {
            self.turns.remove(slot, &self.world, self.now);
        }
    }

    /// What the engine does when a task is handed out.
    fn charge(&mut self, slot: Slot) {
        let (task, cost) = (self.world.number_and_share(slot), self.world.entrant(slot).cost);
        let is_ready = self.world.entrant(slot).kind == StateKind::Ready;
        let is_done = is_ready && self.turns.charge_sole(slot, task, cost)
            || self.turns.charge_next(slot, cost, &self.world);
        if !is_done {
            self.turns.charge(slot, &self.world, self.now);
        }
    }

    /// What the engine does when a task has left.
    fn conclude(&mut self) {
        if !self.turns.end_quietly() {
            self.turns.conclude(&self.world);
        }
    }

    fn compare(&self, what: &str) {
        for is_narrow in [false, true] {
            let (is, should) = (
                self.turns.peek(select(is_narrow), &self.world),
                self.model.first(is_narrow, &self.world),
            );
            assert_eq!(is, should, "{what}: the next task, narrow {is_narrow}");
        }
        let next = self.turns.forecast(None, &self.world, &|_| false).next();
        let is_next = self.turns.peek(select(false), &self.world);
        assert_eq!(next, is_next, "{what}: the first of a forecast");
        self.model.compare(&self.turns, &self.world, what);
        self.compare_reasons(what);
    }
}

impl Round {
    /// What holds a task back is said if and only if something does.
    fn compare_reasons(&self, what: &str) {
        let is_of_share = |held: &HeldBack| {
            matches!(held, HeldBack::ShareLimit { .. } | HeldBack::ShareRate { .. })
        };
        for (_, share) in self.turns.shares.iter() {
            let is_free = share.has_turn || self.turns.alone().is_some();
            for slot in share.pairs.iter().filter_map(|pair| pair.row.first()) {
                let held = self.turns.what_holds(slot, &self.world);
                assert_eq!(held.is_empty(), is_free, "{what}: {held:?}");
                assert!(held.iter().all(is_of_share), "{what}: {held:?}");
            }
        }
        for (id, _) in self.turns.keys.iter().filter(|(_, key)| key.standing.is_none()) {
            let Some(slot) = self.world.first_of_key(self.turns.keys.name(id)) else { continue };
            let held = self.turns.what_holds(slot, &self.world);
            assert!(!held.iter().all(is_of_share), "{what}: {held:?}");
        }
    }
}

fn select(narrow: bool) -> Selection {
    Selection { narrow, ..Selection::DEFAULT }
}

fn some_rank(dice: &mut Dice) -> i128 {
    let rank = i128::from(dice.below(6)) - 3;
    if dice.once_in(3) { rank << 100 } else { rank }
}

fn some_number(dice: &mut Dice) -> i64 {
    if dice.once_in(8) {
        i64::MIN + dice.below(40).cast_signed()
    } else {
        dice.below(3).cast_signed() - 1
    }
}

fn some_cost(dice: &mut Dice) -> NonZeroU32 {
    let most = dice.pick(&[1, 1, 1, 3, 100, 1_000_000]);
    NonZeroU32::MIN.saturating_add(u32::try_from(dice.below(most)).unwrap_or(0))
}

fn some_rate(dice: &mut Dice) -> Rate {
    let count = 1 + u32::try_from(dice.below(5)).unwrap_or(0);
    Rate { count, per: Span::from_ms(1 + dice.below(1_000)) }
}

fn some_rules(dice: &mut Dice) -> Rules {
    let is_by_key = dice.chance(70);
    let limit = |dice: &mut Dice| (is_by_key && dice.chance(40)).then(|| 1 + dice.below(3));
    let (key_limit, share_limit) = (limit(dice), limit(dice));
    let rate = |dice: &mut Dice| (is_by_key && dice.chance(25)).then(|| some_rate(dice));
    let (key_rate, share_rate) = (rate(dice), rate(dice));
    let key_hold = is_by_key && dice.chance(50);
    let is_fair = dice.chance(70);
    let ages = !is_fair && (!is_by_key || dice.chance(60));
    Rules { is_fair, ages, is_by_key, key_hold, key_limit, key_rate, share_limit, share_rate }
}

fn some_own_rules(dice: &mut Dice, rules: &Rules) -> Option<OwnRules> {
    if dice.chance(50) {
        return None;
    }
    let weight = dice.pick(&[1, 1, 2, 7, 1_000]);
    if !rules.is_by_key {
        return Some(OwnRules { weight, ..OwnRules::default() });
    }
    let limit = match dice.below(4) {
        0 => Own::Is(None),
        1 => Own::Is(Some(1 + dice.below(3))),
        _ => Own::Default,
    };
    let rate = match dice.below(4) {
        0 => Own::Is(None),
        1 => Own::Is(Some(some_rate(dice))),
        _ => Own::Default,
    };
    Some(OwnRules { weight, limit, rate })
}

fn has_limits(own: Option<&OwnRules>) -> bool {
    own.is_some_and(|own| own.limit != Own::Default || own.rate != Own::Default)
}
