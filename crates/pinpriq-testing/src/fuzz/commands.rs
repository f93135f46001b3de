//! The engine beside the naive model, with commands that the input chooses.
//!
//! Chooser, store and runner are those of the engine's own random tests; only the dice differ
//! ([`choice`](crate::fuzz::choice)). After every step the engine has passed
//! [`pinpriq_engine::Engine::check`], has returned what the model returns, and holds what the model
//! holds. Restarts, disconnects, compactions and jumps in time are steps like commands.

use crate::fuzz::choice;

/// More steps than this find nothing that fewer steps do not.
const STEPS_MAX: usize = 80;

#[path = "../../../pinpriq-engine/tests/it"]
#[expect(clippy::unwrap_used, reason = "this is the code of tests")]
#[expect(clippy::expect_used, reason = "this is the code of tests")]
#[expect(clippy::print_stderr, reason = "a failed run says what it was doing")]
#[expect(dead_code, reason = "the tests use more of it")]
pub(crate) mod engine_tests {
    pub(crate) mod random {
        mod census;
        mod choices;
        mod dice {
            pub(super) use crate::fuzz::choice::Dice;
        }
        mod runner;
        mod store;

        /// Runs steps for as long as there are bytes to choose with.
        pub(crate) fn run(has_more: impl Fn() -> bool, steps_max: usize) {
            let census = std::sync::Mutex::new(census::Census::default());
            let mut runner = runner::Runner::new(0, "the input".to_owned(), &census);
            for _ in (0..steps_max).take_while(|_| has_more()) {
                runner.step(0);
            }
            runner.clear_away();
        }
    }
}

/// Runs the steps that the bytes choose.
///
/// # Panics
/// If the engine breaks one of its invariants, or does anything that the model does not.
pub fn commands(bytes: &[u8]) {
    choice::offer(bytes);
    engine_tests::random::run(choice::is_left, STEPS_MAX);
}
