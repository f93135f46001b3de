//! The one binary: a server, a client for the shell, and the tools for a data directory.
//!
//! This file only chooses the allocator and hands over to the library, which also turns the end of
//! the command into an exit code.

use std::process::ExitCode;

/// Tasks are many small blocks that come and go across threads, and what they leave must go back
/// to the system even when nothing happens any more.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    pinpriq::run()
}
