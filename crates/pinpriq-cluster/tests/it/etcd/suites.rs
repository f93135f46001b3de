//! The suites for every fenced log and every store, on a cluster that works.

use pinpriq_cluster::etcd::EtcdOptions;
use pinpriq_store::Store;
use pinpriq_store::ledger::{
    Answer, Appended, Call, LedgerOptions, LedgerStore, Resolved, Seq, Trimmed, Writer,
};

use crate::etcd::cluster::Cluster;
use crate::etcd::logs::{Log, read_all, seize};
use crate::remote::engines::{ask, run_ledger_suite};

#[test]
fn it_passes_the_suite_for_ledgers() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    run_ledger_suite(|shard, writer| client.ledger(shard, writer));
}

#[test]
fn it_passes_the_suite_for_stores() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut writer = 0;
    let mut store = |shard| -> Box<dyn Store> {
        writer += 1;
        let ledger = client.ledger(shard, Writer(writer));
        Box::new(LedgerStore::new(ledger, LedgerOptions::default()))
    };
    let mut first = Some(store(1));
    let mut make = || first.take().unwrap();
    pinpriq_testing::stores::run(&mut make, Some(&mut || store(1)));
}

#[test]
fn large_entries_are_read_in_pieces_and_larger_ones_are_refused() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    log.fill(3);
    let large = vec![5; 1 << 20];
    for _ in 0..20 {
        let seq = Seq(log.entries.len() as u64 + 1);
        let call = Call::Append { tenure: log.tenure, seq, bytes: large.clone().into() };
        assert_eq!(ask(&mut *log.ledger, call), Answer::Appended(Appended::Done));
        log.entries.push(large.clone());
    }
    for bytes in [2 << 20, 4 << 20] {
        let seq = Seq(log.entries.len() as u64 + 1);
        let call = Call::Append { tenure: log.tenure, seq, bytes: vec![5; bytes].into() };
        assert_eq!(ask(&mut *log.ledger, call), Answer::Appended(Appended::TooLarge), "{bytes}");
    }
    log.fill(100);
    match ask(&mut *log.ledger, Call::Read { from: Seq(1), bytes: usize::MAX }) {
        Answer::Read(Ok(entries)) => assert_eq!(entries.len(), 123, "all at once"),
        other => panic!("{other:?}"),
    }
    log.check(&client, 1);
}

#[test]
fn what_was_compacted_does_no_harm() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    log.fill(20);
    assert_eq!(log.trim(11), Trimmed::Done);
    let first = client.runtime.block_on(client.etcd.compact()).unwrap();
    let second = client.runtime.block_on(client.etcd.compact()).unwrap();
    assert!(0 < first && first <= second);
    log.fill(5);
    assert!(read_all(&mut *log.ledger, 11) == log.entries[10..]);
    assert!(read_all(&mut *log.ledger, 1).is_empty());
}

#[test]
fn a_renewal_writes_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    log.fill(3);
    let before = client.runtime.block_on(client.etcd.compact()).unwrap();
    for _ in 0..10 {
        assert_eq!(log.resolve(), Resolved::Committed);
    }
    let after = client.runtime.block_on(client.etcd.compact()).unwrap();
    assert_eq!(before, after, "the revision of the cluster");
    log.fill(2);
    log.check(&client, 1);
}

#[test]
fn names_and_shards_have_logs_of_their_own() {
    let Some(cluster) = Cluster::start() else { return };
    let options = cluster.options();
    let one = cluster.client(options.clone());
    let other = cluster.client(EtcdOptions { name: "test2".to_owned(), ..options });
    let mut logs: Vec<Log> = Vec::new();
    for (client, shard) in [(&one, 1), (&one, 2), (&other, 1), (&one, 9_999)] {
        logs.push(Log::seize(client, shard, 1));
    }
    for (count, log) in (1..).zip(&mut logs) {
        log.fill(count);
    }
    for (log, (client, shard)) in
        logs.iter().zip([(&one, 1), (&one, 2), (&other, 1), (&one, 9_999)])
    {
        log.check(client, shard);
    }
    let mut ledger = other.ledger(2, Writer(1));
    assert_eq!(seize(&mut *ledger).unwrap().head, Seq(0));
}
