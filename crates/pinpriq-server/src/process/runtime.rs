//! The runtime of a thread, and which threads go before which.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// How far a thread steps aside. Of the processor time that a busy thread and one of them want, the
/// busy one gets nine tenths.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Returns a runtime that runs on the thread that it is given. Long work that it starts, such as
/// hashing passwords and writing metrics, stands back behind all other threads.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().on_thread_start(stand_back).build()
}

/// Lets this thread run when no other one of the machine wants to. The system knows this for single
/// threads on Linux only.
fn stand_back() {
    // Where it is not allowed, the work is done all the same.
    #[cfg(target_os = "linux")]
    let _ = thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        thread_priority::ThreadPriority::Min,
        thread_priority::ThreadSchedulePolicy::Normal(
            thread_priority::NormalThreadSchedulePolicy::Idle,
        ),
    );
}

/// Lets others go before this thread, which still gets a share of a busy processor.
pub(crate) fn step_aside() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICENESS);
}
