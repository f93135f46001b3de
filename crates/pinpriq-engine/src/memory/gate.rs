//! How many tasks a queue hands out: at most so many at once, and at most so many in a time.
//!
//! The rate is a bucket of tokens, from which each task that is handed out takes what it costs.
//! Nothing here knows tasks: the caller passes the number that are taken.

use crate::memory::bucket::Bucket;
use pinpriq_proto::settings::Settings;
use pinpriq_proto::time::{Span, Timestamp};

/// The limits of one queue that has some.
#[derive(Debug)]
pub(crate) struct Gate {
    limit: Option<u64>,
    bucket: Option<Bucket>,
    /// The moment under which the queue is in the index of deadlines.
    pub(crate) armed: Option<Timestamp>,
    /// Since when it holds back a task that a consumer wants.
    pub(crate) shut_since: Option<Timestamp>,
}

impl Gate {
    /// The gate of a queue with these settings, or none if it has no limits and no turns. Keeps the
    /// tokens of its former gate, as far as they fit. It is not armed.
    pub(crate) fn of(
        settings: &Settings,
        has_turns: bool,
        former: Option<&Self>,
        now: Timestamp,
    ) -> Option<Box<Self>> {
        let Settings { limit, rate, .. } = *settings;
        if limit.is_none() && rate.is_none() && !has_turns {
            return None;
        }
        let known = former.and_then(|gate| gate.bucket.as_ref());
        let bucket = rate.map(|rate| Bucket::of(rate, known, now));
        Some(Box::new(Self { limit, bucket, armed: None, shut_since: None }))
    }

    /// Whether another task may be handed out, of a queue of which `taken` are taken.
    pub(crate) fn is_open(&self, taken: u64, now: Timestamp) -> bool {
        let has_room = self.limit.is_none_or(|limit| taken < limit);
        has_room && self.bucket.as_ref().is_none_or(|bucket| bucket.opens_at() <= now)
    }

    /// The moment of the next token, if only that is missing.
    pub(crate) fn opens_at(&self, taken: u64) -> Option<Timestamp> {
        let has_room = self.limit.is_none_or(|limit| taken < limit);
        self.bucket.as_ref().filter(|_| has_room).map(Bucket::opens_at)
    }

    /// If the gate was shut and is open now, ends that and returns how long it lasted. `is_freed`
    /// says that something has come back at this very moment. Otherwise it has opened with its
    /// last token.
    pub(crate) fn end_of_shut(
        &mut self,
        taken: u64,
        now: Timestamp,
        is_freed: bool,
    ) -> Option<Span> {
        let since = self.shut_since?;
        let opened_at = self.opened_at(taken, now)?;
        self.shut_since = None;
        let until = if is_freed { now } else { opened_at };
        Some(until.since(since))
    }

    /// How long a shut gate has been shut until now.
    pub(crate) fn shut_until_now(&self, taken: u64, now: Timestamp) -> Option<Span> {
        let since = self.shut_since?;
        Some(self.opened_at(taken, now).unwrap_or(now).since(since))
    }

    /// When the gate has got what it needs to be open, if it has. Room is always got just now.
    fn opened_at(&self, taken: u64, now: Timestamp) -> Option<Timestamp> {
        if self.limit.is_some_and(|limit| taken >= limit) {
            return None;
        }
        let opened_at = self.bucket.as_ref().map_or(now, Bucket::opens_at);
        (opened_at <= now).then_some(opened_at)
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
    pub(crate) fn has_room_without_tokens(&self, taken: u64) -> bool {
        self.bucket.is_none() && self.limit.is_none_or(|limit| taken < limit)
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
        let gate = Gate::of(&settings, false, None, at).unwrap();
        assert!(gate.is_open(1, at) && !gate.is_open(2, at) && !gate.is_open(3, at));
        assert_eq!(gate.opens_at(2), None);
    }
}
