//! A thread that heeds signals as long as a command wants it. What a signal means is up to the
//! command.

use std::thread::{JoinHandle, spawn};

use signal_hook::iterator::{Handle, Signals};

use crate::exit::Failure;

/// What heeds signals until it is dropped.
#[derive(Debug)]
pub(super) struct Heeding {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Heeding {
    /// Calls `heed` with each of these signals that comes, on a thread of its own.
    pub(super) fn begin(
        which: &[i32],
        mut heed: impl FnMut(i32) + Send + 'static,
    ) -> Result<Self, Failure> {
        let mut signals = Signals::new(which).map_err(|error| unhandled(&error))?;
        let handle = signals.handle();
        let thread = spawn(move || signals.forever().for_each(&mut heed));
        Ok(Self { signals: handle, thread: Some(thread) })
    }
}

impl Drop for Heeding {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How a command ends that cannot handle signals.
pub(super) fn unhandled(error: &std::io::Error) -> Failure {
    Failure::on_the_way(format!("signals cannot be handled: {error}"))
}
