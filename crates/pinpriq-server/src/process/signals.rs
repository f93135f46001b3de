//! What the server does when the system sends it a signal.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::place::Common;
use super::readiness::{tell_ready, tell_stopping};
use crate::error::ServeError;
use crate::figures::info;
use crate::home::survey;
use crate::letters::mailbox::Mailbox;
use crate::stop::Stop;

/// The signals that the server listens to.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGUSR1: the figures go to the log.
    figures: Signal,
    /// SIGUSR2: the beanstalkd door accepts no more jobs, or accepts them again.
    drain: Signal,
    /// SIGHUP: files that may have changed are read again. A terminal that closes sends it too.
    hang_up: Signal,
}

impl Signals {
    /// Listens to all signals from now on. A signal that requests a stop sets the flag of `stop` at
    /// once, for code that is too busy loading to wait for anything.
    pub(crate) fn listen(stop: &Stop) -> Result<Self, ServeError> {
        let stops = |kind: SignalKind| {
            signal_hook::flag::register(kind.as_raw_value(), stop.flag())
                .and_then(|_| signal(kind))
                .map_err(|source| ServeError::Runtime { source })
        };
        let listen =
            |kind: SignalKind| signal(kind).map_err(|source| ServeError::Runtime { source });
        Ok(Self {
            terminate: stops(SignalKind::terminate())?,
            interrupt: stops(SignalKind::interrupt())?,
            figures: listen(SignalKind::user_defined1())?,
            drain: listen(SignalKind::user_defined2())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Does what the signals ask for, and ends after it has requested the stop. Tells the service
    /// manager when it begins, since clients can connect by then, and when it ends.
    pub(crate) async fn heed(mut self, stop: Stop, common: Arc<Common>) {
        tell_ready();
        let signal = loop {
            tokio::select! {
                _ = self.terminate.recv() => break "SIGTERM",
                _ = self.interrupt.recv() => break "SIGINT",
                _ = self.figures.recv() => log_figures(&common.boxes).await,
                _ = self.drain.recv() => turn_draining(&common),
                _ = self.hang_up.recv() => read_again(&common),
            }
        };
        tell_stopping();
        tracing::info!(signal, "asked to stop");
        stop.ask();
    }
}

/// Makes the beanstalkd door refuse jobs, or ends that.
fn turn_draining(common: &Common) {
    let signal = "SIGUSR2";
    if common.turn_draining() {
        tracing::warn!(signal, "the beanstalkd door accepts no more jobs until the next {signal}");
    } else {
        tracing::info!(signal, "the beanstalkd door accepts jobs again");
    }
}

/// Reads the files again that may have changed.
fn read_again(common: &Common) {
    common.access.asked.notify_one();
    if let Some(audit) = &common.access.audit {
        audit.reopen();
    }
    tracing::debug!(signal = "SIGHUP", "files are read and opened again");
}

/// Writes the figures of `INFO` to the log, a line for each section.
async fn log_figures(shards: &[Mailbox]) {
    let facts = survey::facts(shards).await;
    for section in info::Section::ALL {
        let text = info::lines(&facts, &[section.name().as_bytes()]);
        let figures: Vec<&str> = text.lines().skip(1).collect();
        tracing::info!(section = section.name(), "{}", figures.join(" "));
    }
}
