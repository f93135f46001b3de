//! The runtime of a thread.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// How far the threads stand back that a runtime starts for long work. Of the processor time that
/// a busy thread and one of them want, the busy one gets nine tenths.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Returns a runtime that runs on the thread that it is given. Long work that it starts, such as
/// hashing passwords and writing metrics, stands back behind all other threads.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().on_thread_start(stand_back).build()
}

/// Lets all other threads go before this one. The system knows this for single threads on Linux
/// only.
pub(crate) fn stand_back() {
    // Where it is not allowed, the work is done all the same.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICENESS);
}
