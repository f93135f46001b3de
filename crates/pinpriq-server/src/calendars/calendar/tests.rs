//! Tests of calendars, only through what other files use.

mod clocks;
mod dates;
mod every;
mod minutes;
mod refusals;
mod samples;
mod spans;
