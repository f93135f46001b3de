//! Addresses of tasks and queues in memory, and hashes of keys: what the indexes hold. What stands
//! at an address is not known here.

use std::num::NonZeroU32;

/// The address of a task.
// One more than the index, so that a slot that may be missing takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(pub(super) NonZeroU32);

/// The address of a queue for as long as its object is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct QueueSlot(pub(super) u32);

/// The hash of a key, under a seed that nobody outside knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct KeyHash(pub(super) u64);
