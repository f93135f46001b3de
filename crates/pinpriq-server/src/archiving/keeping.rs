//! Which files of the journals stay on disk because the archive does not have them yet, and how
//! many bytes these are.
//!
//! One keep for each shard goes along with the archive. The shards decide themselves what they need
//! besides, and give keeps up on a full disk.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Keep, ShardCut};

/// What is kept of each shard.
pub(super) struct Kept {
    held: Vec<Held>,
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
pub(super) fn needs_of(cuts: &[ShardCut]) -> Vec<Need> {
    cuts.iter().map(|cut| (cut.needed_from, cut.needed_since)).collect()
}

impl Kept {
    /// Holds keeps of everything, one for each shard.
    pub(super) fn new(keeps: Vec<Keep>) -> Self {
        Self { held: keeps.into_iter().map(|keep| Held { keep, first: 0 }).collect() }
    }

    /// Whether a shard has given up files that were not archived yet.
    pub(super) fn is_lost(&self) -> bool {
        self.held.iter().any(|held| held.keep.is_lost())
    }

    /// Holds what a cut keeps in place of what was given up.
    pub(super) fn take_over(&mut self, cuts: Vec<ShardCut>) {
        for (held, cut) in self.held.iter_mut().zip(cuts) {
            if held.keep.is_lost() && !cut.keep.is_lost() {
                let first = cut.segments.first().map_or(0, |segment| segment.number);
                *held = Held { keep: cut.keep, first };
            }
        }
    }

    /// Keeps no more than what a shard needed itself at a cut with this moment that is archived.
    /// Where that does not suffice for the moment itself, the next cut does it: the archive would
    /// have a gap.
    pub(super) fn narrow(&mut self, needs: &[Need], at: Timestamp) {
        for (held, (from, since)) in self.held.iter_mut().zip(needs) {
            if *since <= at {
                held.narrow(*from, *since);
            }
        }
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
    pub(super) fn drop_backlog(&mut self, cuts: &[ShardCut], most: u64) -> Option<u64> {
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

impl Held {
    fn narrow(&mut self, from: u32, since: Timestamp) {
        self.keep.narrow(from, since);
        self.first = self.first.max(from);
    }
}
