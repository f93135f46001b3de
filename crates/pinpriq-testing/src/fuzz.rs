//! Promises that must hold for any bytes.
//!
//! Each public function takes bytes from a fuzzer. It returns if the product kept its promises for
//! them, and panics otherwise. The kept inputs are in `fuzz/regressions`; the tests of this crate
//! run them again. What a fuzzer cannot judge, such as speed, is not checked here.
//! `docs/internals/fuzzing.md` says what each target promises.

mod beanstalkd;
mod choice;
pub(crate) mod commands;
mod configuration;
mod cutting;
mod feed;
mod letters;
mod pinpriq_wire;
mod recovery;
mod resp;
mod users;

pub use beanstalkd::beanstalkd;
pub use commands::commands;
pub use configuration::configuration;
pub use letters::letters;
pub use pinpriq_wire::pinpriq_wire;
pub use recovery::recovery;
pub use resp::resp;
pub use users::users;

/// A check that panics if a promise does not hold for these bytes.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its directory of inputs.
pub const TARGETS: [(&str, Target); 8] = [
    ("resp", resp),
    ("pinpriq_wire", pinpriq_wire),
    ("recovery", recovery),
    ("commands", commands),
    ("configuration", configuration),
    ("letters", letters),
    ("users", users),
    ("beanstalkd", beanstalkd),
];
