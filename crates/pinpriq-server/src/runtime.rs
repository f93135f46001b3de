//! The runtime of a thread, and which threads go before which.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// How far a thread steps aside. Of the processor time that a busy thread and one of them want, the
/// busy one gets nine tenths.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// How long work may wait for a processor that nothing else wants. After that it gets a share of
/// one.
const PATIENCE: Duration = Duration::from_millis(250);

/// How much work may wait like that. Further work gets its share at once.
const WAITING_MAX: usize = 4;

/// How much work waits like that, or is under way without a share.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Returns a runtime that runs on the thread that it is given. Long work that it starts, such as
/// hashing passwords and writing metrics, stands back behind all other threads.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().on_thread_start(stand_back).build()
}

/// Does long work that lets all other threads of the machine go before it. If they leave it nothing
/// for a while, it is begun once more with a share of a processor: a caller waits for it. Returns
/// nothing if the system has no thread for it.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Clone + Send + 'static,
) -> Option<T> {
    let again = work.clone();
    let mut waiting = wait_for_idle(work);
    if let Some(waiting) = &mut waiting
        && let Ok(done) = timeout(PATIENCE, waiting).await
    {
        return done.ok();
    }
    let told = with_share(again)?;
    let Some(waiting) = waiting else { return told.await.ok() };
    tokio::select! {
        Ok(done) = waiting => Some(done),
        Ok(done) = told => Some(done),
        else => None,
    }
}

/// Does work that a caller waits for, such as reading files, on a thread of its own. It lets others
/// go before it, and still gets a share of a busy processor. Returns nothing if the system has no
/// thread for it.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    with_share(work)?.await.ok()
}

/// Begins work with a share of a processor.
fn with_share<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<oneshot::Receiver<T>> {
    let (tell, told) = oneshot::channel();
    let share = move || {
        step_aside();
        let _ = tell.send(work());
    };
    thread::Builder::new().name("aside".to_owned()).spawn(share).ok()?;
    Some(told)
}

/// Begins work on a thread that runs when no other one wants to, unless too much waits already.
fn wait_for_idle<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<JoinHandle<T>> {
    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            WAITING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    let counted = Counted;
    if WAITING.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
        return None;
    }
    Some(spawn_blocking(move || {
        let _counted = counted;
        work()
    }))
}

/// Lets this thread run when no other one of the machine wants to. The system knows this for single
/// threads on Linux only.
fn stand_back() {
    // Where it is not allowed, the work is done anyway.
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy,
    };

    use super::*;

    /// The niceness of this thread, and whether it runs only when no other one wants to.
    fn priority() -> (i32, bool) {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let niceness = rustix::process::getpriority_process(None).unwrap();
        (niceness, thread_schedule_policy().unwrap() == idle)
    }

    #[test]
    fn work_for_which_there_is_no_idle_processor_gets_a_share_of_one() {
        let (own, _) = priority();
        // Dropped after the sender below, since its end waits for all work.
        let runtime = runtime().unwrap();
        let (end, ends) = mpsc::sync_channel::<()>(1);
        let ends = Arc::new(Mutex::new(ends));
        let work = move || {
            let found = priority();
            if found.1 {
                // No other thread leaves it anything. It ends with the test.
                let _ = ends.lock().unwrap().recv();
            }
            found
        };
        for _ in 0..WAITING_MAX + 2 {
            let done = runtime.block_on(aside(work.clone())).unwrap();
            assert_eq!(done, ((own + NICENESS).min(19), false));
        }
        drop(end);
        let done = runtime.block_on(aside(|| 5));
        assert_eq!(done, Some(5));
    }
}
