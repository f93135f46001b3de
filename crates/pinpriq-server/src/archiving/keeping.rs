//! Which files of the journals stay on disk because the archive does not have them yet, and how
//! many bytes these are.
//!
//! One keep for each shard goes along with the archive. The shards decide themselves what they need
//! besides, and give keeps up on a full disk.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Keep, ShardCut};

/// What is kept of each shard.
pub struct Kept {
    held: Vec<Held>,
    /// What the shards needed themselves at the newest cut that is archived, and its moment.
    archived: Option<(Vec<Need>, Timestamp)>,
}

struct Held {
    keep: Keep,
    /// The first segment that is kept.
    first: u32,
}

/// From where on a shard needed its segments itself, when a cut was taken: the first of them, and
/// the moment from which on they suffice.
pub(super) type Need = (u32, Timestamp);

/// Returns what each shard needed at a cut.
#[must_use]
pub fn needs_of(cuts: &[ShardCut]) -> Vec<Need> {
    cuts.iter().map(|cut| (cut.needed_from, cut.needed_since)).collect()
}

impl Kept {
    /// Holds keeps of everything, one for each shard.
    #[must_use]
    pub fn new(keeps: Vec<Keep>) -> Self {
        let held = keeps.into_iter().map(|keep| Held { keep, first: 0 }).collect();
        Self { held, archived: None }
    }

    /// Whether nothing is kept, for good.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether a shard has given up files that were not archived yet.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.held.iter().any(|held| held.keep.is_lost())
    }

    /// The first segment of a shard that stays, if any does.
    #[must_use]
    pub fn keeps_from(&self, shard: usize) -> Option<u32> {
        self.held.get(shard).filter(|held| !held.keep.is_lost()).map(|held| held.first)
    }

    /// Holds what a cut keeps in place of what was given up, except for what is archived already.
    pub fn take_over(&mut self, cuts: Vec<ShardCut>) {
        for (held, cut) in self.held.iter_mut().zip(cuts) {
            if held.keep.is_lost() && !cut.keep.is_lost() {
                let first = cut.segments.first().map_or(0, |segment| segment.number);
                *held = Held { keep: cut.keep, first };
            }
        }
        if let Some((needs, at)) = &self.archived {
            narrow(&mut self.held, needs, *at);
        }
    }

    /// Keeps no more than what a shard needed itself at a cut with this moment that is archived.
    /// Where that does not suffice for the moment itself, the next cut does it: the archive would
    /// have a gap.
    pub fn narrow(&mut self, needs: &[Need], at: Timestamp) {
        narrow(&mut self.held, needs, at);
        self.archived = Some((needs.to_vec(), at));
    }

    /// How many bytes stay for the archive alone.
    pub(super) fn backlog_bytes(&self, cuts: &[ShardCut]) -> u64 {
        let of_shard = |(held, cut): (&Held, &ShardCut)| {
            let kept = held.first..cut.needed_from;
            let segments = cut.segments.iter().filter(|it| kept.contains(&it.number));
            segments.map(|it| it.bytes).sum::<u64>()
        };
        self.held.iter().zip(cuts).map(of_shard).sum()
    }

    /// If more than `most` bytes stay for the archive alone, keeps none of them any more. Returns
    /// how many these were.
    pub fn drop_backlog(&mut self, cuts: &[ShardCut], most: u64) -> Option<u64> {
        let bytes = self.backlog_bytes(cuts);
        if bytes <= most {
            return None;
        }
        for (held, (from, since)) in self.held.iter_mut().zip(needs_of(cuts)) {
            held.narrow(from, since);
        }
        Some(bytes)
    }

    /// Keeps nothing any more.
    pub(super) fn end(&mut self) {
        self.held.clear();
    }
}

/// See [`Kept::narrow`].
fn narrow(all: &mut [Held], needs: &[Need], at: Timestamp) {
    for (held, (from, since)) in all.iter_mut().zip(needs) {
        if *since <= at {
            held.narrow(*from, *since);
        }
    }
}

impl Held {
    fn narrow(&mut self, from: u32, since: Timestamp) {
        self.keep.narrow(from, since);
        self.first = self.first.max(from);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pinpriq_store::journal::{SegmentEnd, Tap};

    use super::*;

    #[test]
    fn what_is_archived_is_not_kept_again_after_a_loss() {
        let at = Timestamp::from_ms;
        let tap = Arc::new(Tap::new(|| {}));
        let mut kept = Kept::new(vec![tap.keep_all()]);
        kept.narrow(&[(5, at(10))], at(20));
        kept.held[0].keep.give_up();
        assert!(kept.is_lost());
        assert_eq!(kept.keeps_from(0), None);
        let cut = ShardCut {
            at: at(30),
            since: at(2),
            segments: vec![SegmentEnd { number: 3, incarnation: 1, bytes: 9_000 }],
            keep: tap.keep_all(),
            needed_from: 7,
            needed_since: at(25),
        };
        kept.take_over(vec![cut]);
        assert!(!kept.is_lost());
        assert_eq!(kept.keeps_from(0), Some(5));
    }
}
