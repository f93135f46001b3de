//! What a transaction has changed about turns so far, as it was before.
//!
//! Only what does not follow from the tasks is noted. Once the tasks are what they were, so are the
//! pairs, and then they get back what they had.

use std::collections::BTreeMap;

use super::named::Id;
use super::openings::Whose;
use super::pairs::Account;
use super::wide::Wide;
use super::{Roster, Turns};
use crate::memory::bucket::Bucket;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;

/// The notes of one transaction. Whatever is noted twice stays as it was noted first.
#[derive(Debug)]
pub(super) struct Notes {
    served: u64,
    /// `None` for pairs that were not there.
    pairs: BTreeMap<(Bytes, i64), Option<Account>>,
    levels: BTreeMap<i64, Wide>,
    /// `None` for buckets that were full.
    keys: BTreeMap<Bytes, Option<Bucket>>,
    shares: BTreeMap<Bytes, Option<Bucket>>,
}

impl Turns {
    /// Begins to note what changes, for [`Turns::undo`]. What has opened by now stays open.
    pub(crate) fn begin_notes(&mut self, roster: &impl Roster, now: Timestamp) {
        self.advance(roster, now);
        self.notes = Some(Box::new(Notes {
            served: self.served,
            pairs: BTreeMap::new(),
            levels: BTreeMap::new(),
            keys: BTreeMap::new(),
            shares: BTreeMap::new(),
        }));
    }

    /// Forgets the notes. What has changed stays.
    pub(crate) fn end_notes(&mut self) {
        self.notes = None;
    }

    /// Makes turns what they were when the notes began. The tasks are what they were already.
    pub(crate) fn undo(&mut self, roster: &impl Roster, now: Timestamp) {
        let Some(notes) = self.notes.take() else { return };
        let Notes { served, pairs, levels, keys, shares } = *notes;
        for (name, bucket) in keys {
            let key = self.key_of(&name, roster);
            self.replace_bucket(Whose::Key(key), bucket, roster, now);
        }
        for (name, bucket) in shares {
            let share = self.share_of(Some(&name), roster);
            self.replace_bucket(Whose::Share(share), bucket, roster, now);
        }
        self.conclude(roster);
        self.served = served;
        for ((name, number), account) in pairs {
            let share = self.share_of(Some(&name), roster);
            let pair = self.touch(share, roster).pairs.find_mut(number);
            debug_assert_eq!(pair.is_some(), account.is_some(), "pairs follow from the tasks");
            if let Some((pair, account)) = pair.zip(account) {
                pair.account = account;
            }
        }
        for (number, reached) in levels {
            if let Some(level) = self.levels.find_mut(number) {
                level.reached = reached;
            }
        }
        self.conclude(roster);
    }

    /// Notes a pair that is about to change, come or go.
    pub(super) fn note_pair(&mut self, share: Id, number: i64) {
        if let Some(notes) = &mut self.notes {
            let account = self.shares[share].pairs.find(number).map(|pair| pair.account);
            notes.pairs.entry((self.shares.name(share).into(), number)).or_insert(account);
        }
    }

    /// Notes what has been reached at a number, before that changes.
    pub(super) fn note_level(&mut self, number: i64) {
        let Some(level) = self.levels.find(number) else { return };
        if let Some(notes) = &mut self.notes {
            notes.levels.entry(number).or_insert(level.reached);
        }
    }

    /// Notes a bucket that is about to change.
    pub(super) fn note_bucket(&mut self, whose: Whose) {
        if self.notes.is_none() {
            return;
        }
        let bucket = self.bucket(whose).cloned();
        let Some(notes) = &mut self.notes else { return };
        let (buckets, name) = match whose {
            Whose::Key(id) => (&mut notes.keys, self.keys.name(id)),
            Whose::Share(id) => (&mut notes.shares, self.shares.name(id)),
            // Nobody pays from them.
            Whose::EveryKey | Whose::EveryShare => return,
        };
        buckets.entry(name.into()).or_insert(bucket);
    }
}
