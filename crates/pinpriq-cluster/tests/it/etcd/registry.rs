//! The registry: the suite for every registry, members in trouble, odd records and upkeep.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_cluster::etcd::{EtcdOptions, EtcdRegistry};
use pinpriq_cluster::remote::RegistryClient;
use pinpriq_cluster::{Instance, Meta, OwnState, Registry as _, RegistryAnswer, RegistryCall};

use crate::etcd::cluster::{Client, Cluster};
use crate::etcd::proxy::{Mode, Proxy};
use crate::etcd::secure::gateway;
use crate::remote::engines::{Node, pause, run_registry_suite};

fn registry(client: &Client, ttl: Duration) -> RegistryClient {
    RegistryClient::new(EtcdRegistry::new(&client.etcd, ttl), &client.runtime, Arc::new(|| ()))
}

/// A node that has announced itself.
pub(crate) fn announced(client: &Client, ttl: Duration, instance: u128) -> Node {
    Node::announced(registry(client, ttl), instance)
}

#[test]
fn it_passes_the_suite_for_registries() {
    let Some(cluster) = Cluster::start() else { return };
    run_registry_suite(|name| {
        let client = cluster.client(EtcdOptions { name, ..cluster.options() });
        move |ttl| registry(&client, ttl)
    });
}

#[test]
fn sessions_outlive_members_that_are_killed_or_silent() {
    let Some(mut cluster) = Cluster::start() else { return };
    let ttl = Duration::from_secs(5);
    let mut nodes: Vec<Node> = (1..=3)
        .map(|instance| announced(&cluster.client(cluster.options()), ttl, instance))
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
                let view = node.renew_patiently();
                assert_eq!(view.nodes.len(), 3, "all live while member {at} is in trouble");
                assert_eq!(view.owners[3].map(|own| own.instance), Some(Instance(1)));
            }
        }
        if at < 3 {
            cluster.start_again(at);
        } else {
            cluster.resume(at - 3);
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
    let mut node = announced(&client, ttl, 1);
    let mut other = announced(&client, ttl, 2);
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
        cluster.resume(one);
        cluster.resume(two);
        // A new leader lets the leases live for their whole time again.
        let view = other.renew_patiently();
        assert!(view.nodes.iter().any(|node| node.instance == Instance(2)));
        let view = node.renew_patiently();
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
        let mut node = announced(&client, Duration::from_secs(8), instance);
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
    let mut node = announced(&client, ttl, 1);
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
    let mut node = announced(&client, Duration::from_secs(10), 1);
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
    let _first = announced(&client, ttl, 1);
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
