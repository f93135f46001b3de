//! How many tasks a queue hands out: at most so many at once, and at most so many in a time, by
//! itself and together with others.
//!
//! The rate is a bucket of tokens, from which each task that is handed out takes what it costs.
//! Nothing here knows tasks: the caller passes the number that are taken.

use crate::memory::bucket::Bucket;
use crate::memory::named_limits::Uses;
use pinpriq_proto::carried::Level;
use pinpriq_proto::settings::Settings;
use pinpriq_proto::time::{Span, Timestamp};

/// What a gate is asked about: its queue at this moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// How many of its tasks are taken.
    pub(crate) taken: u64,
    /// Whether the limits that it uses with others allow another one to be taken.
    pub(crate) has_room: bool,
    /// When each of those that has a rate holds a token, if one has.
    pub(crate) opens_at: Option<Timestamp>,
}

/// The limits of one queue that has some.
#[derive(Debug)]
pub(crate) struct Gate {
    limit: Option<u64>,
    /// The limits that it uses with others.
    pub(crate) uses: Uses,
    /// How many of its taken tasks these have counted.
    pub(crate) counted: u64,
    bucket: Option<Bucket>,
    /// The moment under which the queue is in the index of deadlines.
    pub(crate) armed: Option<Timestamp>,
    /// Since when it holds back a task that a consumer wants.
    pub(crate) shut_since: Option<Timestamp>,
}

/// What a transaction may change about a gate.
#[derive(Debug)]
pub(crate) struct FormerGate {
    bucket: Option<Bucket>,
    shut_since: Option<Timestamp>,
}

impl Seen {
    /// A queue that uses no limits with others.
    pub(crate) const fn alone(taken: u64) -> Self {
        Self { taken, has_room: true, opens_at: None }
    }
}

impl Gate {
    /// What it is now, for [`Gate::go_back`].
    pub(crate) fn former(&self) -> FormerGate {
        FormerGate { bucket: self.bucket.clone(), shut_since: self.shut_since }
    }

    /// Makes it what it was.
    pub(crate) fn go_back(&mut self, former: FormerGate) {
        FormerGate { bucket: self.bucket, shut_since: self.shut_since } = former;
    }

    /// The gate of a queue with these settings, or none if it has no limits and nothing else asks
    /// for one. Keeps the tokens of its former gate, as far as they fit. It is not armed, and
    /// nothing was counted.
    pub(crate) fn of(
        settings: &Settings,
        (uses, is_asked_for): (Uses, bool),
        former: Option<&Self>,
        now: Timestamp,
    ) -> Option<Box<Self>> {
        let Settings { limit, rate, .. } = *settings;
        if limit.is_none() && rate.is_none() && uses.are_none() && !is_asked_for {
            return None;
        }
        let known = former.and_then(|gate| gate.bucket.as_ref());
        let bucket = rate.map(|rate| Bucket::of(rate, known, now));
        Some(Box::new(Self { limit, uses, counted: 0, bucket, armed: None, shut_since: None }))
    }

    /// Whether it can be shut. The one of a queue that only has turns cannot.
    pub(crate) fn can_shut(&self) -> bool {
        self.limit.is_some() || self.bucket.is_some() || !self.uses.are_none()
    }

    /// Whether another task may be handed out.
    pub(crate) fn is_open(&self, seen: Seen, now: Timestamp) -> bool {
        self.has_room(seen) && self.token_at(seen).is_none_or(|at| at <= now)
    }

    /// The moment of the next token, if only that is missing.
    pub(crate) fn opens_at(&self, seen: Seen) -> Option<Timestamp> {
        self.token_at(seen).filter(|_| self.has_room(seen))
    }

    fn has_room(&self, seen: Seen) -> bool {
        seen.has_room && self.limit.is_none_or(|limit| seen.taken < limit)
    }

    /// When each of the rates holds a token, if there is one.
    fn token_at(&self, seen: Seen) -> Option<Timestamp> {
        self.bucket.as_ref().map(Bucket::opens_at).max(seen.opens_at)
    }

    /// If the gate was shut and is open now, ends that and returns how long it lasted. `is_freed`
    /// says that something has come back at this very moment. Otherwise it has opened with its
    /// last token.
    pub(crate) fn end_of_shut(
        &mut self,
        seen: Seen,
        now: Timestamp,
        is_freed: bool,
    ) -> Option<Span> {
        let since = self.shut_since?;
        let opened_at = self.opened_at(seen, now)?;
        self.shut_since = None;
        let until = if is_freed { now } else { opened_at };
        Some(until.since(since))
    }

    /// How long a shut gate has been shut until now.
    pub(crate) fn shut_until_now(&self, seen: Seen, now: Timestamp) -> Option<Span> {
        let since = self.shut_since?;
        Some(self.opened_at(seen, now).unwrap_or(now).since(since))
    }

    /// When the gate has got what it needs to be open, if it has. Room is always got just now.
    fn opened_at(&self, seen: Seen, now: Timestamp) -> Option<Timestamp> {
        let opened_at = self.token_at(seen).unwrap_or(now);
        (self.has_room(seen) && opened_at <= now).then_some(opened_at)
    }

    /// The limit, if it is reached.
    pub(crate) fn reached(&self, taken: u64) -> Option<u64> {
        self.limit.filter(|limit| taken >= *limit)
    }

    /// The moment of the next token, if there is none now.
    pub(crate) fn next_token(&self, now: Timestamp) -> Option<Timestamp> {
        self.bucket.as_ref().map(Bucket::opens_at).filter(|at| *at > now)
    }

    /// Whether there is room and no rate. For checks only.
    pub(crate) fn has_room_without_tokens(&self, seen: Seen) -> bool {
        self.token_at(seen).is_none() && self.has_room(seen)
    }

    /// Its own bucket, if it has a rate.
    pub(crate) const fn bucket(&self) -> Option<&Bucket> {
        self.bucket.as_ref()
    }

    /// Lets its own bucket begin empty.
    pub(crate) fn begin_empty(&mut self, now: Timestamp) {
        self.bucket = self.bucket.as_ref().map(|bucket| Bucket::empty(bucket.rate, now));
    }

    /// Lets its own bucket hold what it has held at a moment.
    pub(crate) fn fill(&mut self, level: Level, at: Timestamp) {
        self.bucket = self.bucket.as_ref().map(|bucket| Bucket::at_level(bucket.rate, level, at));
    }

    /// Pays for a task of this cost that is handed out.
    pub(crate) fn pay(&mut self, cost: u64, now: Timestamp) {
        if let Some(bucket) = &mut self.bucket {
            bucket.pay(cost, now);
        }
    }

    /// Returns what a task of this cost has paid that was handed out and did not arrive.
    pub(crate) fn refund(&mut self, cost: u64, now: Timestamp) {
        if let Some(bucket) = &mut self.bucket {
            bucket.refund(cost, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_counts_what_is_taken() {
        let at = Timestamp::from_ms(0);
        let settings = Settings { limit: Some(2), ..Settings::default() };
        let gate = Gate::of(&settings, (Uses::default(), false), None, at).unwrap();
        let is_open = |taken| gate.is_open(Seen::alone(taken), at);
        assert!(is_open(1) && !is_open(2) && !is_open(3));
        assert!(!gate.is_open(Seen { has_room: false, ..Seen::alone(1) }, at));
        assert_eq!(gate.opens_at(Seen::alone(2)), None);
    }
}
