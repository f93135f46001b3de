//! What turns cost in memory and time.
//!
//! `PINPRIQ_TURNS_SHARES` says with how many shares, and then the figures are printed.

use std::cell::RefCell;
use std::num::NonZeroU32;

use super::super::{Candidate, Entrant, Key, Own, OwnRules, Roster, Rules, Share, Turns};
use super::world::slot_of;
use crate::memory::ranked::{Rank, Ranked};
use crate::memory::slots::{KeyHash, Slot};
use crate::memory::tasks::Tasks;
use pinpriq_proto::command::{End, Order, Selection};
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::Timestamp;

/// Tasks of some shares, each share in turn.
struct Many {
    names: Vec<Bytes>,
    hashes: Tasks,
    as_key: bool,
    /// Their main order.
    ranked: RefCell<Ranked>,
}

const NOW: Timestamp = Timestamp::ZERO;

impl Many {
    fn new(shares: usize, as_key: bool) -> Self {
        let names = (0..shares).map(|at| Bytes::from(format!("customer-{at}").into_bytes()));
        Self { names: names.collect(), hashes: Tasks::new(7), as_key, ranked: RefCell::default() }
    }

    fn seq(slot: Slot) -> u64 {
        super::world::index(slot) as u64 + 1
    }
}

impl Roster for Many {
    fn entrant(&self, slot: Slot) -> Entrant<'_> {
        let seq = Self::seq(slot);
        let name = Some(&self.names[super::world::index(slot) % self.names.len()]);
        let (key, share) = if self.as_key { (name, None) } else { (None, name) };
        let (kind, cost) = (StateKind::Ready, NonZeroU32::MIN);
        let number = Some(0);
        let rank = 0;
        Entrant { seq, number, rank, kind, key, share, cost, is_held: false, is_narrow: true }
    }

    fn seq(&self, slot: Slot) -> u64 {
        Self::seq(slot)
    }

    fn candidate(&self, slot: Slot) -> Option<Candidate<'_>> {
        self.entrant(slot).candidate()
    }

    fn first(&self) -> Option<Slot> {
        self.ranked.borrow().first(End::Min, Order::Oldest).map(|(_, slot)| slot)
    }

    fn after(&self, place: Rank) -> Option<(Rank, Slot)> {
        self.ranked.borrow().next(place)
    }

    fn first_of_key(&self, key: &[u8]) -> Option<Slot> {
        let text = std::str::from_utf8(key).ok()?;
        text.strip_prefix("customer-")?.parse().ok().map(slot_of)
    }

    fn all_of_key<'r>(&'r self, key: &'r Bytes) -> impl Iterator<Item = Slot> + 'r {
        self.first_of_key(key).into_iter()
    }

    fn own_rules(&self, _: &[u8]) -> Option<OwnRules> {
        None
    }

    fn hash(&self, name: &[u8]) -> KeyHash {
        self.hashes.hash_key(name)
    }
}

fn ranked(tasks: usize) -> Ranked {
    (0..tasks).map(|at| ((0, Many::seq(slot_of(at))), slot_of(at))).collect()
}

fn fair() -> Rules {
    Rules { is_fair: true, ..Rules::default() }
}

/// The memory of this process in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// How long this thread has run, in nanoseconds.
fn ran_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or(0)
}

#[test]
fn what_there_is_a_million_times_is_small() {
    assert!(size_of::<Share>() <= 120, "a share with a pair takes {} bytes", size_of::<Share>());
    assert!(size_of::<Key>() <= 32, "a key takes {} bytes", size_of::<Key>());
    assert_eq!(OwnRules::default().limit, Own::Default);
}

#[test]
fn shares_and_keys_are_measured() {
    let given = std::env::var("PINPRIQ_TURNS_SHARES").ok();
    let shares = given.as_ref().and_then(|given| given.parse().ok()).unwrap_or(1_000);
    let mut lines = vec![
        measure_bytes(shares, 1, false),
        measure_bytes(shares, 10, false),
        measure_bytes(shares, 1, true),
    ];
    for (shares, each) in [(1, 100), (1, 100_000), (shares, 1), (shares, 10)] {
        lines.push(measure_time(shares, each, false));
        lines.push(measure_time(shares, each, true));
    }
    if given.is_some() {
        say(&lines);
    }
}

fn say(lines: &[String]) {
    for line in lines {
        eprintln!("{line}");
    }
}

fn measure_bytes(shares: usize, each: usize, by_key: bool) -> String {
    let many = Many::new(shares, by_key);
    let before = resident();
    let rules =
        if by_key { Rules { is_by_key: true, key_limit: Some(1), ..fair() } } else { fair() };
    *many.ranked.borrow_mut() = ranked(shares * each);
    let slots = (0..shares * each).map(slot_of);
    let turns = Turns::of(rules, None, slots, &many, NOW);
    let grown = resident().saturating_sub(before);
    let of_tasks = if by_key { 0 } else { 8 * shares * each } as u64;
    let bytes = grown.saturating_sub(of_tasks) / shares as u64;
    assert!(turns.peek(Selection::DEFAULT, &many).is_some());
    // Its memory is not to be used for what is measured next.
    std::mem::forget(turns);
    format!("{shares} shares of {each} tasks, by key {by_key}: {bytes} bytes each")
}

/// Takes from the front and puts at the end, with turns or in plain order.
fn measure_time(shares: usize, each: usize, with_turns: bool) -> String {
    let many = Many::new(shares, false);
    let tasks = shares * each;
    *many.ranked.borrow_mut() = ranked(tasks);
    let mut turns =
        with_turns.then(|| Turns::of(fair(), None, (0..tasks).map(slot_of), &many, NOW));
    let count = tasks.min(1_000_000);
    let started = ran_ns();
    for put in tasks..tasks + count {
        let first = match &mut turns {
            Some(turns) => turns.first(Selection::DEFAULT, &many, NOW),
            None => many.first(),
        };
        let Some(slot) = first else { break };
        if let Some(turns) = &mut turns {
            turns.charge(slot, &many, NOW);
            turns.remove(slot, &many, NOW);
        }
        many.ranked.borrow_mut().remove((0, Many::seq(slot)));
        if let Some(turns) = &mut turns {
            turns.conclude(&many);
        }
        many.ranked.borrow_mut().insert((0, Many::seq(slot_of(put))), slot_of(put));
        if let Some(turns) = &mut turns {
            turns.insert(slot_of(put), &many, NOW);
            turns.conclude(&many);
        }
    }
    let each_ns = ran_ns().saturating_sub(started) / count as u64;
    let how = if with_turns { "with turns" } else { "in plain order" };
    format!("{shares} shares of {each} tasks {how}: {each_ns} ns for a take and a put")
}
