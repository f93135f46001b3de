//! Hands what libFuzzer makes up to the target that `PINPRIQ_FUZZ_TARGET` names. The target says
//! itself what must hold.

#![no_main]
#![expect(clippy::disallowed_methods, reason = "libFuzzer's own macro writes a file")]

use std::sync::LazyLock;

use pinpriq_testing::fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("PINPRIQ_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.into_iter().find(|(known, _)| *known == name);
    found.map_or_else(|| panic!("there is no target {name:?}"), |(_, target)| target)
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
