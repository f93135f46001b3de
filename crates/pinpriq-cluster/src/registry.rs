//! The interface to what the nodes know of each other: who is there, and who serves what.
//!
//! A registry may lie. It may show nodes that have died, hide nodes that live, and let two nodes
//! claim one shard. Then work is lost, and no task: the fence of each log decides who may change
//! anything.
//!
//! Everything that a node writes hangs on its session. A session that is not renewed within its
//! time to live ends, and its records vanish with it.

use std::fmt;

/// The number of a shard, from 0.
pub type ShardNumber = u16;

/// One run of a node. Each process draws its own, and so does a node that has lost its session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instance(pub u128);

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Where a node listens, as `HOST:PORT`. Empty if it does not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeRecord {
    /// Which run of it.
    pub instance: Instance,
    /// Its name, which it keeps from run to run.
    pub name: String,
    /// The id of its data directory.
    pub data: u128,
    /// Where it listens.
    pub addresses: Addresses,
    /// The SHA-256 of the certificate that it shows to other nodes. Nodes that do not encrypt have
    /// none.
    pub fingerprint: Option<[u8; 32]>,
    /// The version of the program.
    pub version: String,
    /// Whether it gives up its shards and gets no new ones.
    pub draining: bool,
    /// Whether the logs have not answered it lately. Others do not count on it then.
    pub suspended: bool,
}

/// How far the owner of a shard has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OwnState {
    /// It has claimed the shard, and seizes and loads its log.
    Loading,
    /// It serves.
    Serving,
    /// It serves, and says nothing at the moment, since its log does not answer.
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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// The id of the cluster.
    pub id: u128,
    /// How many shards it has, at least 1.
    pub shards: u16,
    /// The version of entries and links that all nodes may write.
    pub format: u32,
    /// How often a roll-back of the engine was accepted.
    pub generation: u32,
    /// A roll-back that was not accepted yet.
    pub rolled_back: Option<RolledBack>,
    /// Whether its logs are being filled from elsewhere, or were when that was interrupted. No node
    /// may serve then.
    pub importing: bool,
}

/// A node has found that the engine has lost what it had said to keep.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RolledBack {
    /// The name of the node.
    pub node: String,
    /// The shard in whose log it was found, if it was found in a log.
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
