//! The interface to what the nodes know of each other: who is there, and who serves what.
//!
//! A registry may lie. It may show nodes that have died, hide nodes that live, and let two nodes
//! claim one shard. Then work is lost, and no task: the fence of each log decides who may change
//! anything.
//!
//! Everything that a node writes hangs on its session. A session that is not renewed within its
//! time to live ends, and its records vanish with it.
//!
//! The records have the form here that `docs/internals/ledger.md` says, without their version.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a shard, from 0.
pub type ShardNumber = u16;

/// One run of a node. Each process draws its own, and so does a node that has lost its session.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Instance(#[serde(with = "digits")] pub u128);

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Where a node listens, as `HOST:PORT`. Empty if it does not.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Addresses {
    /// For other nodes.
    pub link: String,
    /// For clients of RESP.
    pub resp: String,
    /// For cluster clients of RESP.
    pub resp_cluster: String,
    /// For clients of the pinpriq protocol.
    pub pinpriq: String,
}

/// What a node says about itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Which run of it. It is the key of the record.
    #[serde(skip)]
    pub instance: Instance,
    /// Its name, which it keeps from run to run.
    pub name: String,
    /// The id of its data directory.
    #[serde(with = "digits")]
    pub data: u128,
    /// Where it listens.
    #[serde(flatten)]
    pub addresses: Addresses,
    /// The SHA-256 of the certificate that it shows to other nodes. Nodes that do not encrypt have
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "fingerprint")]
    pub fingerprint: Option<[u8; 32]>,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
    /// Whether it gives up its shards and gets no new ones.
    #[serde(default)]
    pub draining: bool,
    /// Whether the logs have not answered it lately. Others do not count on it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
}

/// How far the owner of a shard has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnState {
    /// It has claimed the shard, and seizes and loads its log.
    Loading,
    /// It serves.
    Serving,
    /// It serves, and says nothing at the moment, since its log does not answer. Its record says
    /// `serving` and `suspended`.
    #[serde(skip)]
    Suspended,
    /// It gives the shard up.
    Releasing,
}

/// What the owner of a shard says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OwnRecord {
    /// The node.
    pub instance: Instance,
    /// The term of its tenure, or 0 as long as it has none.
    pub term: u64,
    /// How far it has come.
    pub state: OwnState,
}

/// Everything that a registry shows at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// The nodes whose sessions live, in order of their instances.
    pub nodes: Vec<NodeRecord>,
    /// The owner of each shard, if it has one. There are as many as the cluster has shards.
    pub owners: Vec<Option<OwnRecord>>,
    /// The nodes of these names have to drain.
    pub drained: Vec<String>,
    /// The shards with a target node, by its name, in order of the shards.
    pub targets: Vec<(ShardNumber, String)>,
    /// What is true of the cluster, if there is one.
    pub meta: Option<Meta>,
}

impl View {
    /// The roll-back of the engine that is not accepted yet, if there is one. Nothing may be
    /// served then.
    #[must_use]
    pub fn rolled_back(&self) -> Option<&RolledBack> {
        self.meta.as_ref().and_then(|meta| meta.rolled_back.as_ref())
    }
}

/// What is true of a cluster as long as it exists. Only the format, the generation and a roll-back
/// ever change, and all of it while it is imported: see [`RegistryCall::Amend`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Meta {
    /// The id of the cluster.
    #[serde(with = "digits")]
    pub id: u128,
    /// How many shards it has, at least 1.
    pub shards: u16,
    /// The version of entries and links that all nodes may write.
    pub format: u32,
    /// How often a roll-back of the engine was accepted.
    #[serde(default)]
    pub generation: u32,
    /// A roll-back that was not accepted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<RolledBack>,
    /// Whether its logs are being filled from elsewhere, or were when that was interrupted. No node
    /// may serve then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub importing: bool,
}

/// A node has found that the engine has lost what it had said to keep.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RolledBack {
    /// The name of the node.
    pub node: String,
    /// The shard in whose log it was found, if it was found in a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardNumber>,
    /// The highest generation that a node has seen.
    pub generation: u32,
    /// What the node knew to be there, for people.
    pub expected: String,
    /// What is there, for people.
    pub found: String,
}

/// What a registry is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegistryCall {
    /// Returns the [`Meta`] of the cluster. Makes this one if there is none.
    Found(Meta),
    /// Returns the [`Meta`] of the cluster, or that there is none. It sees every change that was
    /// answered before. Makes nothing.
    Find,
    /// Changes the [`Meta`] of the cluster. It is done only if it is `instead_of`. If the answer is
    /// lost it may be done later, or not.
    Amend {
        /// What is to be true from now on, of the same cluster, or instead of one whose import was
        /// interrupted.
        meta: Meta,
        /// What must be true until then.
        instead_of: Meta,
    },
    /// Opens the session of this node, with its record. If it has one, only the record is replaced.
    Announce(NodeRecord),
    /// Renews the session, and returns everything.
    Renew,
    /// Returns everything without a session.
    Look,
    /// Claims a shard that has no owner. It is done only if the record of the cluster is `meta`, so
    /// that no node begins to serve which has not seen that a roll-back was noted or accepted. The
    /// record hangs on the session of the node that asks.
    Claim {
        /// The shard.
        shard: ShardNumber,
        /// The new record.
        record: OwnRecord,
        /// The [`Meta`] that the node has seen, or that there was none.
        meta: Option<Meta>,
    },
    /// Says how far the owner of a shard has come, or puts back what it had said. It is done only
    /// if the record of the shard is `instead_of`, whatever is true of the cluster: who serves
    /// already has its log. The record hangs on the session of the node that asks.
    Own {
        /// The shard.
        shard: ShardNumber,
        /// The new record. None removes it.
        record: Option<OwnRecord>,
        /// The record that must be there, or none.
        instead_of: Option<OwnRecord>,
    },
    /// Ends the session of a node with all its records: of this one, or of one whose place it
    /// takes.
    End(Instance),
    /// Starts or stops the drain of the node of this name. This outlives every session.
    Drain {
        /// The name of the node.
        name: String,
        /// Whether it is to drain.
        drains: bool,
    },
    /// Tells a shard to move to the node of this name, or takes that back. This outlives every
    /// session.
    Target {
        /// The shard.
        shard: ShardNumber,
        /// The name of the node, or none.
        node: Option<String>,
    },
}

/// The answer of a registry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegistryAnswer {
    /// To [`RegistryCall::Found`] and [`RegistryCall::Find`].
    Meta(Meta),
    /// To [`RegistryCall::Find`] and [`RegistryCall::Amend`]: there is no cluster.
    Unfounded,
    /// To [`RegistryCall::Renew`] and [`RegistryCall::Look`].
    View(View),
    /// It is done.
    Done,
    /// The record of the shard or of the cluster is another one: nothing was done.
    Changed,
    /// The session of this node has ended: nothing was done. Announce it anew, as a new instance.
    SessionEnded,
    /// The registry did not answer. Nothing is known of what the call has done.
    Unreachable(String),
}

/// A registry as one node sees it.
pub trait Registry: Send {
    /// Starts a call. Calls are answered in their order. Never waits.
    fn start(&mut self, call: RegistryCall);

    /// Returns the next answer, if there is one. Never waits. Every call is answered after a time
    /// that the registry bounds.
    fn poll(&mut self) -> Option<RegistryAnswer>;
}

/// A number as 32 hexadecimal digits in lower case. There is one text for each.
pub(crate) mod digits {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{number:032x}"))
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<u128, D::Error> {
        read(&String::deserialize(from)?).ok_or_else(|| D::Error::custom("32 digits are expected"))
    }

    pub(crate) fn read(text: &str) -> Option<u128> {
        let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_right = text.len() == 32 && text.bytes().all(is_plain);
        is_right.then(|| u128::from_str_radix(text, 16).ok()).flatten()
    }
}

/// A fingerprint as 64 digits. Any other text is none.
mod fingerprint {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::digits::read;

    #[expect(clippy::ref_option, reason = "serde passes the field")]
    pub(super) fn serialize<S: Serializer>(
        fingerprint: &Option<[u8; 32]>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let digits = fingerprint.iter().flatten().map(|byte| format!("{byte:02x}"));
        to.serialize_str(&digits.collect::<String>())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Option<[u8; 32]>, D::Error> {
        let text = Option::<String>::deserialize(from)?.unwrap_or_default();
        let halves = text.split_at_checked(32).and_then(|(a, b)| Some((read(a)?, read(b)?)));
        Ok(halves.map(|(first, second)| {
            let (first, second) = (first.to_be_bytes(), second.to_be_bytes());
            std::array::from_fn(|at| if at < 16 { first[at] } else { second[at - 16] })
        }))
    }
}
