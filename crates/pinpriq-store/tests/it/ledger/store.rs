//! The store on a fenced log: what was acknowledged is in the log, whatever the engine does, and
//! also when another store seizes the log.

use pinpriq_proto::change::Change;
use pinpriq_proto::time::Span;
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Seq, Term, Writer};
use pinpriq_store::{Fold, Position, Store, StoreError, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{self, Caller, sample_queue, sample_task};

const SHARD: u16 = 3;
const OPTIONS: LedgerOptions = LedgerOptions {
    at_least: Term(0),
    slack_bytes: 20_000,
    numbers_after: 0,
    window: None,
    watermark: None,
};

fn store(engine: &FakeEngine, writer: u128) -> Box<dyn Store> {
    let ledger = engine.ledger(SHARD, Writer(writer));
    Box::new(LedgerStore::new(Box::new(ledger), OPTIONS))
}

fn log_bytes(engine: &FakeEngine) -> usize {
    engine.log(SHARD).iter().map(|(_, bytes)| bytes.len()).sum()
}

#[test]
fn it_does_what_every_store_does() {
    for knobs in [FakeKnobs::PERFECT, FakeKnobs { late: 50, read_short: 30, ..FakeKnobs::PERFECT }]
    {
        for target_bytes in [1, 3_000, 64 << 10] {
            let engine = FakeEngine::new(1, FakeKnobs { target_bytes, ..knobs });
            let mut writer = 100;
            let mut reopen = || {
                writer += 1;
                store(&engine, writer)
            };
            stores::run(&mut || store(&engine, 1), Some(&mut reopen));
        }
    }
}

#[test]
fn a_batch_larger_than_an_entry_is_there_as_a_whole() {
    let engine = FakeEngine::new(2, FakeKnobs::PERFECT);
    let mut caller = Caller::start(store(&engine, 1)).unwrap();
    let large = sample_task(1, "q", 3 << 20);
    caller.append(&[large, sample_task(2, "q", 5)], Urgency::Soon).unwrap();
    caller.append(&[sample_task(3, "q", 5)], Urgency::Soon).unwrap();
    caller.settle().unwrap();
    assert_eq!(engine.head(SHARD), Seq(1 + 4 + 1), "a run of four entries between two others");
    let before = caller.fold.clone();
    let caller = Caller::start(store(&engine, 2)).unwrap();
    assert_eq!(caller.fold, before);
}

#[test]
fn a_batch_that_is_too_large_is_refused() {
    let engine = FakeEngine::new(2, FakeKnobs::PERFECT);
    let mut caller = Caller::start(store(&engine, 1)).unwrap();
    let error = caller.append(&[sample_task(1, "q", 65 << 20)], Urgency::Soon).unwrap_err();
    assert!(matches!(error, StoreError::BatchTooLarge { .. }), "{error}");
    let error = caller.turn().unwrap_err();
    assert!(matches!(error, StoreError::Poisoned { .. }), "{error}");
    let caller = Caller::start(store(&engine, 2)).unwrap();
    assert_eq!(caller.fold, Fold::new(), "nothing of it is in the log");
}

#[test]
fn what_gathers_while_an_entry_is_under_way_goes_into_one() {
    let engine = FakeEngine::new(3, FakeKnobs::PERFECT);
    let mut caller = Caller::start(store(&engine, 1)).unwrap();
    let before = engine.head(SHARD);
    for number in 1..=100 {
        caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
    }
    caller.settle().unwrap();
    assert_eq!(engine.head(SHARD).0 - before.0, 1, "all of them are in one entry");
    assert_eq!(caller.store.figures().batches, 101);
}

#[test]
fn one_ancient_task_pins_nothing() {
    let engine = FakeEngine::new(4, FakeKnobs::PERFECT);
    let mut caller = Caller::start(store(&engine, 1)).unwrap();
    caller.append(&[sample_task(1, "q", 500)], Urgency::Soon).unwrap();
    for number in 2..2_000 {
        let gone = (number > 2).then(|| Change::Gone(number - 1));
        let changes: Vec<Change> =
            gone.into_iter().chain([sample_task(number, "q", 300)]).collect();
        caller.append(&changes, Urgency::Soon).unwrap();
        caller.settle().unwrap();
    }
    let bytes = log_bytes(&engine);
    assert!(bytes < 60_000, "{bytes} bytes are kept for two small tasks");
    let caller = Caller::start(store(&engine, 2)).unwrap();
    assert_eq!(caller.fold.tasks.keys().copied().collect::<Vec<u64>>(), [1, 1_999]);
}

#[test]
fn who_was_replaced_is_told_so_and_changes_nothing() {
    let engine = FakeEngine::new(5, FakeKnobs::PERFECT);
    let mut former = Caller::start(store(&engine, 1)).unwrap();
    former.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
    former.settle().unwrap();
    let mut owner = Caller::start(store(&engine, 2)).unwrap();
    assert_eq!(owner.header.incarnation, former.header.incarnation + 1);
    former.append(&[sample_task(2, "q", 10)], Urgency::Soon).unwrap();
    let error = former.settle().unwrap_err();
    let incarnation = former.header.incarnation;
    assert!(matches!(error, StoreError::Fenced { incarnation: own } if own == incarnation));
    assert!(former.turn().is_err(), "it stays so");
    owner.append(&[sample_task(3, "q", 10)], Urgency::Soon).unwrap();
    owner.settle().unwrap();
    let caller = Caller::start(store(&engine, 3)).unwrap();
    assert_eq!(caller.fold.tasks.keys().copied().collect::<Vec<u64>>(), [1, 3]);
}

#[test]
fn a_term_begins_where_it_should() {
    let engine = FakeEngine::new(6, FakeKnobs::PERFECT);
    let options = LedgerOptions { at_least: Term(28_000_000), numbers_after: 1 << 46, ..OPTIONS };
    let open = |writer| {
        let ledger = engine.ledger(SHARD, Writer(writer));
        Caller::start(Box::new(LedgerStore::new(Box::new(ledger), options.clone()))).unwrap()
    };
    let caller = open(1);
    assert_eq!(caller.header.incarnation, 28_000_000);
    assert_eq!(caller.header.last_number, 1 << 46);
    let tenure = engine.tenure(SHARD).unwrap();
    assert_eq!(caller.store.tenure(), Some(tenure));
    assert_eq!(open(2).header.incarnation, 28_000_001);
}

#[test]
fn an_engine_without_room_fails_the_store_and_tells_before() {
    let knobs = FakeKnobs { bytes_max: 100_000, ..FakeKnobs::PERFECT };
    let engine = FakeEngine::new(7, knobs);
    let mut caller = Caller::start(store(&engine, 1)).unwrap();
    let mut rooms = Vec::new();
    for number in 1..1_000 {
        caller.append(&[sample_task(number, "q", 1_000)], Urgency::Soon).unwrap();
        let settled = caller.settle();
        rooms.push(caller.store.room(&Default::default));
        rooms.dedup();
        if let Err(error) = settled {
            assert!(matches!(error, StoreError::EngineFull), "{error}");
            break;
        }
    }
    assert!(rooms.len() >= 4 && rooms.is_sorted(), "it comes in steps: {rooms:?}");
}

/// A tenure: the states that its batches lead to.
struct Reign {
    caller: Caller,
    /// The state after the batch at each position from 1 on.
    states: Vec<Fold>,
}

impl Reign {
    fn note(&mut self) {
        while (self.states.len() as u64) < self.caller.last.0 {
            self.states.push(self.caller.fold.without_places());
        }
    }

    fn change(&mut self, dice: &mut Dice) -> Result<(), StoreError> {
        let mut changes = Vec::new();
        for _ in 0..dice.below(4) {
            let known: Vec<u64> = self.caller.fold.tasks.keys().copied().collect();
            let next = self.caller.header.last_number + 1 + changes.len() as u64;
            let bytes = match dice.below(60) {
                0 => 1 << 20,
                1 => 3 << 20,
                _ => usize::try_from(dice.below(3_000)).unwrap(),
            };
            let is_crowded = known.len() > 20;
            changes.push(match dice.below(10) {
                0 => sample_queue(dice.pick(&["a", "b", "c"]), dice.once_in(2)),
                1..=5 if !is_crowded => sample_task(next, "q", bytes),
                _ if !known.is_empty() => Change::Gone(dice.pick(&known)),
                _ => sample_task(next, "r", 10),
            });
        }
        let urgency = dice.pick(&[Urgency::Soon, Urgency::Soon, Urgency::Lazy]);
        self.caller.header.now = self.caller.header.now.after(Span::from_ms(dice.below(200)));
        self.caller.append(&changes, urgency)?;
        self.note();
        Ok(())
    }

    fn turn(&mut self) -> Result<(), StoreError> {
        let turned = self.caller.turn();
        self.note();
        turned
    }
}

/// Lets one owner after the other change the state, and returns how many tenures there were.
fn reign(seed: u64, knobs: FakeKnobs) -> u64 {
    let mut dice = Dice::new(seed);
    let target_bytes = dice.pick(&[1, 2_000, 64 << 10]);
    let engine = FakeEngine::new(seed, FakeKnobs { target_bytes, ..knobs });
    let (mut former, mut tenures): (Option<Reign>, u64) = (None, 0);
    for writer in 1..16 {
        let started = Caller::start(store(&engine, writer));
        let caller = match started {
            Ok(caller) => caller,
            Err(error) => {
                assert!(is_expected(&error), "seed {seed}: {error}");
                continue;
            }
        };
        tenures += 1;
        let found = caller.fold.without_places();
        let mut own = Reign { caller, states: vec![found.clone()] };
        let (mut known, mut at) = (former.take(), 0);
        if let Some(former) = &known {
            let reached = former.caller.reached.0.max(1);
            let states =
                former.states.iter().enumerate().skip(usize::try_from(reached).unwrap() - 1);
            let same = states.filter(|(_, state)| **state == found).map(|(at, _)| at + 1).max();
            at = same.unwrap_or_else(|| {
                panic!("seed {seed}: what was acknowledged up to {reached} is not there")
            });
        } else {
            assert_eq!(found, Fold::new(), "seed {seed}");
        }
        let steps = dice.below(80);
        for _ in 0..steps {
            let done = if dice.once_in(2) { own.change(&mut dice) } else { own.turn() };
            if let Err(error) = done {
                assert!(is_expected(&error), "seed {seed}: {error}");
                break;
            }
            // The former owner does not know yet that it was replaced.
            if let Some(former) = &mut known
                && dice.once_in(4)
            {
                _ = if dice.once_in(2) { former.change(&mut dice) } else { former.turn() };
                let reached = former.caller.reached;
                assert!(
                    reached <= Position(at as u64),
                    "seed {seed}: a former owner got {reached:?}"
                );
            }
        }
        former = Some(own);
    }
    tenures
}

/// Whether a store may fail like that while the engine is in trouble.
fn is_expected(error: &StoreError) -> bool {
    match error {
        StoreError::Poisoned { cause } => is_expected(cause),
        StoreError::Fenced { .. } | StoreError::EngineFull | StoreError::NoAnswer { .. } => true,
        _ => false,
    }
}

#[test]
fn what_was_acknowledged_is_there_whatever_the_engine_does() {
    for seed in 0..60 {
        assert!(reign(seed, FakeKnobs::PERFECT) == 15, "seed {seed}");
    }
    let tenures: u64 = (0..150).map(|seed| reign(seed, FakeKnobs::ROUGH)).sum();
    assert!(tenures > 1_200, "only {tenures} tenures");
}
