//! What is left of a queue that was emptied at once, until it is freed. It only holds the data.

use crate::memory::indexes::Indexes;
use crate::memory::share_counts::ShareCounts;
use crate::memory::slots::Slot;
use crate::memory::tallies::Tallies;
use crate::memory::tasks::Tasks;
use crate::memory::turns::Turns;

/// The indexes of a queue at the moment when it was emptied.
#[derive(Debug)]
pub(crate) struct Discarded {
    /// The epoch of these tasks.
    pub(crate) epoch: u32,
    pub(crate) indexes: Indexes,
    /// Its turns, if it had some.
    pub(crate) turns: Option<Box<Turns>>,
    /// How many tasks its shares had, if that was counted.
    pub(crate) share_counts: Option<ShareCounts>,
    /// What was counted about its shares.
    pub(crate) tallies: Option<Box<Tallies>>,
    /// The number of tasks that are left.
    pub(crate) remaining: u64,
}

impl Discarded {
    pub(crate) fn remove(&mut self, slot: Slot, tasks: &Tasks) {
        self.indexes.remove(slot, tasks);
        self.indexes.remove_id(&tasks[slot].id());
        self.remaining -= 1;
        if let Some(turns) = &mut self.turns {
            turns.free_some();
        }
        if let Some(counts) = &mut self.share_counts {
            counts.free_some();
        }
        if let Some(tallies) = &mut self.tallies {
            tallies.free_some();
        }
    }
}
