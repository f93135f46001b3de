//! The one binary: a server, a client for the shell, and the tools for a data directory.
//!
//! This file only chooses the allocator and calls the library, which also returns the exit code.

use std::process::ExitCode;

/// Tasks are many small blocks that come and go across threads. Their memory must return to the
/// system even when nothing happens.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    pinpriq::run()
}
