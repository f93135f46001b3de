//! The one binary: a server, a client for the shell, and the tools for a data directory.
//!
//! This file only chooses the allocator and hands over to the library, which also turns the end of
//! the command into an exit code.

use std::process::ExitCode;

/// Tasks are many small blocks that come and go across threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pinpriq::run()
}
