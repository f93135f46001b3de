//! The rules of turns in the plainest form: each answer is found by going through all tasks.

use std::collections::BTreeMap;

use super::world::{Fake, NAMES, World, index};
use crate::memory::slots::Slot;
use crate::memory::turns::openings::Timed;
use crate::memory::turns::{Own, OwnRules, Rules, Turns};
use pinpriq_proto::settings::Rate;
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::Timestamp;
use std::num::NonZeroU32;

/// What a share has had at a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Had {
    start: u128,
    served: u64,
    weight: u128,
    paid: u128,
}

/// A bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tokens {
    rate: Rate,
    /// In parts of a token, of which it has as many as the rate has milliseconds.
    parts: i128,
}

/// See the start of this file.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) rules: Rules,
    now: Timestamp,
    had: BTreeMap<(usize, i64), Had>,
    reached: BTreeMap<i64, u128>,
    served: u64,
    keys: [Option<Tokens>; NAMES],
    shares: [Option<Tokens>; NAMES],
    /// Those of all keys, and of all shares without a rate of their own, that have none there.
    every_key: Option<Tokens>,
    every_share: Option<Tokens>,
}

impl Tokens {
    fn token(&self) -> i128 {
        self.rate.per.ms().into()
    }

    fn most(&self) -> i128 {
        self.token() * i128::from(self.rate.count)
    }

    fn add(&mut self, parts: i128) {
        self.parts = (self.parts + parts).min(self.most());
    }
}

/// Changes the number of tokens of a bucket. One that is not there is that of all, or full.
fn change(bucket: &mut Option<Tokens>, of_all: Option<Tokens>, rate: Option<Rate>, tokens: i128) {
    let Some(rate) = rate else { return };
    let mut changed = bucket.or(of_all).unwrap_or_else(|| {
        let full = i128::from(rate.per.ms()) * i128::from(rate.count);
        Tokens { rate, parts: full }
    });
    changed.add(tokens * changed.token());
    *bucket = Some(changed);
}

fn change_rate(bucket: &mut Option<Tokens>, rate: Option<Rate>) {
    *bucket = bucket.and_then(|former| {
        let rate = rate?;
        let token = i128::from(rate.per.ms());
        let parts = (former.parts * token).div_euclid(former.token());
        let mut changed = Tokens { rate, parts };
        changed.add(0);
        Some(changed)
    });
}

impl Model {
    pub(super) fn new(rules: Rules, now: Timestamp) -> Self {
        Self {
            rules,
            now,
            had: BTreeMap::new(),
            reached: BTreeMap::new(),
            served: 0,
            keys: [None; NAMES],
            shares: [None; NAMES],
            every_key: None,
            every_share: None,
        }
    }

    /// Lets all buckets begin empty.
    pub(super) fn begin_empty(&mut self, world: &World) {
        if !self.rules.is_by_key {
            return;
        }
        let empty = |rate: Rate| {
            let fallen = 60_000 * i128::from(rate.count);
            Tokens { rate, parts: (i128::from(rate.per.ms()) - fallen).max(0) }
        };
        self.every_key = self.rules.key_rate.map(empty);
        self.every_share = self.rules.share_rate.map(empty);
        for share in 0..NAMES {
            if let Own::Is(Some(rate)) = own(world, share).rate {
                self.shares[share] = Some(empty(rate));
            }
        }
    }

    fn of_key(&self, key: usize) -> Option<Tokens> {
        self.keys[key].or(self.every_key)
    }

    fn of_share(&self, share: usize, world: &World) -> Option<Tokens> {
        self.shares[share].or_else(|| self.common_of(share, world))
    }

    fn common_of(&self, share: usize, world: &World) -> Option<Tokens> {
        self.every_share.filter(|_| own(world, share).rate == Own::Default)
    }

    /// Lets buckets fill, gives turns to those who get one, and forgets those who have none.
    pub(super) fn settle(&mut self, world: &World, now: Timestamp) {
        let passed = i128::from(now.since(self.now).ms());
        self.now = now;
        let every = [&mut self.every_key, &mut self.every_share];
        for bucket in self.keys.iter_mut().chain(&mut self.shares).chain(every) {
            if let Some(tokens) = bucket {
                tokens.add(passed * i128::from(tokens.rate.count));
                if tokens.parts == tokens.most() {
                    *bucket = None;
                }
            }
        }
        let pairs = self.pairs(world);
        for (share, number) in pairs.keys() {
            let start = self.reached.get(number).copied().unwrap_or(0);
            let weight = own(world, *share).weight.into();
            let new = Had { start, served: 0, weight, paid: weight };
            self.had.entry((*share, *number)).or_insert(new);
            self.reached.entry(*number).or_insert(0);
        }
        self.had.retain(|pair, _| pairs.contains_key(pair));
        self.reached.retain(|number, _| pairs.keys().any(|(_, other)| other == number));
    }

    /// The tasks that may go, of each share and number, by seq.
    fn pairs(&self, world: &World) -> BTreeMap<(usize, i64), Vec<(u64, Slot)>> {
        let mut pairs: BTreeMap<(usize, i64), Vec<(u64, Slot)>> = BTreeMap::new();
        for slot in world.slots(|fake| self.may_stand(fake, world)) {
            let Some(fake) = world.at(slot) else { continue };
            let number = world.number(fake).expect("it is selectable");
            pairs.entry((fake.share(), number)).or_default().push((fake.seq, slot));
        }
        for tasks in pairs.values_mut() {
            tasks.sort_unstable_by_key(|(seq, slot)| {
                (world.at(*slot).map(|fake| world.rank(fake)), *seq)
            });
        }
        pairs
    }

    fn may_stand(&self, fake: &Fake, world: &World) -> bool {
        if !fake.is_selectable() || !self.rules.fix_order() {
            return false;
        }
        let Some(key) = fake.key.filter(|_| self.rules.is_by_key) else { return true };
        let same: Vec<&Fake> =
            world.tasks.iter().flatten().filter(|other| other.key == Some(key)).collect();
        let taken = same.iter().filter(|other| other.kind == StateKind::Taken).count() as u64;
        let has_room = self.rules.key_limit.is_none_or(|limit| taken < limit);
        if !has_room || !is_open(self.of_key(key).as_ref()) {
            return false;
        }
        let holds = |other: &&&Fake| {
            let is_there =
                matches!(other.kind, StateKind::Ready | StateKind::Waiting | StateKind::Taken);
            self.rules.key_hold && other.is_held && other.number.is_some() && is_there
        };
        let first = same.iter().filter(holds).min_by_key(|other| other.seq);
        let ready = same.iter().filter(|other| other.is_selectable());
        let first = first.or_else(|| {
            ready.min_by_key(|other| (world.number(other), world.rank(other), other.seq))
        });
        first.is_some_and(|first| **first == *fake)
    }

    fn share_is_open(&self, share: usize, world: &World) -> bool {
        if !self.rules.is_by_key {
            return true;
        }
        let is_taken = |fake: &&Fake| fake.kind == StateKind::Taken && fake.share() == share;
        let taken = world.tasks.iter().flatten().filter(is_taken).count() as u64;
        let limit = match own(world, share).limit {
            Own::Default => self.rules.share_limit,
            Own::Is(limit) => limit,
        };
        limit.is_none_or(|limit| taken < limit) && is_open(self.of_share(share, world).as_ref())
    }

    /// The task that goes next.
    pub(super) fn first(&self, is_narrow: bool, world: &World) -> Option<Slot> {
        let is_wanted =
            |slot: &Slot| !is_narrow || world.at(*slot).is_some_and(|fake| fake.is_narrow);
        if !self.rules.fix_order() {
            let ready = world.slots(Fake::is_selectable).into_iter().filter(is_wanted);
            return ready.min_by_key(|slot| world.at(*slot).map(|fake| (fake.rank, fake.seq)));
        }
        let pairs = self.pairs(world);
        let mut turns = Vec::new();
        for ((share, number), tasks) in &pairs {
            let best = pairs.keys().filter(|(other, _)| other == share).min();
            if best != Some(&(*share, *number)) || !self.share_is_open(*share, world) {
                continue;
            }
            let (seq, slot) = tasks[0];
            let had = self.had[&(*share, *number)];
            let place = if self.rules.is_fair {
                let turn = had.start + price(cost(slot, world), had.weight);
                (*number, turn, had.served, seq)
            } else {
                let rank = world.at(slot).map_or(0, |fake| world.rank(fake));
                (*number, rank.cast_unsigned() ^ (1 << 127), 0, seq)
            };
            turns.push((place, slot));
        }
        turns.sort_unstable();
        turns.into_iter().map(|(_, slot)| slot).find(is_wanted)
    }

    pub(super) fn charge(&mut self, slot: Slot, world: &World) {
        let Some(fake) = world.at(slot) else { return };
        let cost = fake.cost.get();
        if self.rules.is_by_key {
            self.add_tokens(fake, -i128::from(cost), world);
        }
        let Some(number) = fake.number.filter(|_| self.rules.is_fair) else { return };
        let Some(reached) = self.reached.get_mut(&number) else { return };
        let weight = own(world, fake.share()).weight.into();
        let had = self.had.get_mut(&(fake.share(), number));
        let turn = match &had {
            Some(had) => had.start + price(cost, had.weight),
            None => *reached + price(cost, weight),
        };
        *reached = turn.max(*reached);
        self.served += 1;
        if let Some(had) = had {
            *had = Had { start: *reached, served: self.served, weight, paid: had.weight };
        }
    }

    pub(super) fn give_back(&mut self, slot: Slot, world: &World, now: Timestamp) {
        let Some(fake) = world.at(slot) else { return };
        let cost = fake.cost.get();
        self.add_tokens(fake, i128::from(cost), world);
        self.settle(world, now);
        let Some(number) = fake.number else { return };
        if let Some(had) = self.had.get_mut(&(fake.share(), number))
            && self.rules.is_fair
        {
            had.start = had.start.saturating_sub(price(cost, had.paid));
        }
    }

    pub(super) fn correct(&mut self, slot: Slot, cost: NonZeroU32, world: &World) {
        let Some(fake) = world.at(slot) else { return };
        let difference = i128::from(fake.cost.get()) - i128::from(cost.get());
        self.add_tokens(fake, difference, world);
    }

    /// Adds tokens to the buckets of a task, or takes some out.
    fn add_tokens(&mut self, fake: &Fake, tokens: i128, world: &World) {
        if !self.rules.is_by_key {
            return;
        }
        let share = fake.share();
        let (rate, common) = (self.share_rate(share, world), self.common_of(share, world));
        change(&mut self.shares[share], common, rate, tokens);
        if let Some(key) = fake.key {
            change(&mut self.keys[key], self.every_key, self.rules.key_rate, tokens);
        }
    }

    pub(super) fn note_own_rules(&mut self, world: &World) {
        for share in 0..NAMES {
            let rate = self.share_rate(share, world);
            change_rate(&mut self.shares[share], rate);
        }
    }

    pub(super) fn set_rules(&mut self, rules: Rules, world: &World) {
        self.rules = rules;
        self.note_own_rules(world);
        let keys = self.keys.iter_mut().chain([&mut self.every_key]);
        keys.for_each(|bucket| change_rate(bucket, self.rules.key_rate));
        change_rate(&mut self.every_share, self.rules.share_rate);
    }

    pub(super) fn begin_anew(&mut self, rules: Rules, world: &World) {
        self.set_rules(rules, world);
        self.had.clear();
        self.reached.clear();
        self.served = 0;
        if !self.rules.is_by_key {
            (self.keys, self.shares) = ([None; NAMES], [None; NAMES]);
            (self.every_key, self.every_share) = (None, None);
        }
    }

    pub(super) fn forget_bucket(&mut self, is_key: bool, name: usize) {
        let buckets = if is_key { &mut self.keys } else { &mut self.shares };
        buckets[name] = None;
    }

    fn share_rate(&self, share: usize, world: &World) -> Option<Rate> {
        match own(world, share).rate {
            Own::Default => self.rules.share_rate,
            Own::Is(rate) => rate,
        }
    }

    /// Checks that turns know exactly this.
    pub(super) fn compare(&self, turns: &Turns, world: &World, what: &str) {
        let pairs = self.pairs(world);
        let mut found = 0;
        for (id, share) in turns.shares.iter() {
            let name = name_of(turns.shares.name(id), world);
            for pair in share.pairs.iter() {
                let key = (name, pair.number);
                let tasks: Vec<_> = turns.tasks_of(id, pair.number, world).collect();
                assert_eq!(Some(&tasks), pairs.get(&key), "{what}: the tasks of {key:?}");
                let cost = NonZeroU32::MIN;
                let is = (u128::from(pair.account.turn(cost)), pair.account.served);
                let had = self.had[&key];
                let should = (had.start + price(1, had.weight), had.served);
                assert!(!self.rules.is_fair || is == should, "{what}: {key:?} {is:?} {should:?}");
                found += 1;
            }
            let has_turn = !share.pairs.is_empty()
                && self.share_is_open(name, world)
                && turns.alone().is_none();
            assert_eq!(share.has_turn, has_turn, "{what}: the turn of {name}");
            let of_share = |fake: &&Fake| {
                fake.kind == StateKind::Taken && fake.share() == name && self.rules.is_by_key
            };
            let taken = world.tasks.iter().flatten().filter(of_share).count();
            assert_eq!(share.taken as usize, taken, "{what}: the taken tasks of {name}");
            let bucket = share.besides.as_ref().and_then(|besides| besides.bucket.as_deref());
            self.compare_bucket(bucket, self.shares[name], what);
            let is_needed = !share.pairs.is_empty() || taken > 0 || bucket.is_some() || name == 0;
            assert!(is_needed, "{what}: share {name} is needed");
        }
        assert_eq!(found, pairs.len(), "{what}: pairs");
        for (id, key) in turns.keys.iter() {
            let name = name_of(turns.keys.name(id), world);
            let of_key = |fake: &&Fake| fake.key == Some(name);
            let taken = |fake: &&Fake| of_key(fake) && fake.kind == StateKind::Taken;
            let taken = world.tasks.iter().flatten().filter(taken).count();
            assert_eq!(key.taken as usize, taken, "{what}: the taken tasks of key {name}");
            self.compare_bucket(key.bucket.as_deref(), self.keys[name], what);
            let waits = turns.waits_for_common(key)
                && world
                    .tasks
                    .iter()
                    .flatten()
                    .any(|it| it.key == Some(name) && it.is_selectable());
            let is_needed = key.standing.is_some()
                || waits
                || taken > 0
                || key.bucket.is_some()
                || key.holders.is_some();
            assert!(is_needed, "{what}: key {name} is needed");
            assert_eq!(turns.is_paced(key), !is_open(self.of_key(name).as_ref()), "{what}");
        }
        let known = |buckets: &[Option<Tokens>]| buckets.iter().flatten().count();
        assert_eq!(turns.buckets(), known(&self.keys) + known(&self.shares), "{what}: buckets");
        self.compare_bucket(turns.common.keys.as_deref(), self.every_key, what);
        self.compare_bucket(turns.common.shares.as_deref(), self.every_share, what);
        assert_eq!(turns.served, if self.rules.is_fair { self.served } else { 0 }, "{what}");
        let levels = turns.levels.iter().map(|level| (level.number, level.reached.into()));
        let levels: BTreeMap<i64, u128> = levels.collect();
        assert_eq!(levels, self.reached, "{what}: what has been reached");
        let with_turn = turns.shares.iter().filter(|(_, share)| share.has_turn).count();
        assert_eq!(turns.line.iter().count(), with_turn, "{what}: the line");
        assert!(turns.line.iter().is_sorted(), "{what}: the line is in order");
    }

    fn compare_bucket(&self, is: Option<&Timed>, should: Option<Tokens>, what: &str) {
        assert_eq!(is.is_some(), should.is_some(), "{what}: a bucket");
        let opens_at = is.and_then(Timed::opens_at);
        let missing = should.map_or(0, |tokens| (tokens.token() - tokens.parts).max(0));
        assert_eq!(opens_at.is_some(), missing > 0, "{what}: whether a bucket is open");
        if let Some((at, tokens)) = opens_at.zip(should) {
            let wait = missing.unsigned_abs().div_ceil(tokens.rate.count.into());
            assert_eq!(u128::from(at.since(self.now).ms()), wait, "{what}: when a bucket opens");
        }
    }
}

fn is_open(bucket: Option<&Tokens>) -> bool {
    bucket.is_none_or(|tokens| tokens.parts >= tokens.token())
}

fn own(world: &World, share: usize) -> OwnRules {
    world.own[share].unwrap_or_default()
}

fn cost(slot: Slot, world: &World) -> u32 {
    world.tasks[index(slot)].map_or(1, |fake| fake.cost.get())
}

fn price(cost: u32, weight: u128) -> u128 {
    u128::from(cost) * (1 << 20) / weight
}

fn name_of(name: &[u8], world: &World) -> usize {
    world.names.iter().position(|other| **other == *name).expect("it is one of the names")
}
