//! What must hold for any bytes at all.
//!
//! Each public function takes the bytes that a fuzzer made up and returns if the product did what
//! was promised for them; otherwise it panics. The wrappers for libFuzzer are in `fuzz/`, with the
//! inputs that are kept; the tests of this crate run those once more. What a fuzzer cannot judge,
//! such as speed, is not looked at here. `docs/fuzzing.md` says what each target promises.

mod choice;
mod commands;
mod configuration;
mod cutting;
mod feed;
mod letters;
mod pinpriq_wire;
mod recovery;
mod resp;

use commands::engine_tests::random;

pub use commands::commands;
pub use configuration::configuration;
pub use letters::letters;
pub use pinpriq_wire::pinpriq_wire;
pub use recovery::recovery;
pub use resp::resp;

/// Panics if what was promised for these bytes does not hold.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its directory of inputs.
pub const TARGETS: [(&str, Target); 6] = [
    ("resp", resp),
    ("pinpriq_wire", pinpriq_wire),
    ("recovery", recovery),
    ("commands", commands),
    ("configuration", configuration),
    ("letters", letters),
];
