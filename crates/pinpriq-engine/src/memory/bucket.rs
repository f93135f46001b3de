//! A rate, as a bucket of tokens that fills evenly until it is full.
//!
//! It is open while it holds at least one token. What passes takes its cost out of it and may leave
//! it in debt, which the tokens that follow pay back. So what costs much is not held back for ever
//! by what costs little, and on average the rate holds. All numbers are whole, so a replay gives
//! the same. Nothing here knows what passes.

use pinpriq_proto::carried::Level;
use pinpriq_proto::settings::Rate;
use pinpriq_proto::time::{Span, Timestamp};

/// The longest that a bucket which begins empty holds no token.
const EMPTY_MAX: Span = Span::from_ms(60_000);

/// Tokens. One token is [`Rate::per`] drops, and [`Rate::count`] drops fall in a millisecond.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) rate: Rate,
    /// Below zero while it is in debt.
    drops: i128,
    /// When the drops were counted.
    counted_at: Timestamp,
}

impl Bucket {
    /// A full bucket, or one with the tokens or the debt of the former one, as far as they fit.
    pub(crate) fn of(rate: Rate, former: Option<&Self>, now: Timestamp) -> Self {
        let mut bucket = Self { rate, drops: 0, counted_at: now };
        bucket.drops = bucket.capacity();
        if let Some(former) = former {
            let (drops, token) = (former.drops_at(now), former.token());
            let part = drops.rem_euclid(token).unsigned_abs() * bucket.token().unsigned_abs();
            let part = i128::try_from(part / token.unsigned_abs()).unwrap_or(i128::MAX);
            let whole = drops.div_euclid(token).saturating_mul(bucket.token());
            bucket.drops = whole.saturating_add(part).min(bucket.capacity());
        }
        bucket
    }

    /// An empty bucket, which holds a token after [`EMPTY_MAX`] at the latest.
    pub(crate) fn empty(rate: Rate, now: Timestamp) -> Self {
        let mut bucket = Self { rate, drops: 0, counted_at: now };
        let fallen = i128::from(EMPTY_MAX.ms()) * i128::from(rate.count);
        bucket.drops = bucket.token().saturating_sub(fallen).max(0);
        bucket
    }

    /// A bucket with what it has held at a moment, as far as that fits.
    pub(crate) fn at_level(rate: Rate, level: Level, at: Timestamp) -> Self {
        let mut bucket = Self { rate, drops: 0, counted_at: at };
        let whole = i128::from(level.tokens).saturating_mul(bucket.token());
        let part = i128::from(level.parts).min(bucket.token());
        bucket.drops = whole.saturating_add(part).min(bucket.capacity());
        bucket
    }

    /// What it holds, if nothing passes until then.
    pub(crate) fn level(&self, now: Timestamp) -> Level {
        let parts = self.drops_at(now).rem_euclid(self.token());
        Level { tokens: self.tokens(now), parts: u64::try_from(parts).unwrap_or(0) }
    }

    /// When it holds a token, if nothing passes until then. A moment that has come if it does now.
    pub(crate) fn opens_at(&self) -> Timestamp {
        self.holds_at(self.token())
    }

    /// When it is full, if nothing passes until then. A moment that has come if it is now.
    pub(crate) fn full_at(&self) -> Timestamp {
        self.holds_at(self.capacity())
    }

    /// Takes tokens out of it, also those that it does not hold.
    pub(crate) fn pay(&mut self, cost: u64, now: Timestamp) {
        self.count(now);
        self.drops = self.drops.saturating_sub(self.drops_of(cost));
    }

    /// Returns tokens to it.
    pub(crate) fn refund(&mut self, cost: u64, now: Timestamp) {
        self.count(now);
        self.drops = self.drops.saturating_add(self.drops_of(cost)).min(self.capacity());
    }

    /// How many whole tokens it holds. Below zero while it is in debt.
    pub(crate) fn tokens(&self, now: Timestamp) -> i64 {
        let whole = self.drops_at(now).div_euclid(self.token());
        i64::try_from(whole).unwrap_or(i64::MIN)
    }

    fn token(&self) -> i128 {
        i128::from(self.rate.per.ms())
    }

    fn capacity(&self) -> i128 {
        self.drops_of(self.rate.count.into())
    }

    fn drops_of(&self, tokens: u64) -> i128 {
        self.token().saturating_mul(tokens.into())
    }

    fn count(&mut self, now: Timestamp) {
        self.drops = self.drops_at(now);
        self.counted_at = now;
    }

    fn drops_at(&self, now: Timestamp) -> i128 {
        let fallen = i128::from(now.since(self.counted_at).ms()) * i128::from(self.rate.count);
        self.drops.saturating_add(fallen).min(self.capacity())
    }

    /// When it holds this many drops, or when they were counted if it did then.
    fn holds_at(&self, drops: i128) -> Timestamp {
        let missing = drops.saturating_sub(self.drops).max(0).unsigned_abs();
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

    fn bucket(count: u32, per_ms: u64, former: Option<&Bucket>, now: u64) -> Bucket {
        Bucket::of(Rate { count, per: Span::from_ms(per_ms) }, former, at(now))
    }

    /// Takes as many tokens as there are.
    fn drain(bucket: &mut Bucket, now: u64) -> u32 {
        let mut tokens = 0;
        while bucket.opens_at() <= at(now) {
            bucket.pay(1, at(now));
            tokens += 1;
        }
        tokens
    }

    #[test]
    fn it_is_full_at_first_and_fills_evenly() {
        let mut bucket = bucket(3, 1_000, None, 0);
        assert_eq!(drain(&mut bucket, 0), 3);
        assert_eq!(bucket.opens_at(), at(334));
        for (now, tokens) in [(333, 0), (334, 1), (666, 0), (667, 1), (1_000, 1), (9_999, 3)] {
            assert_eq!(drain(&mut bucket, now), tokens, "{now}");
        }
    }

    #[test]
    fn empty_one_holds_a_token_in_time() {
        let opens =
            |count, per| Bucket::empty(Rate { count, per: Span::from_ms(per) }, at(5)).opens_at();
        assert_eq!(opens(2, 1_000), at(505));
        assert_eq!(opens(1, 60_000), at(60_005));
        assert_eq!(opens(1, 3_600_000), at(60_005));
        assert_eq!(opens(7, u64::MAX), at(60_005));
    }

    #[test]
    fn what_it_holds_is_held_again() {
        let mut bucket = bucket(7, 1_000, None, 0);
        for cost in [3, 1, 40, 2] {
            bucket.pay(cost, at(13));
            let again = Bucket::at_level(bucket.rate, bucket.level(at(20)), at(20));
            assert_eq!(again.opens_at(), bucket.opens_at().max(at(20)));
            assert_eq!(again.full_at(), bucket.full_at());
        }
        let over = Bucket::at_level(bucket.rate, Level { tokens: 9, parts: 1 }, at(5));
        assert_eq!(over.full_at(), at(5));
    }

    #[test]
    fn tokens_come_back_and_never_overflow() {
        let mut bucket = bucket(2, 100, None, 0);
        bucket.refund(1, at(0));
        assert_eq!(drain(&mut bucket, 0), 2);
        bucket.refund(1, at(0));
        assert_eq!(drain(&mut bucket, 0), 1);
        assert_eq!(drain(&mut bucket, 1_000), 2);
    }

    #[test]
    fn what_is_paid_late_comes_out_of_a_full_bucket() {
        let mut bucket = bucket(2, 100, None, 0);
        bucket.pay(1, at(9_000));
        assert_eq!(drain(&mut bucket, 9_000), 1);
    }

    #[test]
    fn debt_is_paid_back_before_it_opens() {
        let mut bucket = bucket(60, 60_000, None, 0);
        bucket.pay(59, at(0));
        assert_eq!(bucket.opens_at(), at(0));
        bucket.pay(50, at(0));
        assert_eq!(bucket.opens_at(), at(50_000));
        bucket.refund(20, at(10_000));
        assert_eq!(bucket.opens_at(), at(30_000));
        assert_eq!(drain(&mut bucket, 30_000), 1);
    }

    #[test]
    fn change_keeps_the_tokens_that_fit() {
        let mut few = bucket(10, 1_000, None, 0);
        few.pay(6, at(0));
        let mut same = bucket(10, 7_777, Some(&few), 0);
        assert_eq!(drain(&mut same, 0), 4);
        let mut fewer = bucket(3, 1, Some(&few), 0);
        assert_eq!(drain(&mut fewer, 0), 3);
    }

    #[test]
    fn change_keeps_a_debt() {
        let mut former = bucket(10, 1_000, None, 0);
        former.pay(15, at(0));
        assert_eq!(bucket(1, 100, Some(&former), 0).opens_at(), at(600));
        assert_eq!(bucket(10, 1_000, Some(&former), 50).opens_at(), former.opens_at());
    }

    #[test]
    fn rates_at_their_bounds_do_not_overflow() {
        let mut most = bucket(u32::MAX, Timestamp::MAX.ms(), None, 0);
        for _ in 0..3 {
            most.pay(u64::MAX, Timestamp::MAX);
        }
        most = bucket(1, 1, Some(&most), Timestamp::MAX.ms());
        most = bucket(u32::MAX, Timestamp::MAX.ms(), Some(&most), Timestamp::MAX.ms());
        assert_eq!(most.opens_at(), Timestamp::MAX);
        for _ in 0..3 {
            most.refund(u64::MAX, Timestamp::MAX);
        }
        assert!(most.opens_at() <= Timestamp::MAX);
    }
}
