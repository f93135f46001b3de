//! Until when an owner may answer: never after another one may have answered for a window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinpriq_proto::time::Span;
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Window, Writer};
use pinpriq_store::{Position, Store, StoreError, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{Caller, sample_task};

const SHARD: u16 = 2;
const OWNER: Writer = Writer(1);
const WINDOW_MS: u64 = 700;
const RENEWED_AFTER_MS: u64 = 200;

/// A clock that is set by hand.
#[derive(Clone, Default)]
struct Steady {
    time: Arc<AtomicU64>,
    /// How much time each look of a store takes.
    tick: Arc<AtomicU64>,
}

impl Steady {
    fn ms(&self) -> u64 {
        self.time.load(Ordering::Relaxed)
    }

    fn pass(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::Relaxed);
    }

    fn look(&self) -> u64 {
        self.pass(self.tick.load(Ordering::Relaxed));
        self.ms()
    }

    fn window(&self) -> Window {
        let clock = self.clone();
        Window { ms: WINDOW_MS, steady: Arc::new(move || clock.look()) }
    }
}

struct Owner {
    caller: Caller<LedgerStore>,
    steady: Steady,
}

impl Owner {
    fn try_start(engine: &FakeEngine, writer: Writer, steady: &Steady) -> Result<Self, StoreError> {
        let options = LedgerOptions { window: Some(steady.window()), ..LedgerOptions::default() };
        let store = LedgerStore::new(Box::new(engine.ledger(SHARD, writer)), options);
        assert!(store.is_suspended(), "nothing was asked yet");
        let caller = Caller::start(Box::new(store))?;
        Ok(Self { caller, steady: steady.clone() })
    }

    /// An owner that has nothing to do, and whose window began just now.
    fn start(engine: &FakeEngine) -> Self {
        let steady = Steady::default();
        steady.pass(1_000);
        let mut owner = Self::try_start(engine, OWNER, &steady).unwrap();
        for _ in 0..10 {
            owner.caller.turn().unwrap();
        }
        assert_eq!(owner.until(), 1_000 + WINDOW_MS);
        owner
    }

    fn until(&self) -> u64 {
        let until = self.caller.store.answers_until().unwrap();
        assert_eq!(self.caller.store.is_suspended(), until <= self.steady.ms());
        until
    }

    /// Lets time pass for both clocks.
    fn pass(&mut self, ms: u64) {
        self.steady.pass(ms);
        self.caller.header.now = self.caller.header.now.after(Span::from_ms(ms));
    }

    fn put(&mut self) -> Result<Position, StoreError> {
        let number = self.caller.header.last_number + 1;
        self.caller.append(&[sample_task(number, "q", 10)], Urgency::Soon)
    }

    fn settle(&mut self) {
        for _ in 0..20 {
            self.caller.turn().unwrap();
        }
        assert_eq!(self.caller.reached, self.caller.last);
    }

    /// In how many milliseconds the store wants to be driven.
    fn driven_in(&self) -> Option<u64> {
        let at = self.caller.store.poll_timeout()?;
        Some(at.since(self.caller.header.now).ms())
    }
}

#[test]
fn it_counts_from_the_sending_of_an_append() {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    owner.pass(100);
    owner.put().unwrap();
    owner.caller.turn().unwrap();
    owner.pass(50);
    assert_eq!(owner.until(), 1_000 + WINDOW_MS, "nothing is answered");
    owner.caller.turn().unwrap();
    assert_eq!(owner.until(), 1_100 + WINDOW_MS);
    owner.pass(WINDOW_MS - 51);
    assert!(!owner.caller.store.is_suspended());
    owner.pass(1);
    assert!(owner.caller.store.is_suspended());
}

#[test]
fn what_is_not_known_counts_for_nothing() {
    let engine = FakeEngine::new(2, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    owner.pass(100);
    owner.put().unwrap();
    engine.set_knobs(FakeKnobs { lost_applied: 100, ..FakeKnobs::PERFECT });
    owner.caller.turn().unwrap();
    engine.set_knobs(FakeKnobs::PERFECT);
    owner.pass(100);
    // It is heard that the append is unknown, and the engine is asked what became of it.
    while owner.caller.reached < owner.caller.last {
        assert_eq!(owner.until(), 1_000 + WINDOW_MS);
        owner.caller.turn().unwrap();
    }
    assert_eq!(owner.until(), 1_200 + WINDOW_MS, "it counts from the question");
}

#[test]
fn an_idle_owner_renews_its_tenure() {
    let engine = FakeEngine::new(3, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    let head = engine.head(SHARD);
    for _ in 0..100 {
        let sent = owner.steady.ms() + RENEWED_AFTER_MS;
        assert_eq!(owner.driven_in(), Some(RENEWED_AFTER_MS));
        owner.pass(RENEWED_AFTER_MS - 1);
        owner.caller.turn().unwrap();
        assert_eq!(engine.in_flight(), 0, "it is too early");
        assert_eq!(owner.driven_in(), Some(1));
        owner.pass(1);
        owner.caller.turn().unwrap();
        assert_eq!(engine.in_flight(), 1, "the engine is asked");
        assert_eq!(owner.driven_in(), None);
        owner.caller.turn().unwrap();
        assert_eq!(owner.until(), sent + WINDOW_MS);
    }
    assert_eq!(engine.head(SHARD), head, "nothing is appended for it");
}

#[test]
fn an_owner_that_appends_renews_nothing() {
    let engine = FakeEngine::new(4, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    for _ in 0..100 {
        owner.pass(RENEWED_AFTER_MS - 1);
        owner.put().unwrap();
        owner.caller.turn().unwrap();
        assert_eq!(engine.in_flight(), 1, "only the append is under way");
        owner.caller.turn().unwrap();
        assert_eq!(owner.until(), owner.steady.ms() + WINDOW_MS);
    }
}

#[test]
fn a_machine_that_slept_is_suspended_until_the_engine_answers() {
    let engine = FakeEngine::new(5, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    // The time line stands still meanwhile.
    owner.steady.pass(60_000);
    assert!(owner.caller.store.is_suspended());
    assert_eq!(owner.driven_in(), Some(0));
    owner.caller.turn().unwrap();
    assert!(owner.caller.store.is_suspended(), "the engine was only asked");
    owner.caller.turn().unwrap();
    assert_eq!(owner.until(), 61_000 + WINDOW_MS);
}

#[test]
fn an_owner_that_was_replaced_learns_it_from_its_renewal() {
    let engine = FakeEngine::new(6, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    let incarnation = owner.caller.header.incarnation;
    let _successor = Owner::try_start(&engine, Writer(2), &owner.steady).unwrap();
    owner.pass(RENEWED_AFTER_MS);
    let until = owner.until();
    let error = (0..10).find_map(|_| owner.caller.turn().err()).unwrap();
    assert!(matches!(error, StoreError::Fenced { incarnation: own } if own == incarnation));
    assert_eq!(owner.until(), until);
}

#[test]
fn an_engine_that_has_lost_the_last_entry_is_noticed_by_a_renewal() {
    let engine = FakeEngine::new(7, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    owner.put().unwrap();
    owner.settle();
    engine.roll_back(SHARD, 1);
    owner.pass(RENEWED_AFTER_MS);
    let error = (0..10).find_map(|_| owner.caller.turn().err()).unwrap();
    assert!(matches!(error, StoreError::RolledBack { .. }), "{error}");
}

#[test]
fn an_owner_that_is_cut_off_is_suspended_and_comes_back() {
    let engine = FakeEngine::new(8, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    owner.pass(RENEWED_AFTER_MS);
    engine.cut(OWNER, true);
    for _ in 0..3 {
        owner.caller.turn().unwrap();
    }
    assert_eq!(owner.driven_in(), Some(100), "it is tried again, and not at once");
    // What is to be appended waits for the answer.
    owner.put().unwrap();
    let mut turns = 0;
    while !owner.caller.store.is_suspended() {
        let soon = owner.driven_in().unwrap_or(1);
        owner.pass(soon);
        owner.caller.turn().unwrap();
        turns += 1;
    }
    assert!((5..50).contains(&turns), "{turns} turns");
    assert_eq!(owner.until(), 1_000 + WINDOW_MS);
    engine.cut(OWNER, false);
    owner.pass(100);
    owner.settle();
    assert!(!owner.caller.store.is_suspended());
}

#[test]
fn an_engine_that_is_silent_for_over_a_second_is_down_until_it_answers() {
    let engine = FakeEngine::new(18, FakeKnobs::PERFECT);
    let mut owner = Owner::start(&engine);
    engine.cut(OWNER, true);
    owner.put().unwrap();
    owner.caller.turn().unwrap();
    let asked = owner.steady.ms();
    // It is asked again and again, which does not put the moment off.
    while owner.steady.ms() < asked + 1_000 {
        assert!(!owner.caller.store.is_down(), "after {} ms", owner.steady.ms() - asked);
        owner.pass(50);
        owner.caller.turn().unwrap();
    }
    owner.pass(1);
    assert!(owner.caller.store.is_down());
    engine.cut(OWNER, false);
    owner.pass(100);
    owner.settle();
    assert!(!owner.caller.store.is_down());
    owner.pass(5_000);
    assert!(!owner.caller.store.is_down(), "nothing is asked, or only just now");
}

#[test]
fn waiting_in_vain_ends() {
    for (tick, calls) in [(0, 18..=25), (100, 2..=9)] {
        let engine = FakeEngine::new(9, FakeKnobs::PERFECT);
        let mut owner = Owner::start(&engine);
        let steady = owner.steady.clone();
        owner.put().unwrap();
        engine.cut(OWNER, true);
        let before = cuts(&engine);
        steady.tick.store(tick, Ordering::Relaxed);
        let error = owner.caller.store.close(owner.caller.header.now).unwrap_err();
        assert!(matches!(error, StoreError::NoAnswer { .. }), "{error}");
        let asked = cuts(&engine) - before;
        assert!(calls.contains(&asked), "asked {asked} times, until {}", steady.ms());
    }
}

/// How many calls were not answered since their writer was cut off.
fn cuts(engine: &FakeEngine) -> u64 {
    let struck = engine.struck();
    struck.iter().find(|(name, _)| name.contains("cut off")).unwrap().1
}

/// Lets owners follow each other, each driven at random, while time passes. Returns how often the
/// one that had the log might answer, and how often one of the past was kept from it.
fn follow(seed: u64, knobs: FakeKnobs) -> (u64, u64) {
    let mut dice = Dice::new(seed);
    let (engine, steady) = (FakeEngine::new(seed, knobs), Steady::default());
    steady.pass(1_000);
    // Each with the moment at which another store was seen to have the log.
    let mut owners: Vec<(Owner, Option<u64>)> = Vec::new();
    let (mut open, mut kept) = (0, 0);
    for step in 0..600 {
        steady.pass(dice.pick(&[0, 0, 1, 10, 40, 150]));
        if owners.is_empty() || dice.once_in(60) {
            let writer = Writer(10 + step);
            owners.extend(Owner::try_start(&engine, writer, &steady).ok().map(|it| (it, None)));
        }
        let tenure = engine.tenure(SHARD);
        let now = steady.ms();
        for (owner, lost_at) in &mut owners {
            let has_it = owner.caller.store.tenure() == tenure;
            if !has_it {
                lost_at.get_or_insert(now);
            }
            if !owner.caller.store.is_suspended() {
                open += u64::from(has_it);
                let end = lost_at.map_or(u64::MAX, |at| at + WINDOW_MS);
                assert!(now < end, "seed {seed}: it answers at {now}, and may until {end}");
            } else if !has_it {
                kept += 1;
            }
        }
        owners.retain_mut(|(owner, _)| {
            owner.caller.header.now = owner.caller.header.now.after(Span::from_ms(40));
            match dice.below(4) {
                0 => true,
                1 => owner.put().is_ok(),
                _ => owner.caller.turn().is_ok(),
            }
        });
    }
    (open, kept)
}

#[test]
fn no_owner_of_the_past_answers_after_its_window() {
    let (mut open, mut kept) = (0, 0);
    for seed in 0..150 {
        let late = FakeKnobs { late: 80, steps_max: 40, ..FakeKnobs::PERFECT };
        let knobs = if seed % 3 == 0 { late } else { FakeKnobs::ROUGH };
        let (own, other) = follow(seed, knobs);
        (open, kept) = (open + own, kept + other);
    }
    assert!(open > 10_000 && kept > 300, "{open} and {kept}");
}
