//! Nodes whose engine was wiped or restored while they were stopped, and shards that were told to
//! move.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;

use super::{BETWEEN_TRIES, Cluster, Etcd, Process, TRIES};
use crate::peer::{check, pinpriq};

/// Copies what a stopped etcd has left.
fn copy(from: &Path, to: &Path) {
    fs::DirBuilder::new().recursive(true).create(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

impl Etcd {
    /// Stops it, and returns where it was.
    fn stop(self) -> [SocketAddr; 2] {
        [self.client, self.peer]
    }
}

impl Cluster {
    /// Waits until all shards are served, and the nodes are these.
    pub(super) fn until_served_by(&self, names: &[&str]) {
        self.ask_until(&["status"], |code, text| {
            let nodes = text.lines().skip(4).filter_map(|it| it.get(..2));
            let mut nodes: Vec<&str> = nodes.collect();
            nodes.sort_unstable();
            code == 0 && text.starts_with("all shards") && nodes == names
        });
    }

    /// Asks the node of this name.
    pub(super) fn at(&self, node: &str, arguments: &[&str]) -> Output {
        let nodes = String::from_utf8(self.ask(&["nodes", "--json"]).stdout).unwrap();
        let line = nodes.lines().find(|it| it.contains(&format!("\"node\":\"{node}\"")));
        let (_, rest) = line.unwrap().split_once("\"resp\":\"").unwrap();
        let (address, _) = rest.split_once('"').unwrap();
        pinpriq(arguments).args(["--address", address]).output().unwrap()
    }

    /// Asks until it is done: the engine may show a node for a while that has been killed.
    #[track_caller]
    pub(super) fn done(&self, node: &str, arguments: &[&str]) -> String {
        for _ in 0..TRIES {
            let output = self.at(node, arguments);
            if output.status.code() == Some(0) {
                return String::from_utf8(output.stdout).unwrap();
            }
            thread::park_timeout(BETWEEN_TRIES);
        }
        panic!("{arguments:?}: {:?}", self.at(node, arguments));
    }

    /// Runs a node that ends by itself with exit code 3, and returns why.
    #[track_caller]
    fn refusal(&self, name: &str, data: &Path) -> String {
        let output = self.serve(name, Some(data)).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{complaint}");
        complaint
    }
}

#[test]
fn an_engine_that_was_wiped_is_noticed_and_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let data = dir.path().join("n1");
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    let node = etcd.node("n1", dir.path());
    etcd.until_served_by(&["n1"]);
    etcd.done("n1", &["put", "jobs", "lost"]);
    let complaint = etcd.refusal("n2", &data);
    assert!(complaint.contains("another process uses this directory"), "{complaint}");
    drop(node);
    let single = pinpriq(&["serve", "--pinpriq", "off"]).arg("--data").arg(&data).output().unwrap();
    check(&single, 2, b"");

    let etcd = Etcd::start_at(&dir.path().join("wiped"), etcd.stop());
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    let complaint = etcd.refusal("n1", &data);
    assert!(complaint.contains("there is no cluster, and this node belongs to"), "{complaint}");
    check(&etcd.ask(&["nodes"]), 3, b"");
    check(&etcd.ask(&["accept-rollback"]), 3, b"");
    let accepted = b"accepted: this is generation 1 of the cluster\n";
    check(&etcd.ask(&["accept-rollback", "--data", data.to_str().unwrap()]), 0, accepted);
    let _node = etcd.node("n1", dir.path());
    etcd.until_served_by(&["n1"]);
    check(&etcd.at("n1", &["take", "jobs"]), 4, b"");
    let nothing = b"there is nothing to raise: the cluster has format 1\n";
    check(&etcd.ask(&["upgrade"]), 0, nothing);
    check(&etcd.ask(&["upgrade", "--json"]), 0, b"{\"format\":1,\"before\":1}\n");
}

#[test]
fn an_engine_that_was_restored_is_noticed_and_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let Some(etcd) = Etcd::start(&path("etcd")) else { return };
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    let node = etcd.node("n1", dir.path());
    etcd.until_served_by(&["n1"]);
    etcd.done("n1", &["put", "jobs", "kept"]);
    drop(node);
    let addresses = etcd.stop();
    copy(&path("etcd"), &path("backup"));
    let etcd = Etcd::start_at(&path("etcd"), addresses);
    let node = etcd.node("n1", dir.path());
    etcd.until_served_by(&["n1"]);
    let lost = etcd.done("n1", &["put", "jobs", "lost", "--priority", "-1"]);
    let line = etcd.done("n1", &["take", "jobs", "--ttr", "1h"]);
    let (receipt, payload) = line.split_once('\t').unwrap();
    assert_eq!(payload, "lost\n");
    drop(node);
    etcd.stop();

    // A node that has seen nothing serves what there is.
    let etcd = Etcd::start_at(&path("backup"), addresses);
    let _other = Process(etcd.serve("n2", None).stderr(Stdio::null()).spawn().unwrap());
    etcd.until_served_by(&["n2"]);
    let complaint = etcd.refusal("n1", &path("n1"));
    assert!(complaint.contains(": the engine was rolled back: this node has seen entry"));
    assert!(complaint.contains("shard ") && complaint.contains("finds a log"), "{complaint}");
    assert!(complaint.contains("`pinpriq cluster accept-rollback`"), "{complaint}");
    etcd.ask_until(&["check"], |code, text| {
        code == 3 && text.starts_with("the engine was rolled back: the node n1 has seen entry")
    });
    etcd.ask_until(&["status"], |_, text| text.starts_with("0 of 3 shards are served"));
    let complaint = String::from_utf8(etcd.at("n2", &["put", "jobs", "p"]).stderr).unwrap();
    assert!(complaint.contains("STORE the engine was rolled back"), "{complaint}");

    check(&etcd.ask(&["accept-rollback", "--json"]), 0, b"{\"generation\":1}\n");
    let _node = etcd.node("n1", dir.path());
    etcd.until_served_by(&["n1", "n2"]);
    let complaint = String::from_utf8(etcd.at("n1", &["ack", "jobs", receipt]).stderr).unwrap();
    assert!(complaint.contains("STALE "), "{complaint}");
    let new = etcd.done("n1", &["put", "jobs", "new"]);
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    assert!(number(&new) > number(&lost), "{new} after {lost}");
    let line = etcd.done("n2", &["take", "jobs"]);
    assert!(line.ends_with("\tkept\n"), "{line}");
}

#[test]
fn a_shard_moves_to_the_node_that_it_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    let _nodes = ["n1", "n2"].map(|name| etcd.node(name, dir.path()));
    etcd.until_served_by(&["n1", "n2"]);
    for wrong in [&["move", "3", "n1"][..], &["move", "0", "n3"], &["move", "0"]] {
        check(&etcd.ask(wrong), 2, b"");
    }
    let shards: Vec<String> = (0..3).map(|shard| shard.to_string()).collect();
    for node in ["n2", "n1"] {
        for shard in &shards {
            let told = format!("shard {shard} was told to move to {node}\n");
            check(&etcd.ask(&["move", shard, node]), 0, told.as_bytes());
        }
        let all = format!("{node}     serving");
        etcd.ask_until(&["shards"], |_, text| text.matches(&all).count() == 3);
    }
    let told = String::from_utf8(etcd.ask(&["shards", "--json"]).stdout).unwrap();
    assert_eq!(told.matches("\"target\":\"n1\"").count(), 3, "{told}");
    check(&etcd.ask(&["move", "2", "--back"]), 0, b"shard 2 may go where it belongs\n");
    let told = b"{\"shard\":0,\"target\":null}\n";
    check(&etcd.ask(&["move", "0", "--back", "--json"]), 0, told);
}
