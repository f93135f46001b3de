//! Tests that letters decode to what was encoded, have the specified bytes, and do no harm.

mod census;
mod golden;
mod round_trip;
mod strategies;
