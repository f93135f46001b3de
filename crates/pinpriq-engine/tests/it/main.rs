//! The tests of the engine, through its public door only.
//!
//! `scripts` runs the readable examples in `testdata`, `states` drives every cell of the table of
//! states, `bounds` holds what takes too many tasks for a script, `room` asks for more and more,
//! `disk_room` tells what a full disk refuses, `fan_out` holds what was promised to members, and
//! `random` compares the engine with [`pinpriq_model`], step by step and across restarts. The data
//! structures inside are not tested on their own: [`pinpriq_engine::Engine::check`] looks at them
//! after each step.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::expect_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stderr, reason = "a failed run says how to repeat it")]

mod bounds;
mod disk_room;
mod fan_out;
mod random;
mod room;
mod script;
mod scripts;
mod states;
