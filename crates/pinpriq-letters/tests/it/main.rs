//! Tests that letters decode to what was encoded, have the specified bytes, and do no harm.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod census;
mod golden;
mod round_trip;
mod strategies;
