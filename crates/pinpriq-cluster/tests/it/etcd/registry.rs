//! The registry: the suite for every registry, members in trouble, odd records and upkeep.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_cluster::conformance::{Bench, cases};
use pinpriq_cluster::etcd::{Etcd, EtcdOptions, EtcdRegistry};
use pinpriq_cluster::remote::RegistryClient;
use pinpriq_cluster::{
    Instance, Meta, NodeRecord, OwnRecord, OwnState, Registry, RegistryAnswer, RegistryCall, View,
};
use tokio::runtime::Handle;

use crate::etcd::cluster::{Client, Cluster};
use crate::etcd::proxy::{Mode, Proxy};
use crate::etcd::secure::gateway;

/// How many cases run at the same time.
const TOGETHER: usize = 8;

/// The time to live of a session in the suite.
const TTL: Duration = Duration::from_secs(3);

struct RegistryBench<'t> {
    cluster: &'t Cluster,
    fresh: &'t AtomicU32,
    /// The client of each cluster that this bench has made.
    clients: Vec<(u32, Etcd)>,
    runtime: Handle,
}

impl Bench for RegistryBench<'_> {
    fn fresh_cluster(&mut self) -> u32 {
        let number = self.fresh.fetch_add(1, Ordering::Relaxed);
        let options = EtcdOptions { name: format!("c{number}"), ..self.cluster.options() };
        self.clients.push((number, self.cluster.client(options).etcd));
        number
    }

    fn registry(&mut self, cluster: u32) -> Box<dyn Registry> {
        let (_, etcd) = self.clients.iter().find(|(number, _)| *number == cluster).unwrap();
        Box::new(registry(&self.runtime, etcd, TTL))
    }

    fn ttl_ms(&self) -> u64 {
        3_000
    }

    fn pause(&mut self, ms: u64) {
        pause(Duration::from_millis(ms));
    }
}

/// Lets this time pass.
pub(crate) fn pause(time: Duration) {
    let (_sender, receiver) = mpsc::sync_channel::<()>(0);
    assert!(receiver.recv_timeout(time).is_err());
}

fn registry(runtime: &Handle, etcd: &Etcd, ttl: Duration) -> RegistryClient {
    RegistryClient::new(EtcdRegistry::new(etcd, ttl), runtime, Arc::new(|| ()))
}

#[test]
fn it_passes_the_suite_for_registries() {
    let Some(cluster) = Cluster::start() else { return };
    let (fresh, next) = (AtomicU32::new(0), AtomicUsize::new(0));
    let cases = cases();
    assert!(cases.len() >= 30);
    let work = || {
        let runtime = cluster.client(cluster.options()).runtime;
        let mut bench =
            RegistryBench { cluster: &cluster, fresh: &fresh, clients: vec![], runtime };
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let run = AssertUnwindSafe(|| (case.run)(&mut bench));
            assert!(catch_unwind(run).is_ok(), "{}", case.name);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..TOGETHER).map(|_| scope.spawn(work)).collect();
        let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert_eq!(failed, 0, "cases that failed are told above");
    });
}

/// A registry whose calls are made one after the other.
pub(crate) struct Node {
    registry: RegistryClient,
    instance: u128,
}

impl Node {
    fn new(client: &Client, ttl: Duration, instance: u128) -> Self {
        Self { registry: registry(&client.runtime, &client.etcd, ttl), instance }
    }

    /// A node that has announced itself, in a cluster of 16 shards.
    pub(crate) fn announced(client: &Client, ttl: Duration, instance: u128) -> Self {
        let mut node = Self::new(client, ttl, instance);
        let meta = Meta { id: 1, shards: 16, format: 1, ..Meta::default() };
        assert_eq!(node.ask(RegistryCall::Found(meta.clone())), RegistryAnswer::Meta(meta));
        assert_eq!(node.announce(), RegistryAnswer::Done);
        node
    }

    fn announce(&mut self) -> RegistryAnswer {
        let instance = Instance(self.instance);
        let name = format!("n{}", self.instance);
        self.ask(RegistryCall::Announce(NodeRecord { instance, name, ..NodeRecord::default() }))
    }

    pub(crate) fn ask(&mut self, call: RegistryCall) -> RegistryAnswer {
        self.registry.start(call);
        self.answer()
    }

    fn answer(&mut self) -> RegistryAnswer {
        for _ in 0..60_000 {
            if let Some(answer) = self.registry.poll() {
                return answer;
            }
            pause(Duration::from_millis(1));
        }
        panic!("no answer");
    }

    const fn own(&self, state: OwnState) -> OwnRecord {
        OwnRecord { instance: Instance(self.instance), term: 0, state }
    }

    fn change(&mut self, from: Option<OwnState>, to: Option<OwnState>) -> RegistryAnswer {
        let record = to.map(|state| self.own(state));
        let instead_of = from.map(|state| self.own(state));
        self.ask(RegistryCall::Own { shard: 3, record, instead_of })
    }

    pub(crate) fn view(&mut self, call: RegistryCall) -> View {
        match self.ask(call) {
            RegistryAnswer::View(view) => view,
            other => panic!("{other:?} is no view"),
        }
    }

    /// Renews until it is answered, and returns how often it was not.
    fn renew_patiently(&mut self) -> (View, u32) {
        for missed in 0..20 {
            match self.ask(RegistryCall::Renew) {
                RegistryAnswer::View(view) => return (view, missed),
                RegistryAnswer::Unreachable(_) => {}
                other => panic!("{other:?} to a renewal"),
            }
        }
        panic!("a session cannot be renewed");
    }
}

#[test]
fn sessions_outlive_members_that_are_killed_or_silent() {
    let Some(mut cluster) = Cluster::start() else { return };
    let ttl = Duration::from_secs(5);
    let mut nodes: Vec<Node> = (1..=3)
        .map(|instance| Node::announced(&cluster.client(cluster.options()), ttl, instance))
        .collect();
    assert_eq!(nodes[0].change(None, Some(OwnState::Serving)), RegistryAnswer::Done);
    // One of them is the leader, and each of them is in use at some time.
    for at in 0..6 {
        for node in &mut nodes {
            node.registry.start(RegistryCall::Renew);
        }
        if at < 3 {
            cluster.kill(at);
        } else {
            cluster.silence(at - 3);
        }
        for node in &mut nodes {
            // The renewal that was under way may be answered or not.
            let answer = node.answer();
            assert_ne!(answer, RegistryAnswer::SessionEnded, "while member {at} is in trouble");
        }
        for _ in 0..3 {
            for node in &mut nodes {
                let (view, _) = node.renew_patiently();
                assert_eq!(view.nodes.len(), 3, "all live while member {at} is in trouble");
                assert_eq!(view.owners[3].map(|own| own.instance), Some(Instance(1)));
            }
        }
        if at < 3 {
            cluster.start_again(at);
        } else {
            cluster.go_on(at - 3);
        }
        for node in &mut nodes {
            node.renew_patiently();
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a call takes is what is tested")]
fn without_a_majority_a_renewal_ends_in_time_and_sessions_go_on_later() {
    let Some(cluster) = Cluster::start() else { return };
    let ttl = Duration::from_secs(4);
    let client = cluster.client(cluster.options());
    let mut node = Node::announced(&client, ttl, 1);
    let mut other = Node::announced(&client, ttl, 2);
    for (one, two) in [(0, 1), (1, 2), (2, 0)] {
        cluster.silence(one);
        cluster.silence(two);
        let begun = Instant::now();
        let answer = node.ask(RegistryCall::Renew);
        assert!(matches!(answer, RegistryAnswer::Unreachable(_)), "{answer:?}");
        let renewal = begun.elapsed();
        assert!(renewal < ttl / 5 + Duration::from_millis(500), "a renewal took {renewal:?}");
        let answer = node.change(None, Some(OwnState::Loading));
        assert!(matches!(answer, RegistryAnswer::Unreachable(_)), "{answer:?}");
        let claim = begun.elapsed();
        assert!(claim < renewal + ttl + Duration::from_millis(500), "a claim took {claim:?}");
        cluster.go_on(one);
        cluster.go_on(two);
        // A new leader lets the leases live for their whole time again.
        let (view, _) = other.renew_patiently();
        assert!(view.nodes.iter().any(|node| node.instance == Instance(2)));
        let (view, _) = node.renew_patiently();
        assert_eq!(view.nodes.len(), 2);
        // The claim may have been carried out, or may be yet: naming what is there settles it.
        let there = view.owners[3].map(|own| own.state);
        if node.change(there, None) != RegistryAnswer::Done {
            assert_eq!(node.change(Some(OwnState::Loading), None), RegistryAnswer::Done);
        }
    }
}

#[test]
fn a_claim_whose_answer_was_lost_is_done() {
    let Some(cluster) = Cluster::start() else { return };
    let proxy = Proxy::start(cluster.address(0));
    let endpoints = vec![proxy.endpoint(), format!("http://{}", cluster.address(1))];
    let (loading, serving) = (Some(OwnState::Loading), Some(OwnState::Serving));
    for (instance, from, to) in [(1, None, loading), (2, None, serving), (3, loading, serving)] {
        // A client that has not left the relay yet.
        let options = EtcdOptions { endpoints: endpoints.clone(), ..cluster.options() };
        let client = cluster.client(options);
        let mut node = Node::announced(&client, Duration::from_secs(8), instance);
        if from.is_some() {
            assert_eq!(node.change(None, from), RegistryAnswer::Done);
        }
        proxy.set(Mode::LosesAnswersFrom(b"\"state\":"));
        assert_eq!(node.change(from, to), RegistryAnswer::Done, "instance {instance}");
        assert_eq!(proxy.mode(), Mode::LosesAnswers, "an answer was lost");
        let view = node.view(RegistryCall::Look);
        assert_eq!(
            view.owners[3].map(|own| (own.instance.0, own.state)),
            to.map(|to| (instance, to))
        );
        assert_eq!(node.change(from, to), RegistryAnswer::Changed, "it is not done twice");
        proxy.set(Mode::Honest);
        assert_eq!(node.change(to, None), RegistryAnswer::Done);
    }
}

/// Bytes as JSON of etcd has them.
pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn put(cluster: &Cluster, key: &str, value: &[u8]) {
    let (key, value) = (base64(format!("pinpriq/test/{key}")), base64(value));
    let answer =
        gateway(cluster.address(0), "kv/put", &format!(r#"{{"key":"{key}","value":"{value}"}}"#));
    assert!(answer.contains("200 OK"), "{answer}");
}

#[test]
fn records_that_cannot_be_read_are_not_there() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let ttl = Duration::from_secs(10);
    let mut node = Node::announced(&client, ttl, 1);
    let stray = "0000000000000000000000000000000f";
    let good = br#"{"v":1,"name":"n","data":"00000000000000000000000000000000"}"#;
    for (key, value) in [
        ("node/", &b"{}"[..]),
        ("node/1", good),
        ("node/0000000000000000000000000000000A", good),
        (&format!("node/{stray}"), b"\xff\xfe"),
        ("own/0000", b""),
        ("own/0003", b"{\"v\":1,\"instance\":7}"),
        (
            "own/0016",
            br#"{"v":1,"instance":"0000000000000000000000000000000f","term":1,"state":"serving"}"#,
        ),
        ("own/99999", b"x"),
        ("own/x", b"x"),
    ] {
        put(&cluster, key, value);
    }
    let view = node.view(RegistryCall::Renew);
    assert_eq!(view.nodes.len(), 1);
    assert_eq!(view.owners, [None; 16]);
    assert_eq!(node.change(None, Some(OwnState::Serving)), RegistryAnswer::Done, "over rubbish");
    // What has no lease is ended too.
    put(&cluster, &format!("node/{stray}"), good);
    assert_eq!(node.view(RegistryCall::Look).nodes.len(), 2);
    assert_eq!(node.ask(RegistryCall::End(Instance(15))), RegistryAnswer::Done);
    assert_eq!(node.view(RegistryCall::Look).nodes.len(), 1);
    // A newer node may have said more than we know. It is still compared.
    let own = br#"{"target":"x","v":1,"instance":"00000000000000000000000000000001",
        "term":0,"state":"loading"}"#;
    put(&cluster, "own/0003", own);
    let stale = node.change(Some(OwnState::Serving), None);
    assert_eq!(stale, RegistryAnswer::Changed);
    let known = node.change(Some(OwnState::Loading), Some(OwnState::Serving));
    assert_eq!(known, RegistryAnswer::Done);
    put(&cluster, "meta", b"{\"v\":2}");
    let meta = Meta { id: 1, shards: 16, format: 1, ..Meta::default() };
    let found = node.ask(RegistryCall::Found(meta));
    assert!(matches!(found, RegistryAnswer::Unreachable(_)), "it is not overwritten: {found:?}");
    assert!(node.view(RegistryCall::Renew).owners.is_empty());
}

#[test]
fn a_session_whose_record_is_gone_has_ended() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut node = Node::announced(&client, Duration::from_secs(10), 1);
    let key = base64(b"pinpriq/test/node/00000000000000000000000000000001");
    gateway(cluster.address(0), "kv/deleterange", &format!(r#"{{"key":"{key}"}}"#));
    assert_eq!(node.ask(RegistryCall::Renew), RegistryAnswer::SessionEnded);
    let claim = node.change(None, Some(OwnState::Loading));
    assert_eq!(claim, RegistryAnswer::SessionEnded);
    assert_eq!(node.announce(), RegistryAnswer::SessionEnded, "it is another instance from now on");
}

#[test]
fn the_first_node_alone_compacts() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let ttl = Duration::from_secs(10);
    let _first = Node::announced(&client, ttl, 1);
    let period = Duration::from_millis(50);
    let meta = base64(b"pinpriq/test/meta");
    let old = format!(r#"{{"key":"{meta}","revision":"2"}}"#);
    let is_compacted = || gateway(cluster.address(0), "kv/range", &old).contains("compacted");
    let run = |instance| {
        let registry = EtcdRegistry::new(&client.etcd, ttl);
        let upkeep = client.runtime.spawn(registry.upkeep(period, |_| ()));
        let registry = RegistryClient::new(registry, &client.runtime, Arc::new(|| ()));
        let mut node = Node { registry, instance };
        assert_eq!(node.announce(), RegistryAnswer::Done);
        node.view(RegistryCall::Renew);
        (node, upkeep)
    };
    let (second, upkeep) = run(2);
    pause(period * 10);
    assert!(!is_compacted(), "it is the second node");
    drop(second);
    client.runtime.block_on(upkeep).unwrap();
    let (_zeroth, _) = run(0);
    let compacted = (0..1_000).any(|_| {
        pause(Duration::from_millis(10));
        is_compacted()
    });
    assert!(compacted, "the first node compacts");
}
