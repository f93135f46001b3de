//! The records of a registry as bytes, the same on every engine: objects in JSON with a version.
//!
//! A newer node may add members to the objects, which older ones ignore. It raises the version only
//! if older nodes must not read the record. What cannot be read counts as not there. The reference
//! is `docs/internals/ledger.md`.

use crate::{
    Addresses, Instance, Meta, NodeRecord, OwnRecord, OwnState, RolledBack, ShardNumber, View,
};
use serde::{Deserialize, Serialize};

/// The version that is written, and the highest that is read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct MetaText {
    v: u32,
    id: String,
    shards: u16,
    format: u32,
    #[serde(default)]
    generation: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rolled_back: Option<RolledBackText>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    importing: bool,
}

#[derive(Serialize, Deserialize)]
struct RolledBackText {
    node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<u16>,
    generation: u32,
    expected: String,
    found: String,
}

#[derive(Serialize, Deserialize)]
struct TargetText {
    v: u32,
    node: String,
}

#[derive(Serialize, Deserialize)]
struct NodeText {
    v: u32,
    name: String,
    data: String,
    #[serde(default)]
    link: String,
    #[serde(default)]
    resp: String,
    #[serde(default)]
    resp_cluster: String,
    #[serde(default)]
    pinpriq: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(default)]
    version: String,
    #[serde(default)]
    draining: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    suspended: bool,
}

#[derive(Serialize, Deserialize)]
struct OwnText {
    v: u32,
    instance: String,
    term: u64,
    state: StateText,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    suspended: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StateText {
    Loading,
    Serving,
    Releasing,
}

/// Returns what is true of a cluster as bytes.
#[must_use]
pub fn meta_bytes(meta: &Meta) -> Vec<u8> {
    json(&MetaText {
        v: VERSION,
        id: digits(meta.id),
        shards: meta.shards,
        format: meta.format,
        generation: meta.generation,
        rolled_back: meta.rolled_back.clone().map(|it| {
            let RolledBack { node, shard, generation, expected, found } = it;
            RolledBackText { node, shard, generation, expected, found }
        }),
        importing: meta.importing,
    })
}

/// Reads what is true of a cluster. None if it cannot be read, or names no shard.
#[must_use]
pub fn read_meta(bytes: &[u8]) -> Option<Meta> {
    let text: MetaText = serde_json::from_slice(bytes).ok()?;
    let MetaText { v, shards, format, generation, rolled_back, importing, .. } = text;
    let rolled_back = rolled_back.map(|it| {
        let RolledBackText { node, shard, generation, expected, found } = it;
        RolledBack { node, shard, generation, expected, found }
    });
    let (is_right, id) = (v <= VERSION && shards > 0, number(&text.id)?);
    is_right.then_some(Meta { id, shards, format, generation, rolled_back, importing })
}

/// Returns what a node says as bytes. Its instance is not in them: it is the key of the record.
#[must_use]
pub fn node_bytes(node: &NodeRecord) -> Vec<u8> {
    let node = node.clone();
    json(&NodeText {
        v: VERSION,
        name: node.name,
        data: digits(node.data),
        link: node.addresses.link,
        resp: node.addresses.resp,
        resp_cluster: node.addresses.resp_cluster,
        pinpriq: node.addresses.pinpriq,
        fingerprint: node.fingerprint.map(fingerprint_digits),
        version: node.version,
        draining: node.draining,
        suspended: node.suspended,
    })
}

/// Reads what the node of this instance says. None if it cannot be read.
#[must_use]
pub fn read_node(instance: Instance, bytes: &[u8]) -> Option<NodeRecord> {
    let text: NodeText = serde_json::from_slice(bytes).ok()?;
    let data = number(&text.data).filter(|_| text.v <= VERSION)?;
    let fingerprint = text.fingerprint.as_deref().and_then(read_fingerprint);
    let NodeText { name, link, resp, resp_cluster, pinpriq, version, draining, suspended, .. } =
        text;
    let addresses = Addresses { link, resp, resp_cluster, pinpriq };
    Some(NodeRecord { instance, name, data, addresses, fingerprint, version, draining, suspended })
}

/// Returns what the owner of a shard says as bytes.
#[must_use]
pub fn own_bytes(own: &OwnRecord) -> Vec<u8> {
    let state = match own.state {
        OwnState::Loading => StateText::Loading,
        // Older nodes do not know the difference.
        OwnState::Serving | OwnState::Suspended => StateText::Serving,
        OwnState::Releasing => StateText::Releasing,
    };
    let (instance, suspended) = (own.instance.to_string(), own.state == OwnState::Suspended);
    json(&OwnText { v: VERSION, instance, term: own.term, state, suspended })
}

/// Reads what the owner of a shard says. None if it cannot be read.
#[must_use]
pub fn read_own(bytes: &[u8]) -> Option<OwnRecord> {
    let text: OwnText = serde_json::from_slice(bytes).ok()?;
    let instance = read_instance(&text.instance).filter(|_| text.v <= VERSION)?;
    let state = match text.state {
        StateText::Loading => OwnState::Loading,
        StateText::Serving if text.suspended => OwnState::Suspended,
        StateText::Serving => OwnState::Serving,
        StateText::Releasing => OwnState::Releasing,
    };
    Some(OwnRecord { instance, term: text.term, state })
}

/// Returns the name of the node that is the target of a shard as bytes.
#[must_use]
pub fn target_bytes(node: &str) -> Vec<u8> {
    json(&TargetText { v: VERSION, node: node.to_owned() })
}

/// Reads the name of the node that is the target of a shard. None if it cannot be read.
#[must_use]
pub fn read_target(bytes: &[u8]) -> Option<String> {
    let text: TargetText = serde_json::from_slice(bytes).ok()?;
    (text.v <= VERSION).then_some(text.node)
}

/// Reads an instance as [`Instance`] displays itself: 32 hexadecimal digits in lower case.
#[must_use]
pub fn read_instance(text: &str) -> Option<Instance> {
    number(text).map(Instance)
}

/// Puts a [`View`] together, in any order.
#[derive(Debug, Default)]
pub struct ViewBuilder {
    view: View,
    owners: Vec<(ShardNumber, OwnRecord)>,
}

impl ViewBuilder {
    /// Says what is true of the cluster. Without it there are no shards.
    pub fn meta(&mut self, meta: Meta) {
        self.view.meta = Some(meta);
    }

    /// Adds a node.
    pub fn node(&mut self, node: NodeRecord) {
        self.view.nodes.push(node);
    }

    /// Adds the owner of a shard.
    pub fn owner(&mut self, shard: ShardNumber, own: OwnRecord) {
        self.owners.push((shard, own));
    }

    /// Adds the name of a node that has to drain.
    pub fn drained(&mut self, name: String) {
        self.view.drained.push(name);
    }

    /// Adds the name of the node that is the target of a shard.
    pub fn target(&mut self, shard: ShardNumber, node: String) {
        self.view.targets.push((shard, node));
    }

    /// Returns the view. Owners of shards that there are not are left out.
    #[must_use]
    pub fn finish(self) -> View {
        let Self { mut view, owners } = self;
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
}

fn json(text: &impl Serialize) -> Vec<u8> {
    // Texts and numbers can always be written.
    serde_json::to_vec(text).unwrap_or_default()
}

fn digits(number: u128) -> String {
    format!("{number:032x}")
}

fn fingerprint_digits(fingerprint: [u8; 32]) -> String {
    let half = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    digits(half(&fingerprint[..16])) + &digits(half(&fingerprint[16..]))
}

fn read_fingerprint(text: &str) -> Option<[u8; 32]> {
    let (first, second) = text.split_at_checked(32)?;
    let mut fingerprint = [0; 32];
    fingerprint[..16].copy_from_slice(&number(first)?.to_be_bytes());
    fingerprint[16..].copy_from_slice(&number(second)?.to_be_bytes());
    Some(fingerprint)
}

/// Reads 32 hexadecimal digits. There is one text for each number.
fn number(text: &str) -> Option<u128> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_right = text.len() == 32 && text.bytes().all(is_plain);
    is_right.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests;
