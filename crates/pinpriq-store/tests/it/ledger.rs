//! The tests of the ledger, only through its public interface.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that goes wrong")]

mod answers;
mod conformance;
mod copying;
mod damage;
mod fake;
mod room;
mod store;
mod takeover;
mod watermarks;
mod window;
