//! Letters come back as they were, have the bytes that are told here, and do no harm.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod census;
mod golden;
mod round_trip;
mod strategies;
