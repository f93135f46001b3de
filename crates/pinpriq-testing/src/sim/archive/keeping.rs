//! Which files of the simulated journal stay because the archive does not have them yet.
//!
//! The rules are those of the server (`archiving/keeping.rs` there), for one shard. What the shard
//! needs itself is its own business.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Keep, ShardCut};

/// From where on a shard needed its segments itself, when a cut was taken: the first of them, and
/// the moment from which on they suffice.
pub(super) type Need = (u32, Timestamp);

/// What is kept of a shard.
pub(super) struct Kept {
    keep: Keep,
    /// The first segment that is kept.
    first: u32,
    /// What the shard needed itself at the newest cut that is archived, and its moment.
    archived: Option<(Need, Timestamp)>,
}

impl Kept {
    /// Holds a keep of everything.
    pub(super) fn new(keep: Keep) -> Self {
        Self { keep, first: 0, archived: None }
    }

    /// Whether the shard has given up files that were not archived yet.
    pub(super) fn is_lost(&self) -> bool {
        self.keep.is_lost()
    }

    /// The first segment that is kept, if any is.
    pub(super) fn keeps_from(&self) -> Option<u32> {
        (!self.is_lost()).then_some(self.first)
    }

    /// Holds what a cut keeps in place of what was given up, except for what is archived already.
    pub(super) fn take_over(&mut self, cut: ShardCut) {
        if self.is_lost() && !cut.keep.is_lost() {
            self.first = cut.segments.first().map_or(0, |segment| segment.number);
            self.keep = cut.keep;
        }
        if let Some((need, at)) = self.archived {
            self.keep_less(need, at);
        }
    }

    /// Keeps no more than what the shard needed itself at a cut with this moment that is archived.
    pub(super) fn narrow(&mut self, need: Need, at: Timestamp) {
        self.keep_less(need, at);
        self.archived = Some((need, at));
    }

    /// Where what the shard needed does not suffice for the moment itself, the next cut does it.
    fn keep_less(&mut self, (from, since): Need, at: Timestamp) {
        if since <= at {
            self.keep.narrow(from, since);
            self.first = self.first.max(from);
        }
    }

    /// If more than `most` bytes stay for the archive alone, keeps none of them any more. Returns
    /// whether it was so.
    pub(super) fn drop_backlog(&mut self, cut: &ShardCut, most: u64) -> bool {
        let kept = self.first..cut.needed_from;
        let segments = cut.segments.iter().filter(|it| kept.contains(&it.number));
        if segments.map(|it| it.bytes).sum::<u64>() <= most {
            return false;
        }
        self.keep.narrow(cut.needed_from, cut.needed_since);
        self.first = self.first.max(cut.needed_from);
        true
    }
}
