//! The bucket that keys have in common after a take-over, and the one that shares have.
//!
//! What the former owner has handed out last is not known of any of them. So all that have no
//! bucket of their own have one that begins empty, and it is kept once, however many they are.
//! Nobody pays from it: who pays, or gets something back, has a copy of its own from then on. Once
//! it is full, it is forgotten, like any other. Shares with a rate of their own have a bucket of
//! their own at once.

use super::openings::{Place, Timed, Whose, is_shut};
use super::rules::SharesRules;
use super::shares::Share;
use super::{Key, Roster, Turns};
use crate::memory::bucket::Bucket;
use pinpriq_proto::carried::{BucketOf, QueueBucket};
use pinpriq_proto::shares::Own;
use pinpriq_proto::time::Timestamp;

/// See the start of this file.
#[derive(Debug, Default)]
pub(super) struct Common {
    pub(super) keys: Place,
    pub(super) shares: Place,
}

impl Turns {
    /// Lets all buckets begin empty. `own` are the rules of their own that shares have. Costs
    /// O(log n) for each of these, and for each key and share that has tasks.
    pub(crate) fn begin_empty(
        &mut self,
        own: Option<&SharesRules>,
        roster: &impl Roster,
        now: Timestamp,
    ) {
        if !self.rules.is_by_key {
            return;
        }
        for whose in [Whose::EveryKey, Whose::EveryShare] {
            let bucket = self.rate(whose).map(|rate| Bucket::empty(rate, now));
            self.replace_bucket(whose, bucket, roster, now);
        }
        for (share, rules) in own.into_iter().flatten() {
            if let Own::Is(Some(rate)) = rules.rate {
                let whose = Whose::Share(self.share_of(Some(share), roster));
                self.replace_bucket(whose, Some(Bucket::empty(rate, now)), roster, now);
            }
        }
        self.conclude(roster);
    }

    /// All buckets that are kept.
    pub(crate) fn all_buckets(&self) -> impl Iterator<Item = (BucketOf, &Bucket)> {
        self.openings.all().filter_map(|whose| {
            let of = match whose {
                Whose::Key(id) => BucketOf::Key(self.keys.name(id).into()),
                Whose::Share(id) => BucketOf::Share(self.shares.name(id).into()),
                Whose::EveryKey => BucketOf::EveryKey,
                Whose::EveryShare => BucketOf::EveryShare,
            };
            Some((of, self.bucket(whose)?))
        })
    }

    /// Lets buckets hold what they have held at a moment. Costs O(log n) for each, and for each key
    /// and share that has tasks if they have one in common.
    pub(crate) fn fill(
        &mut self,
        buckets: &[QueueBucket],
        at: Timestamp,
        roster: &impl Roster,
        now: Timestamp,
    ) {
        if !self.rules.is_by_key {
            return;
        }
        for QueueBucket { of, level } in buckets {
            let whose = match of {
                BucketOf::Queue => continue,
                BucketOf::Key(name) => Whose::Key(self.key_of(name, roster)),
                BucketOf::Share(name) => Whose::Share(self.share_of(Some(name), roster)),
                BucketOf::EveryKey => Whose::EveryKey,
                BucketOf::EveryShare => Whose::EveryShare,
            };
            let bucket = self.rate(whose).map(|rate| Bucket::at_level(rate, *level, at));
            self.replace_bucket(whose, bucket, roster, now);
        }
        self.conclude(roster);
    }

    /// The bucket of a key or share that has none of its own, unless that is full.
    pub(super) fn common(&self, whose: Whose) -> Option<&Timed> {
        match whose {
            Whose::Key(_) | Whose::EveryKey => self.common.keys.as_deref(),
            Whose::Share(id) if self.shares[id].own().rate != Own::Default => None,
            Whose::Share(_) | Whose::EveryShare => self.common.shares.as_deref(),
        }
    }

    /// Whether the rate of a key holds its tasks back.
    pub(super) fn is_paced(&self, key: &Key) -> bool {
        is_shut(if key.bucket.is_some() { &key.bucket } else { &self.common.keys })
    }

    /// Whether a key without a bucket of its own waits for the common one to open.
    pub(super) fn waits_for_common(&self, key: &Key) -> bool {
        key.bucket.is_none() && is_shut(&self.common.keys)
    }

    /// Whether the limit or the rate of a share holds its tasks back.
    pub(super) fn holds_back(&self, share: &Share) -> bool {
        self.rules.is_by_key && share.is_shut(&self.rules, &self.common.shares)
    }

    /// Notes that the common bucket of keys has changed for all that have none of their own.
    pub(super) fn mark_keys_in_common(&mut self) {
        let keys = self.keys.iter().filter(|(_, key)| key.bucket.is_none());
        for id in keys.map(|(id, _)| id).collect::<Vec<_>>() {
            self.mark_stale(id);
        }
    }

    /// The same for shares.
    pub(super) fn mark_shares_in_common(&mut self, roster: &impl Roster) {
        let is_in_common = |share: &Share| !share.has_bucket() && share.own().rate == Own::Default;
        let shares = self.shares.iter().filter(|(_, share)| is_in_common(share));
        for id in shares.map(|(id, _)| id).collect::<Vec<_>>() {
            self.touch(id, roster);
        }
    }
}
