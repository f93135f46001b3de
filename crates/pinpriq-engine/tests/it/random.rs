//! Random commands, given to both the engine and the model.
//!
//! After each step both must have returned the same and hold the same tasks, and the engine must
//! pass [`Engine::check`]. From time to time the server stops, and a new engine continues from what
//! a store kept. The fixed seeds also prove that the dice reach everything: each cell of the table
//! of states, each refusal, each outcome.

mod census;
mod choices;
mod dice;
mod runner;
mod store;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use census::Census;
use dice::Dice;
use runner::Runner;

/// How many runs there are, which take a minute of one processor.
const RUNS: u64 = 600;
const STEPS_PER_RUN: usize = 480;

#[test]
fn engine_does_what_the_model_does() {
    let census = Mutex::new(Census::default());
    let next = AtomicU64::new(0);
    let run_some = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= RUNS {
                break;
            }
            let mut dice = Dice::new(seed);
            let mut runner = Runner::new(dice.roll(), format!("seed {seed}"), &census);
            for _ in 0..STEPS_PER_RUN {
                runner.step(dice.roll());
            }
            runner.clear_away();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(run_some);
        }
    });
    census.into_inner().unwrap().assert_complete();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn engine_does_what_the_model_does_at_random(
        setup: u64,
        steps in prop::collection::vec(any::<u64>(), 1..150),
    ) {
        let census = Mutex::new(Census::default());
        let mut runner = Runner::new(setup, format!("setup {setup}, steps {steps:?}"), &census);
        for step in steps {
            runner.step(step);
        }
        runner.clear_away();
    }
}
