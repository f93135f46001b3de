//! Tests of cron expressions, only through what other files use.

mod clocks;
mod dates;
mod minutes;
mod refusals;
mod samples;
mod spans;
