//! Tells the manager of the service, such as systemd with `Type=notify`, when the server serves and
//! when it stops. Without such a manager nothing is told.

use sd_notify::NotifyState;

/// Tells that everything is loaded and clients can connect.
pub(super) fn tell_ready() {
    tell(NotifyState::Ready);
}

/// Tells that the server was asked to stop, and finishes what has begun.
pub(super) fn tell_stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the manager of the service could not be told");
    }
}
