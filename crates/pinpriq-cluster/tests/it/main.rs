//! The tests of who serves what in a cluster, only through the public interface.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stdout, reason = "a failed run says how to repeat it")]

mod clocks;
mod fake;
mod ownership;
mod placement;
mod walk;
