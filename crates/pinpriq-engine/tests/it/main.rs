//! The tests of the engine, only through its public interface.
//!
//! `accounts` counts the tasks that each account has put. `scripts` runs the readable examples in
//! `testdata`, and `states` drives every cell of the table of states. `carrying` moves whole queues
//! from one engine to another. `checkpoints` kills the workers of a long job. `bounds` and
//! `looking` contain what takes too many tasks for a script, `named_limits` counts what several
//! queues have taken, `room` asks for more and more, and `disk_room` tests what a full disk
//! refuses. `fan_out` tests the promises to members. `random` compares the engine with
//! [`pinpriq_testing::model`], step by step and across restarts. The internal data structures have
//! no tests here: [`pinpriq_engine::Engine::check`] checks them after each step.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::expect_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stderr, reason = "a failed run says how to repeat it")]

mod accounts;
mod bounds;
mod carrying;
mod checkpoints;
mod disk_room;
mod fan_out;
mod looking;
mod named_limits;
mod random;
mod room;
mod script;
mod scripts;
mod states;
mod survey;
