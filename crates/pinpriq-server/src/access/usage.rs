//! What users use up, beside what their limits allow.
//!
//! All places of the server share this. A user without a limit is counted too, so that a
//! limit that is set later finds those who are there.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::users::{Limit, Name, User, Users};
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::time::Timestamp;

/// What one request takes of an allowance, which counts in thousandths so that each millisecond
/// adds a whole number.
const REQUEST: u64 = 1_000;

/// What all users use up.
#[derive(Debug, Default)]
pub(crate) struct Usages(Mutex<HashMap<Name, Arc<Usage>>>);

/// What one user uses up.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    connections: AtomicU64,
    /// The bytes of its requests that have arrived and are not answered, and of the answers that
    /// were not sent.
    bytes: AtomicU64,
    /// The tasks that it has put and that are there.
    tasks: AtomicU64,
    allowance: Mutex<Option<Allowance>>,
}

/// How many requests may still be made.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    thousandths: u64,
    /// When that was so.
    at: Timestamp,
}

/// A connection that counts as one of its user. It ends with this.
#[derive(Debug)]
pub(crate) struct Counted {
    user: Name,
    usage: Arc<Usage>,
    /// The bytes that it has in flight.
    bytes: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.weigh(0);
        self.usage.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Usage {
    /// Returns the number of tasks that the user has put and that are there.
    pub(crate) fn tasks(&self) -> u64 {
        self.tasks.load(Ordering::Acquire)
    }

    /// Changes the number of tasks of the user.
    pub(crate) fn add_tasks(&self, change: i64) {
        add(&self.tasks, change);
    }
}

/// Adds what may be negative. The sum never is.
fn add(sum: &AtomicU64, change: i64) {
    if change < 0 {
        sum.fetch_sub(change.unsigned_abs(), Ordering::AcqRel);
    } else {
        sum.fetch_add(change.unsigned_abs(), Ordering::AcqRel);
    }
}

impl Counted {
    /// Returns whose it is.
    pub(crate) const fn user(&self) -> &Name {
        &self.user
    }

    /// Notes how many bytes the connection has in flight now.
    #[inline]
    pub(crate) fn weigh(&mut self, bytes: u64) {
        let former = std::mem::replace(&mut self.bytes, bytes);
        if former != bytes {
            add(&self.usage.bytes, bytes.wrapping_sub(former).cast_signed());
        }
    }
}

impl Usages {
    /// Counts one more connection of a user. Refuses what is beyond the limit.
    pub(crate) fn connect(&self, user: &User) -> Result<Counted, Refusal> {
        let (name, usage) = (user.name.clone(), self.usage(&user.name));
        let counted = Counted { user: name, usage, bytes: 0 };
        let others = counted.usage.connections.fetch_add(1, Ordering::AcqRel);
        match user.limits.of(Limit::Connections) {
            Some(most) if others >= most.get() => Err(beyond(user, Limit::Connections, most)),
            _ => Ok(counted),
        }
    }

    /// Checks whether a user may make one more request. Counts the request only if it may.
    pub(crate) fn ask(&self, user: &User, now: Timestamp) -> Result<(), Refusal> {
        if let Some(most) = user.limits.of(Limit::BytesInFlight)
            && self.usage(&user.name).bytes.load(Ordering::Acquire) > most.get()
        {
            return Err(beyond(user, Limit::BytesInFlight, most));
        }
        self.spend(user, now)
    }

    /// Counts one more request of a user. Refuses what is beyond the limit: within a second, as
    /// many as are allowed in one may come at once.
    fn spend(&self, user: &User, now: Timestamp) -> Result<(), Refusal> {
        let Some(most) = user.limits.of(Limit::RequestsPerSecond) else { return Ok(()) };
        let usage = self.usage(&user.name);
        let mut kept = usage.allowance.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = most.get().saturating_mul(REQUEST);
        let before = kept.unwrap_or(Allowance { thousandths: whole, at: now });
        let grown = now.ms().saturating_sub(before.at.ms()).saturating_mul(most.get());
        let thousandths = before.thousandths.saturating_add(grown).min(whole);
        let is_allowed = thousandths >= REQUEST;
        let taken = if is_allowed { REQUEST } else { 0 };
        let (thousandths, at) = (thousandths.saturating_sub(taken), now.max(before.at));
        *kept = Some(Allowance { thousandths, at });
        if is_allowed { Ok(()) } else { Err(beyond(user, Limit::RequestsPerSecond, most)) }
    }

    /// Forgets users who are gone and have no connection.
    pub(crate) fn forget_others(&self, users: &Users) {
        let is_there = |name: &Name| users.user(name.as_str()).is_some();
        self.all().retain(|name, usage| is_there(name) || Arc::strong_count(usage) > 1);
    }

    /// Returns what one user uses up.
    pub(crate) fn usage(&self, name: &Name) -> Arc<Usage> {
        let all = &mut *self.all();
        if let Some(usage) = all.get(name) {
            return Arc::clone(usage);
        }
        Arc::clone(all.entry(name.clone()).or_default())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Name, Arc<Usage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal of what is beyond a limit.
pub(crate) fn beyond(user: &User, limit: Limit, most: NonZeroU64) -> Refusal {
    let (name, word) = (&user.name, limit.word());
    let sentence = format!("the user {name} is at its limit {word}={most}: try again later");
    Refusal::new(RefusalKind::Busy, sentence)
}
