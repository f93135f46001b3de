//! Members that are killed or fall silent: what was done is there, and what is unknown is resolved.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use pinpriq_cluster::etcd::{EtcdOptions, EtcdRegistry, RoomNotice};
use pinpriq_store::ledger::{Answer, Appended, Call, Resolved, Seq, Status, Trimmed, Writer};

use crate::etcd::cluster::{Client, Cluster};
use crate::etcd::logs::{Log, read_all, seize};
use crate::remote::engines::{ask, pause};

#[test]
fn each_member_may_be_killed_in_the_middle_of_appends() {
    let Some(mut cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    // One of them is the leader, and one is the member that the client uses.
    for at in 0..3 {
        log.fill(50);
        log.start();
        cluster.kill(at);
        let appended = log.appended();
        log.settle(appended);
        log.fill(50);
        cluster.start_again(at);
        log.fill(50);
    }
    assert!(log.unknown > 0, "no append was ever unknown");
    log.check(&client, 1);
}

#[test]
fn without_a_majority_appends_are_unknown_and_go_on_later() {
    let Some(cluster) = Cluster::start() else { return };
    let deadline = Duration::from_secs(2);
    let attempt = Duration::from_millis(500);
    let client = cluster.client(EtcdOptions { deadline, attempt, ..cluster.options() });
    let mut log = Log::seize(&client, 1, 1);
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        log.fill(20);
        cluster.silence(one);
        cluster.silence(other);
        log.start();
        let appended = log.appended();
        assert_eq!(appended, Appended::Unknown, "two members are silent");
        assert_eq!(log.resolve(), Resolved::Unknown, "two members are silent");
        let read = ask(&mut *log.ledger, Call::Read { from: Seq(1), bytes: 1 });
        assert!(matches!(read, Answer::Read(Err(_))), "{read:?}");
        cluster.resume(one);
        cluster.resume(other);
        log.settle(appended);
        log.fill(20);
    }
    log.check(&client, 1);
}

#[test]
fn a_seize_ends_what_is_still_on_its_way() {
    let Some(mut cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    for round in 0..3 {
        log.fill(10);
        log.start();
        cluster.kill(round);
        // The successor comes before anybody knows what became of the append.
        let rival = cluster.client(cluster.options());
        let mut ledger = rival.ledger(1, Writer(2));
        let seized = seize(&mut *ledger).unwrap();
        let mut appended = log.appended();
        while appended == Appended::Unknown {
            appended = match log.resolve() {
                Resolved::Fenced => Appended::Fenced,
                Resolved::Unknown => Appended::Unknown,
                other => panic!("{other:?} after a seize"),
            };
        }
        let count = log.entries.len() as u64;
        match appended {
            Appended::Done => assert_eq!(seized.head, Seq(count)),
            _ => assert!(seized.head == Seq(count) || seized.head == Seq(count - 1)),
        }
        log.entries.truncate(usize::try_from(seized.head.0).unwrap());
        cluster.start_again(round);
        let own = seize(&mut *log.ledger).unwrap();
        assert_eq!(own.head, seized.head, "nothing has come since the successor began");
        log.tenure = own.tenure;
    }
    log.check(&client, 1);
}

#[test]
fn a_new_remote_resolves_what_it_has_not_sent() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    log.fill(3);
    let mut successor = client.ledger(1, Writer(1));
    for (seq, resolved) in [(3, Resolved::Committed), (4, Resolved::Absent)] {
        let call = Call::Resolve { tenure: log.tenure, seq: Seq(seq) };
        assert_eq!(ask(&mut *successor, call), Answer::Resolved(resolved));
    }
    log.start();
    assert_eq!(log.appended(), Appended::Fenced, "it may have been sent before the resolve");
    log.entries.pop();
    let bytes = [9; 9].into();
    let call = Call::Append { tenure: log.tenure, seq: Seq(4), bytes };
    assert_eq!(ask(&mut *successor, call), Answer::Appended(Appended::Done));
    log.entries.push(vec![9; 9]);
    log.check(&client, 1);
}

/// The first entry that a log still has, if it was trimmed while it took all room.
const TRIMMED_BEFORE: u64 = 16;

/// A cluster with a quota of 8 MiB, of which a log has taken everything. If it was trimmed
/// meanwhile, more than half of that can be freed.
fn full(is_trimmed: bool) -> Option<(Cluster, Client, Log)> {
    let cluster = Cluster::start_with(&["--quota-backend-bytes", "8388608"])?;
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    let refused = (0..100).find_map(|count| {
        // etcd looks at the size of its database ten times a second.
        pause(Duration::from_millis(if count < 20 { 0 } else { 150 }));
        if is_trimmed && count == TRIMMED_BEFORE {
            assert_eq!(log.trim(TRIMMED_BEFORE), Trimmed::Done);
        }
        Some(log.append(256 << 10)).filter(|it| *it != Appended::Done)
    });
    assert_eq!(refused, Some(Appended::Full));
    Some((cluster, client, log))
}

fn status(log: &mut Log) -> Status {
    match ask(&mut *log.ledger, Call::Status) {
        Answer::Status(Ok(status)) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_without_room_says_so() {
    let Some((_cluster, _, mut log)) = full(false) else { return };
    let read = read_all(&mut *log.ledger, 1);
    assert!(read == log.entries, "what was done can still be read");
    let Status { bytes_used, bytes_max } = status(&mut log);
    assert_eq!(bytes_max, 8 << 20, "the quota of etcd, which is less than the logs were to have");
    assert!(bytes_used >= bytes_max, "{bytes_used}: there is no room");
    assert_eq!(log.trim(10), Trimmed::Unknown, "etcd refuses even what would make room");
}

#[test]
fn a_cluster_that_has_reached_its_own_quota_is_given_room() {
    let Some((_cluster, client, mut log)) = full(true) else { return };
    // No node can open a session now, so one without makes room.
    let registry = EtcdRegistry::new(&client.etcd, Duration::from_secs(10));
    let (tell, told) = sync_channel(8);
    let upkeep =
        registry.upkeep(Duration::from_millis(50), move |notice| _ = tell.try_send(notice));
    let upkeep = client.runtime.spawn(upkeep);
    let in_time = Duration::from_secs(45);
    let notices: Vec<_> = (0..2).map_while(|_| told.recv_timeout(in_time).ok()).collect();
    let lower = RoomNotice::QuotaIsLower { quota: 8 << 20, bytes_max: 1 << 30 };
    assert_eq!(notices.first(), Some(&lower));
    assert!(matches!(notices[1..], [RoomNotice::RoomMade { .. }]), "{notices:?}");
    // etcd may say once more that its quota is reached, and room is made once more.
    let mut tries = 0;
    for _ in 0..8 {
        while log.append(256 << 10) == Appended::Full {
            tries += 1;
            assert!(tries < 900, "there is no room again");
            pause(Duration::from_millis(100));
        }
    }
    let read = read_all(&mut *log.ledger, TRIMMED_BEFORE);
    assert!(read[..] == log.entries[15..], "other entries are there");
    drop(registry);
    client.runtime.block_on(upkeep).unwrap();
}
