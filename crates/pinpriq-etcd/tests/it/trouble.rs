//! Members that are killed or fall silent: what was done is there, and what is unknown is resolved.

use std::sync::Arc;
use std::time::Duration;

use pinpriq_etcd::EtcdOptions;
use pinpriq_ledger::{Answer, Appended, Call, Resolved, Seq, Writer};

use crate::cluster::Cluster;
use crate::logs::{Log, ask, read_all, seize};

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
        cluster.go_on(one);
        cluster.go_on(other);
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

#[test]
fn a_cluster_without_room_says_so() {
    let Some(cluster) = Cluster::start_with(&["--quota-backend-bytes", "8388608"]) else { return };
    let client = cluster.client(cluster.options());
    let mut log = Log::seize(&client, 1, 1);
    let bytes: Arc<[u8]> = vec![3; 256 << 10].into();
    let refused = (1..100).find_map(|seq| {
        let call = Call::Append { tenure: log.tenure, seq: Seq(seq), bytes: Arc::clone(&bytes) };
        match ask(&mut *log.ledger, call) {
            Answer::Appended(Appended::Done) => {
                log.entries.push(bytes.to_vec());
                None
            }
            other => Some(other),
        }
    });
    assert_eq!(refused, Some(Answer::Appended(Appended::Full)));
    let read = read_all(&mut *log.ledger, 1);
    assert!(read == log.entries, "what was done can still be read");
}
