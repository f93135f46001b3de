//! The engine in memory passes the suite for every engine.

use pinpriq_store::ledger::{Ledger, Writer};
use pinpriq_testing::ledgers::{Bench, FakeEngine, FakeKnobs, cases, run_all};

struct FakeBench {
    engine: FakeEngine,
    shards: u16,
}

impl FakeBench {
    fn new(seed: u64, knobs: FakeKnobs) -> Self {
        Self { engine: FakeEngine::new(seed, knobs), shards: 0 }
    }
}

impl Bench for FakeBench {
    fn ledger(&mut self, shard: u16, writer: Writer) -> Box<dyn Ledger> {
        Box::new(self.engine.ledger(shard, writer))
    }

    fn fresh_shard(&mut self) -> u16 {
        self.shards += 1;
        self.shards
    }
}

#[test]
fn a_perfect_engine_passes_each_case_alone() {
    assert!(cases().len() >= 30);
    for case in cases() {
        println!("{}", case.name);
        (case.run)(&mut FakeBench::new(0, FakeKnobs::PERFECT));
    }
}

#[test]
fn a_perfect_engine_passes_all_cases_in_turn() {
    run_all(&mut FakeBench::new(0, FakeKnobs::PERFECT));
}

#[test]
fn an_engine_whose_answers_are_late_passes_all_cases() {
    for seed in 0..5 {
        run_all(&mut FakeBench::new(seed, FakeKnobs { late: 70, ..FakeKnobs::PERFECT }));
    }
}

#[test]
fn names_of_cases_are_unique() {
    let mut names: Vec<_> = cases().iter().map(|case| case.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
