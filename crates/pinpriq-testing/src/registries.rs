//! One suite of cases for every registry, and [one](FakeRegistry) in memory, which gets into
//! trouble and lies on request.
//!
//! Each case takes a fresh cluster from a [`Bench`], does one thing, and panics with a message when
//! the registry does not keep a promise of [`Registry`]. The registry must work: only renewing and
//! looking are tried again. What a registry does in trouble is not tested here.
//!
//! Some cases wait until a session has ended, for up to four times its time to live. No case knows
//! of another one, so that they can run at the same time, each with a bench of its own.

mod drains;
mod fake;
mod meta;
mod owners;
mod sessions;
mod targets;

pub use fake::{FakeHandle, FakeKnobs, FakeRegistry, Saved};
use pinpriq_cluster::{
    Addresses, Instance, Meta, NodeRecord, OwnRecord, OwnState, Registry, RegistryAnswer,
    RegistryCall, ShardNumber, View,
};

/// Where the cases get their registries from.
pub trait Bench {
    /// Makes room for a cluster that is not founded. The suite takes about fifty.
    fn fresh_cluster(&mut self) -> u32;

    /// Opens the registry of a cluster as one more node.
    fn registry(&mut self, cluster: u32) -> Box<dyn Registry>;

    /// Returns the time to live of the sessions, in milliseconds.
    fn ttl_ms(&self) -> u64;

    /// Lets at least this time pass.
    fn pause(&mut self, ms: u64);
}

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is checked, as the name of its function.
    pub name: &'static str,
    /// Checks it.
    ///
    /// # Panics
    /// If the registry does not keep a promise.
    pub run: fn(&mut dyn Bench),
}

/// All cases, in the order of [`run_all`].
#[must_use]
pub fn cases() -> Vec<Case> {
    [meta::CASES, sessions::CASES, owners::CASES, drains::CASES, targets::CASES].concat()
}

/// Runs all cases, one after the other.
///
/// # Panics
/// If the registry does not keep a promise.
pub fn run_all(bench: &mut dyn Bench) {
    for case in cases() {
        (case.run)(bench);
    }
}

/// How often an answer is asked for, 1 ms apart.
const POLLS_MAX: u32 = 60_000;

/// How often a view is asked for, if the registry cannot be reached.
const VIEWS_MAX: u32 = 20;

/// The shards of a cluster of the suite.
const SHARDS: u16 = 16;

/// A cluster whose nodes are asked one call after the other.
struct Site<'b> {
    bench: &'b mut dyn Bench,
    cluster: u32,
    /// How many shards it was founded with.
    shards: u16,
    /// Looks, and has no session.
    observer: Option<Node>,
}

/// One node of a cluster.
struct Node {
    registry: Box<dyn Registry>,
    record: NodeRecord,
}

impl Node {
    const fn instance(&self) -> Instance {
        self.record.instance
    }

    /// What it says as the owner of a shard that it loads.
    const fn claim(&self) -> OwnRecord {
        self.own(0, OwnState::Loading)
    }

    const fn own(&self, term: u64, state: OwnState) -> OwnRecord {
        OwnRecord { instance: self.record.instance, term, state }
    }
}

/// A record of a node with this number as its instance.
fn record(instance: u128) -> NodeRecord {
    let addresses = Addresses {
        link: format!("link{instance}:1"),
        resp: format!("resp{instance}:2"),
        resp_cluster: String::new(),
        pinpriq: format!("pinpriq{instance}:4"),
    };
    NodeRecord {
        instance: Instance(instance),
        name: format!("n{instance}"),
        data: instance << 64,
        addresses,
        fingerprint: Some([u8::try_from(instance).unwrap_or(0); 32]),
        version: "0.1.0".to_owned(),
        draining: false,
        suspended: false,
    }
}

fn meta_of(shards: u16) -> Meta {
    Meta { id: 5, shards, format: 1, ..Meta::default() }
}

impl<'b> Site<'b> {
    /// A cluster with the usual shards.
    fn new(bench: &'b mut dyn Bench) -> Self {
        Self::with_shards(bench, SHARDS)
    }

    fn with_shards(bench: &'b mut dyn Bench, shards: u16) -> Self {
        let mut site = Self::empty(bench);
        let mut stranger = site.stranger();
        let answer = site.ask(&mut stranger, RegistryCall::Found(meta_of(shards)));
        assert_eq!(answer, RegistryAnswer::Meta(meta_of(shards)), "the first meta is kept");
        site.shards = shards;
        site
    }

    /// A cluster that is not founded.
    fn empty(bench: &'b mut dyn Bench) -> Self {
        let cluster = bench.fresh_cluster();
        Self { bench, cluster, shards: 0, observer: None }
    }

    /// A node without a session.
    fn stranger(&mut self) -> Node {
        Node { registry: self.bench.registry(self.cluster), record: record(0) }
    }

    /// A node that has announced itself.
    fn node(&mut self, instance: u128) -> Node {
        let mut node = Node { record: record(instance), ..self.stranger() };
        self.announce(&mut node);
        node
    }

    /// Two nodes that have announced themselves.
    fn pair(&mut self) -> [Node; 2] {
        [self.node(1), self.node(2)]
    }

    /// Waits for the answer to the call that was started first.
    fn answer(&mut self, node: &mut Node) -> RegistryAnswer {
        for _ in 0..POLLS_MAX {
            if let Some(answer) = node.registry.poll() {
                return answer;
            }
            self.bench.pause(1);
        }
        panic!("a call has no answer");
    }

    fn ask(&mut self, node: &mut Node, call: RegistryCall) -> RegistryAnswer {
        node.registry.start(call);
        self.answer(node)
    }

    /// Asks for what must be done.
    fn done(&mut self, node: &mut Node, call: RegistryCall) {
        let asked = format!("{call:?}");
        assert_eq!(self.ask(node, call), RegistryAnswer::Done, "{asked}");
    }

    fn announce(&mut self, node: &mut Node) {
        let record = node.record.clone();
        self.done(node, RegistryCall::Announce(record));
    }

    /// Asks for a view. None if the session has ended.
    fn view(&mut self, node: &mut Node, call: &RegistryCall) -> Option<View> {
        let mut last = String::new();
        for _ in 0..VIEWS_MAX {
            match self.ask(node, call.clone()) {
                RegistryAnswer::View(view) => return Some(view),
                RegistryAnswer::SessionEnded => return None,
                RegistryAnswer::Unreachable(why) => last = why,
                other => panic!("the answer to {call:?} is {other:?}"),
            }
        }
        panic!("the registry does not answer: {last}");
    }

    #[expect(clippy::expect_used, reason = "a suite ends at the first failure, with its reason")]
    fn look(&mut self, node: &mut Node) -> View {
        self.view(node, &RegistryCall::Look).expect("a look needs no session")
    }

    /// Renews a session. None if it has ended.
    fn try_renew(&mut self, node: &mut Node) -> Option<View> {
        self.view(node, &RegistryCall::Renew)
    }

    #[expect(clippy::expect_used, reason = "a suite ends at the first failure, with its reason")]
    fn renew(&mut self, node: &mut Node) -> View {
        self.try_renew(node).expect("the session lives")
    }

    /// Renews the session of a node until the view is as wanted.
    fn until(&mut self, node: &mut Node, what: &str, is_so: impl Fn(&View) -> bool) -> View {
        let step = self.step();
        for _ in 0..40 {
            let view = self.renew(node);
            if is_so(&view) {
                return view;
            }
            self.bench.pause(step);
        }
        panic!("{what} does not happen");
    }

    /// A tenth of the time to live: how often something is looked at, in milliseconds.
    fn step(&self) -> u64 {
        self.bench.ttl_ms() / 10
    }

    fn own(
        &mut self,
        node: &mut Node,
        shard: ShardNumber,
        record: Option<OwnRecord>,
        instead_of: Option<OwnRecord>,
    ) -> RegistryAnswer {
        self.ask(node, RegistryCall::Own { shard, record, instead_of })
    }

    /// Claims a shard as who has seen this meta.
    fn claim_under(&mut self, node: &mut Node, shard: ShardNumber, meta: Meta) -> RegistryAnswer {
        let record = node.claim();
        self.ask(node, RegistryCall::Claim { shard, record, meta: Some(meta) })
    }

    /// Claims a shard that has no owner.
    fn claim(&mut self, node: &mut Node, shard: ShardNumber) {
        let answer = self.claim_under(node, shard, meta_of(self.shards));
        assert_eq!(answer, RegistryAnswer::Done, "shard {shard} has no owner");
    }

    /// Checks the owner of a shard, as everybody sees it.
    fn assert_owner(&mut self, shard: ShardNumber, owner: Option<OwnRecord>, why: &str) {
        let mut observer = self.observer.take().unwrap_or_else(|| self.stranger());
        let view = self.look(&mut observer);
        self.observer = Some(observer);
        assert_eq!(view.owners[usize::from(shard)], owner, "the owner of shard {shard}: {why}");
    }
}

fn instances(view: &View) -> Vec<u128> {
    view.nodes.iter().map(|node| node.instance.0).collect()
}
