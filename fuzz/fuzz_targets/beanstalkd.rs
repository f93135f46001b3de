//! Hands what libFuzzer makes up to the target `beanstalkd`, which says itself what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinpriq_fuzz::beanstalkd(bytes));
