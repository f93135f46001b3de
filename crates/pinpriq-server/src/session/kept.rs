//! What connections make the server keep besides tasks, counted in one total: requests that have
//! begun to arrive, replies that were not read, open transactions, lists of watched tubes.
//!
//! What is done when the total is reached is up to the caller. A small part of each connection is
//! free, so that the usual request costs no count.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinpriq_proto::reply::{Refusal, RefusalKind};

/// What a connection may keep without being counted. Ten thousand connections that each keep this
/// much occupy 40 MiB.
pub(crate) const FREE_BYTES: usize = 4 << 10;

/// A server has room for this many of its largest payloads in requests that have begun, whatever
/// else its bound says.
const PAYLOADS_MIN: usize = 4;

/// The total of all connections of a server.
#[derive(Debug)]
pub(crate) struct Kept {
    bytes: AtomicUsize,
    most: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self::new(&crate::config::Limits::default())
    }
}

impl Kept {
    /// Nothing is kept yet.
    pub(crate) fn new(limits: &crate::config::Limits) -> Self {
        let least = limits.payload_bytes_max.saturating_mul(PAYLOADS_MIN);
        Self { bytes: AtomicUsize::new(0), most: limits.connection_bytes_max.max(least) }
    }

    /// Returns the share of a connection, or of one thing that a connection keeps.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { kept: Arc::clone(self), counted: Cell::new(0) }
    }

    /// Whether connections keep more than they may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.most
    }

    /// The refusal of what would be kept beyond that.
    pub(crate) fn refusal(&self) -> Refusal {
        let (bytes, most) = (self.bytes.load(Ordering::Relaxed), self.most);
        let sentence = format!(
            "connections keep {bytes} of {most} bytes in requests and transactions that have \
             begun: try again"
        );
        Refusal::new(RefusalKind::Busy, sentence)
    }
}

/// A part of the total, which ends with this.
#[derive(Debug)]
pub(crate) struct Share {
    kept: Arc<Kept>,
    counted: Cell<usize>,
}

impl Share {
    /// Counts that it has this many bytes now.
    #[inline]
    pub(crate) fn set(&self, bytes: usize) {
        let counted = if bytes > FREE_BYTES { bytes } else { 0 };
        if counted != self.counted.get() {
            self.change(counted);
        }
    }

    #[inline(never)]
    fn change(&self, counted: usize) {
        let former = self.counted.replace(counted);
        if counted > former {
            self.kept.bytes.fetch_add(counted - former, Ordering::Relaxed);
        } else {
            self.kept.bytes.fetch_sub(former - counted, Ordering::Relaxed);
        }
    }

    /// Whether it counts, and connections keep more than they may.
    #[inline]
    pub(crate) fn is_too_much(&self) -> bool {
        self.counted.get() > 0 && self.kept.is_full()
    }

    /// Returns the total that it is a part of.
    pub(crate) const fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    #[test]
    fn shares_are_counted_together_and_end() {
        let limits =
            Limits { payload_bytes_max: 1_000, connection_bytes_max: 100_000, ..Limits::default() };
        let kept = Arc::new(Kept::new(&limits));
        let shares: Vec<Share> = (0..20).map(|_| kept.share()).collect();
        for share in &shares {
            share.set(FREE_BYTES);
        }
        assert!(!kept.is_full(), "what is small is free");
        for share in &shares[..11] {
            share.set(9_999);
        }
        assert!(shares[0].is_too_much() && !shares[11].is_too_much());
        shares[0].set(0);
        assert!(!kept.is_full());
        shares[1].set(20_000);
        assert!(kept.is_full());
        drop(shares);
        assert_eq!(kept.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn there_is_room_for_some_of_the_largest_payloads() {
        let limits =
            Limits { payload_bytes_max: 1 << 20, connection_bytes_max: 1, ..Limits::default() };
        let kept = Arc::new(Kept::new(&limits));
        let share = kept.share();
        share.set(4 << 20);
        assert!(!share.is_too_much());
        share.set((4 << 20) + 1);
        assert!(share.is_too_much());
    }
}
