//! The attempts of a task: who held it, from when to when, and how each of them ended.
//!
//! Which attempts are noted, and for how long, is decided in the engine.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Bytes, ClientId, Progress, Trace};
use crate::limits::ATTEMPT_OVERHEAD_BYTES;
use crate::time::Timestamp;

/// The attempts of a task, oldest first. Only the last may be under way.
pub type History = Arc<[Attempt]>;

worded! {
    /// How an attempt has ended. Neither a request to stop nor a delivery that was called back
    /// before its holder began is among them: the first ends by what the holder does then, and the
    /// second was no attempt.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum How {
        /// Its holder has acknowledged the task.
        Acked = 0 => "acked",
        /// Its holder has given the task back.
        Released = 1 => "released",
        /// Its holder has said that it failed.
        Failed = 2 => "failed",
        /// Its holder has buried the task.
        Buried = 3 => "buried",
        /// Its lease has reached its deadline.
        Expired = 4 => "expired",
        /// Its connection has ended, or the server has, and its lease with that.
        Closed = 5 => "closed",
        /// Somebody else has ended its lease.
        Snatched = 6 => "snatched",
    }

    /// The word for it.
    fn word -> &'static str
}

/// An attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The connection that took the task, if a connection has.
    pub client: Option<ClientId>,
    /// How to find out whose connection that was.
    pub contact: Contact,
    /// When the task was taken, or started, if it was delivered before.
    pub taken_at: Timestamp,
    /// How it has ended, unless it is under way.
    pub end: Option<End>,
}

/// The end of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// How.
    pub how: How,
    /// Why, if its holder has said that. Of a longer reason the beginning.
    pub reason: Option<Bytes>,
}

/// How to find out whose connection it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contact {
    /// The name that the client has given itself. Empty if it has none.
    pub name: Bytes,
    /// The address that it comes from. Empty if it is not known.
    pub address: Bytes,
}

/// Who the clients are. An engine asks when an attempt begins, and keeps the answer.
pub trait Clients: Debug + Send + Sync {
    /// The contact of a client, if that is connected.
    fn contact(&self, client: ClientId) -> Option<Contact>;
}

impl Attempt {
    /// The number of bytes that it counts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { contact: Contact { name, address }, end, .. } = self;
        let reason = end.as_ref().and_then(|end| end.reason.as_ref());
        let reason = reason.map_or(0, |reason| reason.len());
        ATTEMPT_OVERHEAD_BYTES + name.len() + address.len() + reason
    }
}

impl Progress {
    /// Its last attempts, oldest first, with the one that is under way.
    #[must_use]
    pub fn history(&self) -> &[Attempt] {
        self.trace.as_ref().and_then(|trace| trace.history.as_deref()).unwrap_or_default()
    }

    /// Forgets the attempt that is under way.
    pub fn forget_open_attempt(&mut self) {
        let ended = ended(self.history());
        if ended.len() < self.history().len()
            && let Some(trace) = self.trace.as_deref()
        {
            let history = (!ended.is_empty()).then(|| ended.into());
            self.trace = Trace { history, ..trace.clone() }.kept();
        }
    }
}

/// The attempts that have ended.
#[must_use]
pub fn ended(attempts: &[Attempt]) -> &[Attempt] {
    match attempts {
        [ended @ .., Attempt { end: None, .. }] => ended,
        all => all,
    }
}

/// The number of bytes that attempts count.
#[must_use]
pub fn bytes(attempts: &[Attempt]) -> usize {
    attempts.iter().map(Attempt::bytes).sum()
}
