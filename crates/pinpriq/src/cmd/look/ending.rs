//! Signals that end a look once its directory is complete: those that a server does not know as its
//! end, and those that come before it listens.
//!
//! The server stops in order, and the directory is removed after it. How the server stops is its
//! own business.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::raise;

use super::super::signals::{Heeding, unhandled};
use crate::exit::Failure;

/// What heeds these signals until it is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    /// Whether a signal has asked to end.
    asked: Arc<AtomicBool>,
    _hang_up: Heeding,
}

impl Ending {
    /// Notes from now on what asks to end. A terminal that closes asks for it too, while it makes a
    /// server only read its files again.
    pub(super) fn begin() -> Result<Self, Failure> {
        let asked = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&asked)).map_err(|error| unhandled(&error))?;
        }
        let hang_up = Heeding::begin(&[SIGHUP], |_| end_in_order())?;
        Ok(Self { asked, _hang_up: hang_up })
    }

    /// Asks the server to stop if something has asked to end before it listened to signals.
    pub(super) fn pass_on(&self) {
        if self.asked.load(Ordering::SeqCst) {
            end_in_order();
        }
    }
}

/// Sends this process the signal that ends a server in order.
fn end_in_order() {
    // It exists, and a process may send it to itself.
    let _ = raise(SIGTERM);
}
