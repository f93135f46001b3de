//! What is said of a cluster, for pictures that a registry and its logs can show.

use pinpriq_cluster::remote::LogState;
use pinpriq_cluster::{
    Addresses, Instance, Meta, NodeRecord, OwnRecord, OwnState, RolledBack, View,
};
use pinpriq_store::ledger::{Seq, Status, Tenure, Term, Writer};

use super::picture::{Picture, named};
use super::words;
use super::wrong::what_is_wrong;
use crate::cluster::url::ClusterUrl;

const ROOM: Status = Status { bytes_used: 3 << 19, bytes_max: 1 << 30 };

fn node(number: u8) -> NodeRecord {
    let at = |port: u8| format!("10.0.0.{number}:{port}");
    NodeRecord {
        instance: Instance(u128::from(number)),
        name: format!("n{number}"),
        data: 0,
        addresses: Addresses { link: at(3), resp: at(1), ..Addresses::default() },
        version: "1.2.3".to_owned(),
        ..NodeRecord::default()
    }
}

fn own(number: u8, term: u64, state: OwnState) -> OwnRecord {
    OwnRecord { instance: Instance(u128::from(number)), term, state }
}

fn log(term: u64, first: u64, head: u64) -> LogState {
    let tenure = Tenure { term: Term(term), writer: Writer(1) };
    LogState { tenure, head: Seq(head), first: Seq(first) }
}

/// Two nodes that serve three shards.
fn well() -> Picture {
    let owners = vec![
        Some(own(1, 10, OwnState::Serving)),
        Some(own(2, 20, OwnState::Serving)),
        Some(own(1, 30, OwnState::Serving)),
    ];
    let view = View { nodes: vec![node(1), node(2)], owners, ..View::default() };
    Picture { view, logs: [log(10, 1, 0), log(20, 4, 9), log(30, 10, 9)].map(Some).to_vec() }
}

fn url() -> ClusterUrl {
    "etcd://a:1/tasks".parse().unwrap()
}

#[track_caller]
fn check_wrong(change: impl FnOnce(&mut Picture), expected: &[&str]) {
    let mut picture = well();
    change(&mut picture);
    assert_eq!(what_is_wrong(&picture, ROOM), expected);
}

#[test]
fn nothing_is_wrong_with_a_cluster_that_is_well() {
    check_wrong(|_| {}, &[]);
    check_wrong(|it| it.view.drained.push("n9".to_owned()), &[]);
}

#[test]
fn shards_without_an_owner_are_wrong() {
    check_wrong(|it| it.view.owners[1] = None, &["no node serves shard 1"]);
    check_wrong(|it| it.view.owners[1..].fill(None), &["no node serves shards 1-2"]);
    let loading = Some(own(2, 0, OwnState::Loading));
    check_wrong(|it| it.view.owners[0] = loading, &["shard 0 is not served: n2 is loading it"]);
    check_wrong(
        |it| {
            it.view.nodes.clear();
            it.view.owners.fill(None);
        },
        &["no node lives"],
    );
    let gone = "shard 1 has the owner 00000000000000000000000000000002, which does not live";
    check_wrong(|it| drop(it.view.nodes.pop()), &[gone]);
}

#[test]
fn owners_and_logs_that_disagree_are_wrong() {
    let seized = "n1 says that it serves shard 0 with term 10, but somebody else has seized its \
                  log with term 11";
    check_wrong(|it| it.logs[0] = Some(log(11, 1, 5)), &[seized]);
    let behind = "n2 serves shard 1 with term 20, but its log has only come to term 19: was the \
                  engine rolled back?";
    check_wrong(|it| it.logs[1] = Some(log(19, 1, 5)), &[behind]);
    check_wrong(
        |it| it.logs[2] = None,
        &["shard 2 has no log, but n1 serves it with term 30: was the engine wiped?"],
    );
    check_wrong(
        |it| it.logs[2] = Some(log(30, 11, 9)),
        &["the log of shard 2 ends with entry 9, but begins with 11"],
    );
}

#[test]
fn an_engine_that_was_rolled_back_is_wrong() {
    let expected = "the engine was rolled back: the node n2 has seen entry 9 in shard 1, and finds \
                    entry 7. Nothing is served until `pinpriq cluster accept-rollback`";
    let [node, seen, found] = ["n2", "entry 9", "entry 7"].map(str::to_owned);
    let loss = RolledBack { node, shard: Some(1), generation: 0, expected: seen, found };
    let importing = Meta { importing: true, ..Meta::default() };
    check_wrong(|it| it.view.meta = Some(importing), &[super::wrong::IMPORTING]);
    let meta = Meta { rolled_back: Some(loss), ..Meta::default() };
    check_wrong(|it| it.view.meta = Some(meta), &[expected]);
}

#[test]
fn nodes_that_are_mixed_up_are_wrong() {
    check_wrong(|it| it.view.nodes[1].name = "n1".to_owned(), &["2 nodes have the name n1"]);
    check_wrong(
        |it| it.view.nodes[1].addresses.link = "10.0.0.1:3".to_owned(),
        &["the nodes n1 and n2 announce the same address for links, 10.0.0.1:3"],
    );
}

#[test]
fn an_engine_with_little_room_is_wrong() {
    let wrong = |bytes_used| what_is_wrong(&well(), Status { bytes_used, bytes_max: 1_000 });
    assert!(wrong(599).is_empty());
    let expected = "the engine holds 600 of 1000 bytes: from 60 % on, puts are refused";
    assert_eq!(wrong(600), [expected]);
    assert!(what_is_wrong(&well(), Status { bytes_used: u64::MAX, ..ROOM }).len() == 1);
}

#[test]
fn the_status_begins_with_a_verdict() {
    let first_line = |picture: &Picture| {
        let text = words::status(&url(), picture, ROOM);
        text.lines().next().unwrap_or_default().to_owned()
    };
    let mut picture = well();
    let expected = "\
all shards are served: 3 by 2 nodes
cluster tasks on etcd, 1.5 MiB of 1024.0 MiB used

node  shards  state    version
n1    2       serving  1.2.3
n2    1       serving  1.2.3
";
    assert_eq!(words::status(&url(), &picture, ROOM), expected);
    picture.view.owners[0] = Some(own(1, 10, OwnState::Releasing));
    picture.view.owners[2] = None;
    let expected = "1 of 3 shards are served, by 2 nodes; NO OWNER: shard 2; changing: shard 0";
    assert_eq!(first_line(&picture), expected);
    picture.view.nodes.clear();
    picture.view.owners.fill(None);
    assert_eq!(first_line(&picture), "NOTHING is served: no node lives (shards: 3)");
}

#[test]
fn nodes_and_shards_are_tables() {
    let mut picture = well();
    picture.view.drained.push("n2".to_owned());
    picture.view.owners[2] = None;
    picture.logs[2] = None;
    picture.view.targets = vec![(1, "n1".to_owned())];
    let expected = "\
node  shards  state     version  resp        resp-cluster  pinpriq  link
n1    1       serving   1.2.3    10.0.0.1:1  off           off      10.0.0.1:3
n2    1       draining  1.2.3    10.0.0.2:1  off           off      10.0.0.2:3
";
    assert_eq!(words::nodes(&picture), expected);
    let expected = "\
shard  owner  state     term  log term  first  last  told
0      n1     serving   10    10        1      0     -
1      n2     serving   20    20        4      9     n1
2      -      no owner  -     -         -      -     -
";
    assert_eq!(words::shards(&picture), expected);
}

#[test]
fn programs_get_objects() {
    let mut picture = well();
    picture.view.nodes.pop();
    picture.view.owners = vec![Some(own(1, 10, OwnState::Serving)), None];
    picture.logs = vec![Some(log(10, 1, 5)), None];
    picture.view.targets = vec![(0, "n2".to_owned())];
    let n1 = concat!(
        r#"{"node":"n1","instance":"00000000000000000000000000000001","shards":1,"#,
        r#""draining":false,"suspended":false,"version":"1.2.3","resp":"10.0.0.1:1","#,
        r#""resp_cluster":null,"pinpriq":null,"link":"10.0.0.1:3"}"#
    );
    let status = concat!(
        r#"{"cluster":"tasks","engine":"etcd","shards":2,"served":1,"without_owner":[1],"#,
        r#""changing":[],"bytes_used":1572864,"bytes_max":1073741824,"nodes":["#
    );
    assert_eq!(
        words::status_as_json(&url(), &picture, ROOM).to_string(),
        format!("{status}{n1}]}}")
    );
    assert_eq!(words::nodes_as_json(&picture), format!("{n1}\n"));
    let expected = concat!(
        r#"{"shard":0,"owner":"n1","instance":"00000000000000000000000000000001","#,
        r#""state":"serving","term":10,"log_term":10,"first":1,"last":5,"#,
        r#""target":"n2"}"#,
        "\n",
        r#"{"shard":1,"owner":null,"instance":null,"state":null,"term":null,"log_term":null,"#,
        r#""first":null,"last":null,"target":null}"#,
        "\n"
    );
    assert_eq!(words::shards_as_json(&picture), expected);
}

#[test]
fn shards_are_named_in_few_words() {
    assert_eq!(named(&[3]), "shard 3");
    assert_eq!(named(&[0, 1, 2, 5, 7, 8]), "shards 0-2, 5, 7-8");
}
