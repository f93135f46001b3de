//! Hands what libFuzzer makes up to the target `recovery`, which says itself what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinpriq_fuzz::recovery(bytes));
