//! Where cluster clients of RESP find the shards, as one node knows it: which node serves which
//! shard now, and where each listens for cluster clients.
//!
//! Who serves what comes from the links, and the addresses come from the registry. Both may be
//! late.
//! A client that was sent to a former owner is sent on from there, or served by way of it. This
//! module decides nothing and makes no calls.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use pinpriq_cluster::slots::slots_of_shard;
use pinpriq_cluster::{Instance, NodeRecord};
use pinpriq_proto::reply::{Refusal, RefusalKind};
use tokio::sync::{Semaphore, oneshot};

use crate::facts::cluster::{ClusterFacts, LogFacts, Report};

/// Carries out what an operator asks of the cluster, in the words of `pinpriq cluster`, behind
/// `TEXT` or `JSON`. Blocks, for up to two minutes. Must not be called on a thread of an async
/// runtime.
pub type Administer = Arc<dyn Fn(&[String]) -> Administered + Send + Sync>;

/// What came of what an operator has asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Administered {
    /// The code with which `pinpriq cluster` ends.
    pub code: u8,
    /// What it prints.
    pub text: String,
    /// Why it has failed, if it has.
    pub failure: Option<String>,
}

/// Who serves a shard now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Owner {
    /// No known node.
    #[default]
    Unknown,
    /// This node.
    Here,
    /// The node with this instance.
    Node(u128),
}

/// Where cluster clients connect to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listening {
    /// A name or an address. Not in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A node as cluster clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) instance: Instance,
    pub(crate) name: String,
    /// Whether it is this node.
    pub(crate) is_own: bool,
    /// Where it listens for cluster clients, if it does.
    pub(crate) clients: Option<Listening>,
    /// The port for other nodes, or 0.
    pub(crate) link_port: u16,
}

/// Consecutive slots for which clients ask one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// The first slot.
    pub(crate) first: u16,
    /// The last slot.
    pub(crate) last: u16,
    /// The place of the node in [`Map::nodes`].
    pub(crate) node: usize,
}

/// All nodes, and for which slots each is asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Map {
    /// The nodes in order of their instances.
    pub(crate) nodes: Vec<Seen>,
    /// The slots in order. Empty if no node listens for cluster clients.
    pub(crate) runs: Vec<Run>,
    /// How many slots belong to shards with a known owner.
    pub(crate) slots_owned: u16,
}

/// See the start of this file.
pub(crate) struct Owners {
    shards: RefCell<Vec<Known>>,
    nodes: RefCell<Vec<Seen>>,
    report: Cell<Report>,
    forwarded: Cell<u64>,
    /// What asks the engine for operators, if it can be asked.
    administer: RefCell<Option<Administer>>,
    operations: Arc<Semaphore>,
}

/// What is known of a shard.
#[derive(Clone, Copy, Default)]
struct Known {
    owner: Owner,
    /// The highest term that is known, or 0.
    term: u64,
    /// How its log fares, as the other node that serves it has told last.
    log: Option<LogFacts>,
}

/// How many operators may ask the engine at once by way of this node.
const OPERATIONS_MAX: usize = 4;

impl Owners {
    /// Returns the table of a cluster with this number of shards, none of which has an owner yet.
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            shards: RefCell::new(vec![Known::default(); shards]),
            nodes: RefCell::default(),
            report: Cell::default(),
            forwarded: Cell::default(),
            administer: RefCell::default(),
            operations: Arc::new(Semaphore::new(OPERATIONS_MAX)),
        }
    }

    /// Lets operators ask the engine.
    pub(crate) fn note_engine(&self, administer: Administer) {
        self.administer.replace(Some(administer));
    }

    /// Asks the engine for an operator, on a thread of its own. Refuses if too many do so.
    pub(crate) fn administer(
        &self,
        words: Vec<String>,
    ) -> Result<impl Future<Output = Administered> + use<>, Refusal> {
        let busy = |why: &str| Refusal::new(RefusalKind::Busy, why.to_owned());
        let administer = self.administer.borrow().clone();
        let administer = administer.ok_or_else(|| busy("this node cannot ask its engine"))?;
        let place = self.operations.clone().try_acquire_owned();
        let place = place.map_err(|_| busy("others ask the engine by way of this node"))?;
        let (tell, told) = oneshot::channel();
        let work = move || {
            let _place = place;
            // Who asked may have gone.
            _ = tell.send(administer(&words));
        };
        let thread = std::thread::Builder::new().name("operator".to_owned()).spawn(work);
        thread.map_err(|_| busy("the system has no thread for this"))?;
        Ok(async { told.await.unwrap_or_default() })
    }

    /// Notes which nodes there are: this one, and what the registry shows, which may include it.
    pub(crate) fn note_nodes(&self, own: &NodeRecord, shown: &[NodeRecord]) {
        let others = shown.iter().filter(|node| node.instance != own.instance);
        let mut nodes: Vec<Seen> = others.map(|node| seen(node, false)).collect();
        nodes.push(seen(own, true));
        nodes.sort_by_key(|node| node.instance);
        *self.nodes.borrow_mut() = nodes;
    }

    /// Notes who serves a shard now.
    pub(crate) fn note_owner(&self, shard: usize, owner: Owner) {
        self.note(shard, |known| (known.owner, known.log) = (owner, None));
    }

    /// Notes how the log of a shard fares that another node serves.
    pub(crate) fn note_log(&self, log: LogFacts) {
        self.note(log.shard, |known| known.log = Some(log));
    }

    /// Notes the highest term of a shard.
    pub(crate) fn note_term(&self, shard: usize, term: u64) {
        self.note(shard, |known| known.term = term);
    }

    fn note(&self, shard: usize, note: impl FnOnce(&mut Known)) {
        if let Some(known) = self.shards.borrow_mut().get_mut(shard) {
            note(known);
        }
    }

    /// Notes how this node fares.
    pub(crate) fn note_report(&self, report: Report) {
        self.report.set(report);
    }

    /// Counts requests that are asked of another node.
    pub(crate) fn count_forwarded(&self, requests: usize) {
        self.forwarded.set(self.forwarded.get() + requests as u64);
    }

    /// Returns where the owner of a shard listens for cluster clients, if that is another node, is
    /// known, and does.
    pub(crate) fn elsewhere(&self, shard: usize) -> Option<Listening> {
        let shards = self.shards.borrow();
        let Owner::Node(instance) = shards.get(shard)?.owner else { return None };
        let nodes = self.nodes.borrow();
        let node = nodes.iter().find(|node| node.instance.0 == instance && !node.is_own)?;
        node.clients.clone()
    }

    /// Returns the instance of this node, once it is known.
    pub(crate) fn own(&self) -> Option<Instance> {
        self.nodes.borrow().iter().find(|node| node.is_own).map(|node| node.instance)
    }

    /// Returns all nodes and their slots.
    ///
    /// Every node carries out every request, or has it carried out. So a shard whose owner is not
    /// known or does not listen for cluster clients counts as one of this node, and if that does
    /// not listen for them either, as one of any other node that does.
    pub(crate) fn map(&self) -> Map {
        let nodes = self.nodes.borrow().clone();
        let shards = self.shards.borrow();
        let listening: Vec<usize> =
            (0..nodes.len()).filter(|at| nodes[*at].clients.is_some()).collect();
        let place_of = |owner: Owner| {
            let is_it = |at: &usize| match owner {
                Owner::Unknown => false,
                Owner::Here => nodes[*at].is_own,
                Owner::Node(instance) => nodes[*at].instance.0 == instance,
            };
            listening.iter().copied().find(is_it)
        };
        let (mut runs, mut slots_owned): (Vec<Run>, u16) = (Vec::new(), 0);
        for (shard, Known { owner, .. }) in shards.iter().enumerate() {
            let (first, end) = slots_of_shard(shard, shards.len());
            if *owner != Owner::Unknown {
                slots_owned += end - first;
            }
            let any = || listening.get(shard % listening.len().max(1)).copied();
            let node = place_of(*owner).or_else(|| place_of(Owner::Here)).or_else(any);
            let Some(node) = node else { continue };
            match runs.last_mut().filter(|run| run.node == node && run.last + 1 == first) {
                Some(run) => run.last = end - 1,
                None => runs.push(Run { first, last: end - 1, node }),
            }
        }
        drop(shards);
        Map { nodes, runs, slots_owned }
    }

    /// Returns what is known, in numbers.
    pub(crate) fn facts(&self) -> ClusterFacts {
        let (nodes, shards) = (self.nodes.borrow(), self.shards.borrow());
        let name_of = |is_it: &dyn Fn(&Seen) -> bool| {
            nodes.iter().find(|node| is_it(node)).map(|node| node.name.clone())
        };
        let owner_of = |known: &Known| match known.owner {
            Owner::Unknown => None,
            Owner::Here => name_of(&|node| node.is_own),
            Owner::Node(instance) => name_of(&|node| node.instance.0 == instance),
        };
        let count = |wanted| shards.iter().filter(|known| known.owner == wanted).count() as u64;
        ClusterFacts {
            node: name_of(&|node| node.is_own).unwrap_or_default(),
            nodes: nodes.len() as u64,
            shards: shards.len() as u64,
            served: count(Owner::Here),
            ownerless: count(Owner::Unknown),
            owners: shards.iter().map(owner_of).collect(),
            terms: shards.iter().map(|known| known.term).collect(),
            logs: shards.iter().filter_map(|known| known.log).collect(),
            forwarded: self.forwarded.get(),
            report: self.report.get(),
        }
    }
}

impl Seen {
    /// Returns its id for cluster clients: 40 hexadecimal digits, as in Redis.
    pub(crate) fn id(&self) -> String {
        id_of(self.instance)
    }
}

impl Map {
    /// Returns the slots for which a node is asked.
    pub(crate) fn runs_of(&self, node: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.node == node)
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Returns the id of a node for cluster clients.
pub(crate) fn id_of(instance: Instance) -> String {
    format!("{:040x}", instance.0)
}

fn seen(node: &NodeRecord, is_own: bool) -> Seen {
    let link_port = listening(&node.addresses.link).map_or(0, |link| link.port);
    let clients = listening(&node.addresses.resp_cluster);
    Seen { instance: node.instance, name: node.name.clone(), is_own, clients, link_port }
}

/// Takes an address of a record apart. Clients expect the address of a host without brackets.
fn listening(address: &str) -> Option<Listening> {
    let (host, port) = address.rsplit_once(':')?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = inner.unwrap_or(host).to_owned();
    let is_plain = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    let port = port.parse().ok().filter(|port| *port > 0)?;
    is_plain.then_some(Listening { host, port })
}

#[cfg(test)]
mod tests {
    use pinpriq_cluster::Addresses;

    use super::*;

    fn node(instance: u128, resp_cluster: &str) -> NodeRecord {
        let addresses = Addresses {
            link: format!("10.0.0.{instance}:7253"),
            resp_cluster: resp_cluster.to_owned(),
            ..Addresses::default()
        };
        let name = format!("node-{instance}");
        NodeRecord { instance: Instance(instance), name, addresses, ..NodeRecord::default() }
    }

    /// A cluster of four shards and three nodes. This is the second one.
    fn owners(own: &str, first: &str, third: &str) -> Owners {
        let owners = Owners::new(4);
        let (own, shown) = (node(2, own), [node(3, third), node(2, own), node(1, first)]);
        owners.note_nodes(&own, &shown);
        owners
    }

    fn runs(owners: &Owners) -> Vec<(u16, u16, u128)> {
        let map = owners.map();
        let shown = |run: &Run| (run.first, run.last, map.nodes[run.node].instance.0);
        map.runs.iter().map(shown).collect()
    }

    #[test]
    fn a_client_is_sent_to_the_owner_of_now() {
        let owners = owners("b:2", "a:1", "[fd00::3]:3");
        assert_eq!(owners.elsewhere(0), None);
        let now = |owner| {
            owners.note_owner(0, owner);
            owners.elsewhere(0).map(|to| to.to_string())
        };
        assert_eq!(now(Owner::Node(1)).as_deref(), Some("a:1"));
        assert_eq!(now(Owner::Unknown), None);
        assert_eq!(now(Owner::Node(3)).as_deref(), Some("fd00::3:3"));
        assert_eq!(now(Owner::Node(1)).as_deref(), Some("a:1"));
        assert_eq!(now(Owner::Here), None);
        assert_eq!(now(Owner::Node(9)), None, "a node that the registry does not show yet");
        assert_eq!(owners.elsewhere(1), None);
        assert_eq!(owners.elsewhere(4), None);
    }

    #[test]
    fn no_client_is_sent_where_no_cluster_client_is_expected() {
        for useless in ["", "a", "a:", ":1", "a:0", "a:70000", "a b:1", "a\r\n:1"] {
            let owners = owners("b:2", useless, "c:3");
            owners.note_owner(0, Owner::Node(1));
            assert_eq!(owners.elsewhere(0), None, "{useless:?}");
            assert_eq!(runs(&owners), [(0, 16_383, 2)], "{useless:?}");
        }
    }

    #[test]
    fn every_slot_has_a_node_as_long_as_any_listens() {
        let all = owners("b:2", "a:1", "c:3");
        assert_eq!(runs(&all), [(0, 16_383, 2)], "this node knows of no owner");
        for (shard, owner) in [(0, Owner::Node(1)), (1, Owner::Node(1)), (2, Owner::Here)] {
            all.note_owner(shard, owner);
        }
        assert_eq!(runs(&all), [(0, 8_191, 1), (8_192, 16_383, 2)]);
        assert_eq!(all.map().slots_owned, 12_288);
        all.note_owner(3, Owner::Node(3));
        assert_eq!(runs(&all), [(0, 8_191, 1), (8_192, 12_287, 2), (12_288, 16_383, 3)]);

        let deaf = owners("", "a:1", "c:3");
        deaf.note_owner(0, Owner::Node(3));
        deaf.note_owner(1, Owner::Here);
        assert_eq!(runs(&deaf), [(0, 8_191, 3), (8_192, 12_287, 1), (12_288, 16_383, 3)]);
        let none = owners("", "", "");
        assert_eq!((runs(&none), none.map().nodes.len()), (Vec::new(), 3));
    }

    #[test]
    fn a_node_is_known_by_forty_digits() {
        let owners = owners("b:2", "a:1", "c:3");
        let own = owners.own().map(id_of);
        assert_eq!(own.as_deref(), Some("0000000000000000000000000000000000000002"));
        let other = node(1, "a:1");
        owners.note_nodes(&node(7, "b:2"), &[other]);
        assert_eq!(owners.own(), Some(Instance(7)), "a session was lost");
        owners.note_owner(1, Owner::Here);
        owners.note_owner(2, Owner::Node(1));
        owners.note_owner(3, Owner::Node(9));
        owners.note_term(2, 77);
        owners.count_forwarded(1);
        let facts = owners.facts();
        assert_eq!((facts.nodes, facts.shards, facts.served, facts.ownerless), (2, 4, 1, 1));
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(facts.owners, [None, name("node-7"), name("node-1"), None]);
        assert_eq!(
            (facts.node, facts.terms, facts.forwarded),
            ("node-7".into(), vec![0, 0, 77, 0], 1)
        );
    }
}
