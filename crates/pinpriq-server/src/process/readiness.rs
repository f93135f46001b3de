//! Tells the service manager, such as systemd with `Type=notify`, when the server serves and when
//! it stops. Without a service manager it does nothing.

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
        tracing::warn!(%error, "the service manager could not be told");
    }
}
