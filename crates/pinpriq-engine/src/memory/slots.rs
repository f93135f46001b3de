//! Addresses of tasks and queues in memory, and hashes of keys. The indexes hold these. This module
//! knows nothing about what is at an address.

use std::num::NonZeroU32;

/// The address of a task.
// Stores the index plus one, so that an `Option` of it takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(pub(super) NonZeroU32);

/// The address of a queue while its object exists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct QueueSlot(pub(super) u32);

/// The hash of a key, with a seed that no one outside knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct KeyHash(pub(super) u64);
