//! The buckets of keys and shares that are not full, by the moment at which each opens or is full.
//!
//! A bucket that is full is not kept: one that is not there is full.

use std::collections::BTreeSet;

use super::named::Id;
use crate::memory::bucket::Bucket;
use pinpriq_proto::settings::Rate;
use pinpriq_proto::time::Timestamp;

/// Whose bucket it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Whose {
    Key(Id),
    Share(Id),
    /// That of all keys without one of their own: see `takeover.rs`.
    EveryKey,
    /// The same of shares.
    EveryShare,
}

/// A bucket that is not full.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    bucket: Bucket,
    /// The moment at which it opens, or at which it is full if it is open.
    at: Timestamp,
    is_shut: bool,
}

/// How full a bucket is, compared with others. The fullest is the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Fullness {
    is_shut: bool,
    at: Timestamp,
}

/// See the start of this file.
#[derive(Debug, Default)]
pub(super) struct Openings {
    shut: BTreeSet<(Timestamp, Whose)>,
    open: BTreeSet<(Timestamp, Whose)>,
}

/// The place of the bucket of a key or share. `None` if it is full.
pub(super) type Place = Option<Box<Timed>>;

/// Whether a bucket holds back what is its.
pub(super) fn is_shut(place: &Place) -> bool {
    place.as_ref().is_some_and(|timed| timed.is_shut)
}

impl Openings {
    /// The number of buckets, common ones included.
    pub(super) fn len(&self) -> usize {
        self.shut.len() + self.open.len()
    }

    /// Frees some memory, of buckets that are used no longer.
    pub(super) fn free_some(&mut self) {
        self.shut.pop_first();
        self.open.pop_first();
    }

    /// When the next bucket opens.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.shut.first().map(|(at, _)| *at)
    }

    /// A bucket that has opened or is full by now.
    #[inline]
    pub(super) fn due(&self, now: Timestamp) -> Option<Whose> {
        let first = self.shut.first().into_iter().chain(self.open.first()).min()?;
        (first.0 <= now).then_some(first.1)
    }

    /// The fullest bucket of a single key or share, and how full it is.
    pub(super) fn fullest(&self) -> Option<(Fullness, Whose)> {
        self.by_fullness().next()
    }

    /// All buckets of single keys and shares, the fullest first.
    pub(super) fn by_fullness(&self) -> impl Iterator<Item = (Fullness, Whose)> {
        let of = |is_shut| {
            move |(at, whose): &(Timestamp, Whose)| (Fullness { is_shut, at: *at }, *whose)
        };
        let all = self.open.iter().map(of(false)).chain(self.shut.iter().map(of(true)));
        all.filter(|(_, whose)| matches!(whose, Whose::Key(_) | Whose::Share(_)))
    }

    /// All buckets, those first that open first.
    pub(super) fn all(&self) -> impl Iterator<Item = Whose> {
        self.shut.iter().chain(&self.open).map(|(_, whose)| *whose)
    }

    /// Takes tokens out of a bucket with this rate. One that is not there is what it has in common
    /// with others, if it has something, and else full.
    pub(super) fn pay(
        &mut self,
        place: &mut Place,
        whose: Whose,
        (rate, common): (Rate, Option<Bucket>),
        (cost, now): (u32, Timestamp),
    ) {
        let former = self.take_out(place, whose).or(common);
        let mut bucket = former.unwrap_or_else(|| Bucket::of(rate, None, now));
        bucket.pay(cost.into(), now);
        self.put_back(place, whose, Some(bucket), now);
    }

    /// Returns tokens to a bucket.
    pub(super) fn refund(
        &mut self,
        place: &mut Place,
        whose: Whose,
        common: Option<Bucket>,
        (cost, now): (u32, Timestamp),
    ) {
        if let Some(mut bucket) = self.take_out(place, whose).or(common) {
            bucket.refund(cost.into(), now);
            self.put_back(place, whose, Some(bucket), now);
        }
    }

    /// Gives a bucket another rate, or forgets it if there is none any longer.
    pub(super) fn change(
        &mut self,
        place: &mut Place,
        whose: Whose,
        (rate, now): (Option<Rate>, Timestamp),
    ) {
        let former = self.take_out(place, whose);
        let bucket = former.zip(rate).map(|(former, rate)| Bucket::of(rate, Some(&former), now));
        self.put_back(place, whose, bucket, now);
    }

    /// Notes what has become of a bucket by now.
    pub(super) fn look(&mut self, place: &mut Place, whose: Whose, now: Timestamp) {
        let bucket = self.take_out(place, whose);
        self.put_back(place, whose, bucket, now);
    }

    /// Takes a bucket out of its place.
    pub(super) fn take_out(&mut self, place: &mut Place, whose: Whose) -> Option<Bucket> {
        let timed = place.take()?;
        let known = self.side(timed.is_shut).remove(&(timed.at, whose));
        assert!(known, "the bucket of {whose:?} is known");
        Some(timed.bucket)
    }

    /// Puts a bucket into its place, unless it is full.
    pub(super) fn put_back(
        &mut self,
        place: &mut Place,
        whose: Whose,
        bucket: Option<Bucket>,
        now: Timestamp,
    ) {
        let Some(bucket) = bucket else { return };
        let (opens_at, full_at) = (bucket.opens_at(), bucket.full_at());
        if full_at <= now {
            return;
        }
        let is_shut = opens_at > now;
        let at = if is_shut { opens_at } else { full_at };
        self.side(is_shut).insert((at, whose));
        *place = Some(Box::new(Timed { bucket, at, is_shut }));
    }

    fn side(&mut self, is_shut: bool) -> &mut BTreeSet<(Timestamp, Whose)> {
        if is_shut { &mut self.shut } else { &mut self.open }
    }
}

impl Timed {
    pub(super) const fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// When it opens, if it is shut.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        self.is_shut.then_some(self.at)
    }
}
