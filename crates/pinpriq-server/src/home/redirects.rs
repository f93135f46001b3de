//! The answers to clients that ask which node of a cluster has a queue.
//!
//! Such a client keeps a map of the slots, and asks each node for what that node serves. What
//! belongs to another node is refused with its address instead of being forwarded. If that address
//! is not known, or the node does not expect such clients, the request is forwarded.

use pinpriq_cluster::slots::slot_of;
use pinpriq_proto::reply::{Refusal, RefusalKind};

use crate::host::seat::{Redirect, Undone};
use crate::letters::owners::Owners;

/// Refuses a request about this name, whose shard is `to`, if another node is to be asked for it.
pub(super) fn redirect(owners: &Owners, to: usize, name: &[u8]) -> Result<(), Undone> {
    let Some(listening) = owners.elsewhere(to) else { return Ok(()) };
    Err(Undone::Redirected(Redirect::Moved(slot_of(name), listening.to_string())))
}

/// Returns the refusal of a request whose names live in several shards.
pub(super) fn crossing(refusal: Refusal) -> Undone {
    if refusal.kind == RefusalKind::CrossShard {
        return Undone::Redirected(Redirect::CrossSlot);
    }
    Undone::Refused(refusal)
}

#[cfg(test)]
mod tests;
