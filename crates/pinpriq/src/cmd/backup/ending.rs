//! Ends a backup in the server before a signal ends the command, so that the server need not keep
//! the files of a cut that nobody copies any more.
//!
//! The signal ends the process as it would without this. A server that does not answer within a
//! second is left to end the backup by itself.

use std::sync::mpsc::sync_channel;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::http::Http;

/// How long the server may take.
const WITHIN: Duration = Duration::from_secs(1);

/// What waits for signals until it is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Ending {
    /// Ends what has this path when a signal comes, over a connection of its own: the other one may
    /// be waiting for an answer.
    pub(super) fn on_signals(endpoint: Endpoint, path: String) -> Result<Self, Failure> {
        let fail = |error| Failure::on_the_way(format!("signals cannot be handled: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(fail)?;
        let handle = signals.handle();
        let wait = move || {
            let Some(signal) = signals.forever().next() else { return };
            in_time(move || {
                // If this fails, it ends by itself a minute later.
                let _ = Http::to(endpoint).map(|mut http| http.delete(&path));
            });
            let _ = emulate_default_handler(signal);
        };
        Ok(Self { signals: handle, thread: Some(spawn(wait)) })
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for something, but not for long.
pub(super) fn in_time(work: impl FnOnce() + Send + 'static) {
    let (done, end) = sync_channel(1);
    spawn(move || {
        work();
        // Nobody may be waiting any more.
        let _ = done.send(());
    });
    let _ = end.recv_timeout(WITHIN);
}
