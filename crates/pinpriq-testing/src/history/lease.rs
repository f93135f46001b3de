//! One delivery of a task, and how long its lease may have lasted and must have lasted.
//!
//! Each moment is given as the earliest or the latest possible one. The checks choose the one that
//! favours the server.

use crate::history::tolerance::Tolerance;

/// The number of microseconds in a millisecond.
pub(crate) const US_PER_MS: u64 = 1_000;

/// When something was done: at some moment between these two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) from_us: u64,
    /// The end of time if it is unknown.
    pub(crate) to_us: u64,
}

impl Span {
    /// Whether all of it is before the other span.
    pub(crate) const fn is_before(self, other: Self) -> bool {
        self.to_us < other.from_us
    }
}

/// What was requested with a receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    Ack,
    Release {
        delay_us: u64,
        ttl_us: Option<u64>,
        priority: Option<i64>,
        tail: bool,
    },
    Bury,
    /// Without a delay the queue says how long the task waits.
    Fail {
        delay_us: Option<u64>,
    },
    Touch {
        by_us: Option<u64>,
    },
}

/// The result of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Accepted,
    /// Accepted, and the task waits.
    Waiting,
    /// Accepted, and the task is set aside.
    Buried,
    /// Accepted, and the task has left its queue. It may be a dead letter now.
    Left,
    /// Accepted, and the task is gone.
    Gone,
    /// Accepted, and what became of the task is unknown.
    Ended,
    /// Refused because the receipt was not current.
    Stale,
    /// Refused for another reason.
    Refused,
    Unknown,
}

/// A request with the receipt of this lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub(crate) span: Span,
    pub(crate) wish: Wish,
    pub(crate) fate: Fate,
    /// The number of the request.
    pub(crate) call: u64,
    /// The transaction of unknown outcome that it is part of.
    pub(crate) open: Option<u64>,
}

impl Deed {
    pub(crate) const fn is_accepted(&self) -> bool {
        !matches!(self.fate, Fate::Stale | Fate::Refused | Fate::Unknown)
    }

    /// Whether it may have been carried out.
    pub(crate) const fn may_count(&self) -> bool {
        !matches!(self.fate, Fate::Stale | Fate::Refused)
    }

    /// Whether the task is set aside if it is carried out.
    pub(crate) const fn buries(&self) -> bool {
        matches!(self.wish, Wish::Bury) || matches!(self.fate, Fate::Buried)
    }

    /// Whether it ends the lease if it is carried out.
    pub(crate) const fn ends_lease(&self) -> bool {
        !matches!(self.wish, Wish::Touch { .. })
    }
}

/// How long a lease lasts unless a request changes that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasting {
    /// For this many microseconds.
    Us(u64),
    /// As long as the connection lasts.
    Connection,
    /// It depends on an unknown put.
    Uncertain,
}

/// A task as a client received it.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub(crate) span: Span,
    pub(crate) client: u64,
    /// The number of the request.
    pub(crate) call: u64,
    /// The index of the station where it was.
    pub(crate) station: usize,
    /// Taken for good.
    pub(crate) popped: bool,
    /// Whether the oldest task of the lowest priority number was asked for.
    pub(crate) ordered: bool,
    pub(crate) payload: String,
    pub(crate) lasting: Lasting,
    /// Sorted by their beginnings.
    pub(crate) deeds: Vec<Deed>,
}

impl Handed {
    /// The earliest moment at which the lease can have run out.
    pub(crate) fn earliest_deadline_us(&self, ttr_us: u64, tolerance: Tolerance) -> u64 {
        let mut deadline = self.span.from_us.saturating_add(ttr_us);
        let mut moved = false;
        for deed in self.deeds.iter().filter(|deed| deed.may_count()) {
            let Wish::Touch { by_us } = deed.wish else { continue };
            let renewed = deed.span.from_us.saturating_add(ttr_us);
            match (by_us, deed.is_accepted()) {
                (Some(by_us), true) => (deadline, moved) = (deadline.saturating_add(by_us), true),
                // After the deadline was moved, a renewal may shorten the lease.
                (None, _) if moved => deadline = deadline.min(renewed),
                (None, true) => deadline = deadline.max(renewed),
                (_, false) => {}
            }
        }
        let lasted = deadline.saturating_sub(self.span.from_us);
        deadline.saturating_sub(tolerance.of_us(lasted))
    }

    /// The latest moment at which the lease can have run out.
    pub(crate) fn latest_deadline_us(&self, ttr_us: u64, tolerance: Tolerance) -> u64 {
        let mut deadline = self.span.to_us.saturating_add(ttr_us);
        for deed in self.deeds.iter().filter(|deed| deed.may_count()) {
            let Wish::Touch { by_us } = deed.wish else { continue };
            deadline = match by_us {
                Some(by_us) => deadline.saturating_add(by_us),
                None => deadline.max(deed.span.to_us.saturating_add(ttr_us)),
            };
        }
        let lasted = deadline.saturating_sub(self.span.from_us);
        deadline.saturating_add(tolerance.of_us(lasted)).saturating_add(tolerance.prolonged_us)
    }

    /// The requests that may have ended the lease.
    pub(crate) fn enders(&self) -> impl Iterator<Item = &Deed> {
        self.deeds.iter().filter(|deed| deed.may_count() && deed.ends_lease())
    }

    /// The request that has certainly ended the lease, if no other can have.
    pub(crate) fn only_ender(&self) -> Option<&Deed> {
        let mut enders = self.enders();
        let first = enders.next().filter(|deed| deed.is_accepted())?;
        enders.next().is_none().then_some(first)
    }

    /// Whether a renewal that was answered before `moment_us` made the lease durable.
    pub(crate) fn is_durable_at(&self, moment_us: u64) -> bool {
        let renewed = |deed: &&Deed| matches!(deed.wish, Wish::Touch { .. }) && deed.is_accepted();
        matches!(self.lasting, Lasting::Us(_))
            && self.deeds.iter().filter(renewed).any(|deed| deed.span.to_us < moment_us)
    }
}
