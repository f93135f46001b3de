//! Ends a backup in the server before a signal ends the command, so that the server need not keep
//! the files of a cut that nobody copies any more.
//!
//! The signal ends the process as it would without this. A server that does not answer within a
//! second is left to end the backup by itself.

use std::sync::mpsc::sync_channel;
use std::thread::spawn;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use super::super::signals::Heeding;
use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::http::Http;

/// How long the server may take.
const WITHIN: Duration = Duration::from_secs(1);

/// Ends what has this path when a signal comes, until what this returns is dropped. It uses a
/// connection of its own, since the other one may be waiting for an answer.
pub(super) fn end_on_signals(endpoint: Endpoint, path: String) -> Result<Heeding, Failure> {
    Heeding::begin(&[SIGINT, SIGTERM], move |signal| {
        let (endpoint, path) = (endpoint.clone(), path.clone());
        in_time(move || {
            // If this fails, it ends by itself a minute later.
            let _ = Http::to(endpoint).map(|mut http| http.delete(&path));
        });
        let _ = emulate_default_handler(signal);
    })
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
