//! Answers that are lost and requests that come late: an entry is in the log once, or not at all.

use std::time::Duration;

use pinpriq_cluster::etcd::EtcdOptions;
use pinpriq_store::ledger::{Answer, Appended, Call, Resolved, Seq, Trimmed, Writer};

use crate::etcd::cluster::{Client, Cluster};
use crate::etcd::logs::{Log, read_all, seize};
use crate::etcd::proxy::{Mode, Proxy};
use crate::remote::engines::ask;

/// The size of the entries of [`Log`], at least.
const ENTRY_BYTES: usize = 500;

/// A client that asks one member through a relay, and then another one without it.
fn relayed(cluster: &Cluster) -> (Proxy, Client) {
    let proxy = Proxy::start(cluster.address(0));
    let endpoints = vec![proxy.endpoint(), format!("http://{}", cluster.address(1))];
    let attempt = Duration::from_millis(500);
    let client = cluster.client(EtcdOptions { endpoints, attempt, ..cluster.options() });
    (proxy, client)
}

#[test]
fn an_entry_whose_answer_was_lost_is_committed_and_there_once() {
    let Some(cluster) = Cluster::start() else { return };
    let (proxy, client) = relayed(&cluster);
    let mut log = Log::seize(&client, 1, 1);
    log.fill(5);
    proxy.set(Mode::LosesAnswers);
    log.start();
    assert_eq!(log.appended(), Appended::Unknown);
    let mut reader = cluster.client(cluster.options()).ledger(1, Writer(2));
    assert!(read_all(&mut *reader, 1) == log.entries, "it is in the log");
    assert_eq!(log.resolve(), Resolved::Committed);
    proxy.set(Mode::Honest);
    log.fill(5);
    log.check(&client, 1);
}

#[test]
fn an_entry_that_comes_after_its_second_copy_changes_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let (proxy, client) = relayed(&cluster);
    let mut log = Log::seize(&client, 1, 1);
    log.fill(5);
    proxy.set(Mode::KeepsRequests);
    log.start();
    proxy.keep(ENTRY_BYTES);
    assert_eq!(log.appended(), Appended::Unknown);
    assert_eq!(log.resolve(), Resolved::Committed, "by a second copy");
    log.fill(2);
    assert!(proxy.release() >= ENTRY_BYTES);
    log.fill(20);
    log.check(&client, 1);
}

#[test]
fn a_late_entry_is_in_the_log_if_nothing_was_done_against_it() {
    let Some(cluster) = Cluster::start() else { return };
    let (proxy, client) = relayed(&cluster);
    let mut log = Log::seize(&client, 1, 1);
    proxy.set(Mode::KeepsRequests);
    log.start();
    proxy.keep(ENTRY_BYTES);
    assert_eq!(log.appended(), Appended::Unknown);
    let mut reader = cluster.client(cluster.options()).ledger(1, Writer(2));
    assert!(read_all(&mut *reader, 1).is_empty());
    assert!(proxy.release() >= ENTRY_BYTES);
    let has_come = (0..200).any(|_| {
        std::thread::park_timeout(Duration::from_millis(20));
        read_all(&mut *reader, 1) == log.entries
    });
    assert!(has_come, "the relay does not deliver late, so the other tests show nothing");
    assert_eq!(log.resolve(), Resolved::Committed);
    log.fill(3);
    log.check(&client, 1);
}

#[test]
fn an_entry_that_comes_after_a_bar_or_a_seize_is_refused() {
    let Some(cluster) = Cluster::start() else { return };
    for (shard, by_bar) in [(1, true), (2, false)] {
        let (proxy, client) = relayed(&cluster);
        let mut log = Log::seize(&client, shard, 1);
        log.fill(3);
        proxy.set(Mode::KeepsRequests);
        log.start();
        proxy.keep(ENTRY_BYTES);
        assert_eq!(log.appended(), Appended::Unknown);
        log.entries.pop();
        // Without the bytes of the entry, only a bar can tell what becomes of it.
        let other = cluster.client(cluster.options());
        let mut rival = other.ledger(shard, Writer(2));
        let tenure = if by_bar {
            let call = Call::Resolve { tenure: log.tenure, seq: Seq(4) };
            assert_eq!(ask(&mut *rival, call), Answer::Resolved(Resolved::Absent));
            log.tenure
        } else {
            let seized = seize(&mut *rival).unwrap();
            assert_eq!(seized.head, Seq(3));
            seized.tenure
        };
        assert!(proxy.release() >= ENTRY_BYTES);
        // As long as it would take to come: see the test above.
        // It gets the time in which it came in the test above.
        for _ in 0..20 {
            let mut reader = other.ledger(shard, Writer(3));
            assert!(read_all(&mut *reader, 1) == log.entries, "entry 4 has come");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let call = Call::Append { tenure, seq: Seq(4), bytes: [9].into() };
        assert_eq!(ask(&mut *rival, call), Answer::Appended(Appended::Done));
        let call = Call::Trim { tenure, before: Seq(2) };
        assert_eq!(ask(&mut *rival, call), Answer::Trimmed(Trimmed::Done));
        assert_eq!(read_all(&mut *rival, 4), [[9]]);
        assert_eq!(read_all(&mut *rival, 2).len(), 3);
    }
}
