//! The time: this crate runs within the programs of its users, who lend it no clock. This is the
//! only file that reads it, and the only one that pauses.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::time::Instant;

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "the users of a client lend it no clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits for this long.
#[expect(clippy::disallowed_methods, reason = "a client tries again after a while")]
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Waits until this moment.
#[expect(clippy::disallowed_methods, reason = "a request has its time")]
pub(crate) async fn until(moment: Instant) {
    tokio::time::sleep_until(moment).await;
}

/// Waits for `work`, but no longer than the limit, if there is one.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match limit {
        None => work.await,
        Some(limit) => tokio::time::timeout(limit, work)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
    }
}
