//! What a shard logs about connections that the server ends or loses.
//!
//! Each kind of event is a warning at most once a second, with the number of those that were
//! suppressed before it. The others are logged at debug, like everything else about single
//! connections.

use std::fmt::Display;

use pinpriq_proto::time::Timestamp;

use crate::clients::ending::Ending;
use crate::throttle::{Throttle, warn_throttled};
use crate::tls::side::HandshakeError;

/// The warnings of a shard about its connections.
#[derive(Default)]
pub(crate) struct Notices {
    closing: Throttle,
    unread: Throttle,
    lost: Throttle,
    handshakes: Throttle,
    /// Those that gave way, which are many when they come, and would hide other reasons.
    gave_way: Throttle,
}

impl Notices {
    /// Logs that a connection is closed because of what its client sent, or did not send. Endings
    /// that its client wants, and those that are logged for all clients together, are no warnings.
    pub(crate) fn closing(&self, now: Timestamp, peer: &dyn Display, why: (Ending, &str)) {
        let (ending, reason) = why;
        let warns = matches!(ending, Ending::Late | Ending::Malformed | Ending::Refused);
        warn_throttled!(self.closing.admit_if(warns, now), %peer, %reason, "closing");
    }

    /// Logs that a client is cut off because its unread replies keep old files.
    pub(crate) fn unread(&self, now: Timestamp, client: u64) {
        warn_throttled!(
            self.unread.admit(now),
            client,
            "cut off: it does not read its answers, and they keep old files on the disk"
        );
    }

    /// Logs that a connection to this door could not be encrypted. A probe that only looks whether
    /// the port is open is no warning.
    pub(crate) fn no_handshake(
        &self,
        now: Timestamp,
        peer: &dyn Display,
        (door, why): (&str, &HandshakeError),
    ) {
        let warns = !matches!(why, HandshakeError::Closed | HandshakeError::Broken(_));
        let is_crowded = matches!(why, HandshakeError::Crowded);
        let throttle = if is_crowded { &self.gave_way } else { &self.handshakes };
        let admitted = throttle.admit_if(warns, now);
        warn_throttled!(admitted, %peer, door, reason = %why, "no TLS handshake");
    }

    /// Logs that a connection did not arrive at the thread that was to serve it.
    pub(crate) fn lost(&self, now: Timestamp, peer: &dyn Display, error: &std::io::Error) {
        let admitted = self.lost.admit(now);
        warn_throttled!(admitted, %peer, %error, "a connection was lost between two threads");
    }
}
