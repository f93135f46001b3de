//! How many tasks a queue hands out: at most so many at once, and at most so many in a time.
//!
//! The rate is a bucket of tokens. Each task that is handed out costs one, and the bucket fills
//! evenly until it is full. All numbers are whole, so a replay gives the same. Nothing here knows
//! tasks: the caller passes the number that are taken.

use pinpriq_proto::settings::{Rate, Settings};
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

/// Tokens. One token is [`Rate::per`] drops, and [`Rate::count`] drops fall in a millisecond.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    drops: u128,
    /// When the drops were counted.
    counted_at: Timestamp,
}

impl Gate {
    /// The gate of a queue with these settings, or none if it has no limits. Keeps the tokens of
    /// its former gate, as far as they fit. It is not armed.
    pub(crate) fn of(
        settings: &Settings,
        former: Option<&Self>,
        now: Timestamp,
    ) -> Option<Box<Self>> {
        let Settings { limit, rate, .. } = *settings;
        if limit.is_none() && rate.is_none() {
            return None;
        }
        let known = former.and_then(|gate| gate.bucket.as_ref());
        let bucket = rate.map(|rate| Bucket::of(rate, known, now));
        Some(Box::new(Self { limit, bucket, armed: None, shut_since: None }))
    }

    /// Whether another task may be handed out, of a queue of which `taken` are taken.
    pub(crate) fn is_open(&mut self, taken: u64, now: Timestamp) -> bool {
        let has_room = self.limit.is_none_or(|limit| taken < limit);
        has_room && self.bucket.as_mut().is_none_or(|bucket| bucket.has_token(now))
    }

    /// The moment of the next token, if only that is missing.
    pub(crate) fn opens_at(&self, taken: u64) -> Option<Timestamp> {
        let has_room = self.limit.is_none_or(|limit| taken < limit);
        self.bucket.as_ref().filter(|_| has_room).map(Bucket::next_token)
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
        let opened_at = self.bucket.as_ref().map_or(now, Bucket::next_token);
        (opened_at <= now).then_some(opened_at)
    }

    /// The limit, if it is reached.
    pub(crate) fn reached(&self, taken: u64) -> Option<u64> {
        self.limit.filter(|limit| taken >= *limit)
    }

    /// The moment of the next token, if there is none now.
    pub(crate) fn next_token(&self, now: Timestamp) -> Option<Timestamp> {
        self.bucket.as_ref().map(Bucket::next_token).filter(|at| *at > now)
    }

    /// Whether there is room and no rate. For checks only.
    pub(crate) fn has_room_without_tokens(&self, taken: u64) -> bool {
        self.bucket.is_none() && self.limit.is_none_or(|limit| taken < limit)
    }

    /// Pays for a task that is handed out.
    pub(crate) fn pay(&mut self) {
        if let Some(bucket) = &mut self.bucket {
            bucket.drops = bucket.drops.saturating_sub(bucket.token());
        }
    }

    /// Returns the token of a task that was handed out and did not arrive.
    pub(crate) fn refund(&mut self) {
        if let Some(bucket) = &mut self.bucket {
            bucket.drops = (bucket.drops + bucket.token()).min(bucket.capacity());
        }
    }
}

impl Bucket {
    /// A full bucket, or one with the tokens of the former one, as far as they fit.
    fn of(rate: Rate, former: Option<&Self>, now: Timestamp) -> Self {
        let mut bucket = Self { rate, drops: 0, counted_at: now };
        bucket.drops = bucket.capacity();
        if let Some(former) = former {
            let drops = former.drops_at(now) * bucket.token() / former.token();
            bucket.drops = drops.min(bucket.capacity());
        }
        bucket
    }

    const fn token(&self) -> u128 {
        self.rate.per.ms() as u128
    }

    const fn capacity(&self) -> u128 {
        self.token() * self.rate.count as u128
    }

    fn drops_at(&self, now: Timestamp) -> u128 {
        let fallen = u128::from(now.since(self.counted_at).ms()) * u128::from(self.rate.count);
        (self.drops + fallen).min(self.capacity())
    }

    fn has_token(&mut self, now: Timestamp) -> bool {
        self.drops = self.drops_at(now);
        self.counted_at = now;
        self.drops >= self.token()
    }

    fn next_token(&self) -> Timestamp {
        let missing = self.token().saturating_sub(self.drops);
        let wait_ms = missing.div_ceil(u128::from(self.rate.count));
        self.counted_at.after(Span::from_ms(u64::try_from(wait_ms).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn gate(count: u32, per_ms: u64, former: Option<&Gate>, now: u64) -> Gate {
        let rate = Some(Rate { count, per: Span::from_ms(per_ms) });
        *Gate::of(&Settings { rate, ..Settings::default() }, former, at(now)).unwrap()
    }

    /// Takes as many tokens as there are.
    fn drain(gate: &mut Gate, now: u64) -> u32 {
        let mut tokens = 0;
        while gate.is_open(0, at(now)) {
            gate.pay();
            tokens += 1;
        }
        tokens
    }

    #[test]
    fn bucket_is_full_at_first_and_fills_evenly() {
        let mut gate = gate(3, 1_000, None, 0);
        assert_eq!(drain(&mut gate, 0), 3);
        assert_eq!(gate.opens_at(0), Some(at(334)));
        for (now, tokens) in [(333, 0), (334, 1), (666, 0), (667, 1), (1_000, 1), (9_999, 3)] {
            assert_eq!(drain(&mut gate, now), tokens, "{now}");
        }
    }

    #[test]
    fn tokens_come_back_and_never_overflow() {
        let mut gate = gate(2, 100, None, 0);
        assert!(gate.is_open(0, at(0)));
        gate.refund();
        assert_eq!(drain(&mut gate, 0), 2);
        gate.refund();
        assert_eq!(drain(&mut gate, 0), 1);
    }

    #[test]
    fn change_keeps_the_tokens_that_fit() {
        let mut few = gate(10, 1_000, None, 0);
        assert!(few.is_open(0, at(0)));
        for _ in 0..6 {
            few.pay();
        }
        let mut same = gate(10, 7_777, Some(&few), 0);
        assert_eq!(drain(&mut same, 0), 4);
        let mut fewer = gate(3, 1, Some(&few), 0);
        assert_eq!(drain(&mut fewer, 0), 3);
    }

    #[test]
    fn limit_counts_what_is_taken() {
        let settings = Settings { limit: Some(2), ..Settings::default() };
        let mut gate = Gate::of(&settings, None, at(0)).unwrap();
        assert!(gate.is_open(1, at(0)) && !gate.is_open(2, at(0)) && !gate.is_open(3, at(0)));
        assert_eq!(gate.opens_at(2), None);
    }

    #[test]
    fn rates_at_their_bounds_do_not_overflow() {
        let mut gate = gate(u32::MAX, Timestamp::MAX.ms(), None, 0);
        assert!(gate.is_open(0, Timestamp::MAX));
        gate.pay();
        gate.refund();
        assert!(gate.is_open(0, Timestamp::MAX));
    }
}
