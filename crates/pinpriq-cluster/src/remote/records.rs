//! The records of a registry as bytes, the same on every engine: objects in JSON with a version.
//!
//! A newer node may add members to the objects, which older ones ignore. It raises the version only
//! if older nodes must not read the record. What cannot be read counts as not there. The reference
//! is `docs/internals/ledger.md`.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::registry::digits;
use crate::{Instance, Meta, NodeRecord, OwnRecord, OwnState, ShardNumber, View};

/// The version that is written, and the highest that is read.
const VERSION: u32 = 1;

/// A record as it is written.
#[derive(Serialize)]
struct Written<T> {
    v: u32,
    #[serde(flatten)]
    record: T,
}

/// What is read of a record first.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

fn bytes(record: impl Serialize) -> Vec<u8> {
    // Texts and numbers can always be written.
    serde_json::to_vec(&Written { v: VERSION, record }).unwrap_or_default()
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let Version { v } = serde_json::from_slice(bytes).ok()?;
    serde_json::from_slice(bytes).ok().filter(|_| v <= VERSION)
}

#[derive(Serialize, Deserialize)]
struct Target {
    node: String,
}

#[derive(Serialize, Deserialize)]
struct Own {
    instance: Instance,
    term: u64,
    state: OwnState,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    suspended: bool,
}

/// Returns what is true of a cluster as bytes.
#[must_use]
pub fn meta_bytes(meta: &Meta) -> Vec<u8> {
    bytes(meta)
}

/// Reads what is true of a cluster. None if it cannot be read, or names no shard.
#[must_use]
pub fn read_meta(bytes: &[u8]) -> Option<Meta> {
    read(bytes).filter(|meta: &Meta| meta.shards > 0)
}

/// Returns what a node says as bytes. Its instance is not in them: it is the key of the record.
#[must_use]
pub fn node_bytes(node: &NodeRecord) -> Vec<u8> {
    bytes(node)
}

/// Reads what the node of this instance says. None if it cannot be read.
#[must_use]
pub fn read_node(instance: Instance, bytes: &[u8]) -> Option<NodeRecord> {
    read(bytes).map(|node: NodeRecord| NodeRecord { instance, ..node })
}

/// Returns what the owner of a shard says as bytes.
#[must_use]
pub fn own_bytes(own: &OwnRecord) -> Vec<u8> {
    let OwnRecord { instance, term, state } = *own;
    let suspended = state == OwnState::Suspended;
    // Older nodes do not know the difference.
    let state = if suspended { OwnState::Serving } else { state };
    bytes(Own { instance, term, state, suspended })
}

/// Reads what the owner of a shard says. None if it cannot be read.
#[must_use]
pub fn read_own(bytes: &[u8]) -> Option<OwnRecord> {
    let Own { instance, term, state, suspended } = read(bytes)?;
    let is_suspended = suspended && state == OwnState::Serving;
    let state = if is_suspended { OwnState::Suspended } else { state };
    Some(OwnRecord { instance, term, state })
}

/// Returns the name of the node that is the target of a shard as bytes.
#[must_use]
pub fn target_bytes(node: &str) -> Vec<u8> {
    bytes(Target { node: node.to_owned() })
}

/// Reads the name of the node that is the target of a shard. None if it cannot be read.
#[must_use]
pub fn read_target(bytes: &[u8]) -> Option<String> {
    read(bytes).map(|Target { node }| node)
}

/// Reads an instance as [`Instance`] displays itself: 32 hexadecimal digits in lower case.
#[must_use]
pub fn read_instance(text: &str) -> Option<Instance> {
    digits::read(text).map(Instance)
}

/// Puts what was read of a registry in order, and adds the owners. Those of shards that there are
/// not are left out, and so are such targets.
#[must_use]
pub fn in_order(mut view: View, owners: Vec<(ShardNumber, OwnRecord)>) -> View {
    let shards = view.meta.as_ref().map_or(0, |meta| meta.shards);
    view.nodes.sort_unstable_by_key(|node| node.instance);
    view.drained.sort_unstable();
    view.targets.sort_unstable();
    view.targets.retain(|(shard, _)| *shard < shards);
    view.owners = vec![None; usize::from(shards)];
    for (shard, own) in owners {
        if let Some(owner) = view.owners.get_mut(usize::from(shard)) {
            *owner = Some(own);
        }
    }
    view
}

#[cfg(test)]
mod tests;
