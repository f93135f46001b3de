//! A single server becomes a cluster, and a cluster a single server. On etcd and on PostgreSQL.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pinpriq_testing::engines::PostgresPrograms;

use super::{Cluster, Etcd, Process, TRIES, gateway};
use crate::peer::{check, pinpriq};
use crate::serving::Serving;

/// The key of the record of the cluster on etcd, `pinpriq/look/meta`, in base64.
const META_KEY: &str = "cGlucHJpcS9sb29rL21ldGE=";

/// Runs a client command at a server, and returns what it prints.
type Run<'a> = &'a dyn Fn(&[&str]) -> String;

/// Starts a single server that speaks RESP, and returns where.
fn start(data: &Path) -> (Serving, String) {
    let server = Serving::start(data, &["--resp", "127.0.0.1:0"]);
    let address = server.door("resp");
    (server, address)
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Puts tasks of all kinds into a server. Returns the receipt of one that is held.
fn fill(address: &str) -> String {
    let run = |words: &[&str]| text(pinpriq(words).args(["--address", address]).output().unwrap());
    let receipt = |line: String| line.split_once('\t').unwrap().0.to_owned();
    run(&["queue", "create", "{a}q", "--dead-letter", "{a}dead", "--attempts", "3"]);
    run(&["put", "{a}q", "bad"]);
    let bad = receipt(run(&["take", "{a}q"]));
    run(&["bury", "{a}q", &bad, "--reason", "broken"]);
    run(&["put", "{a}q", "held"]);
    let held = receipt(run(&["take", "{a}q", "--ttr", "1h"]));
    run(&["put", "{a}q", "later", "--delay", "1h"]);
    run(&["put", "{a}q", "first", "--priority", "-3", "--key", "k"]);
    run(&["put", "{a}dead", "x", "--priority", "none"]);
    run(&["put", "q2", "u", "--unique", "k1", "--window", "1h"]);
    run(&["schedule", "set", "{a}s", "{a}q", "tick", "--cron", "0 0 1 1 *"]);
    run(&["queue", "create", "paused", "--capacity", "7"]);
    run(&["put", "paused", "waits"]);
    run(&["queue", "pause", "paused", "out"]);
    run(&["join", "news", "m1", "--lease", "1h"]);
    run(&["join", "news", "m2", "--lease", "1h"]);
    run(&["publish", "news", "hello"]);
    run(&["take", "news", "--member", "m2", "--ttr", "1h"]);
    held
}

/// Everything that is in a server, without what belongs to its connections and its start.
fn listing(run: impl Fn(&[&str]) -> String) -> String {
    let mut all = run(&["queue", "list", "--json"]) + &run(&["schedule", "show", "{a}s", "--json"]);
    for queue in ["{a}q", "{a}dead", "q2", "paused"] {
        all += &run(&["queue", "show", queue, "--json"]);
        all += &run(&["scan", queue, "--json"]);
    }
    for member in ["m1", "m2"] {
        all += &run(&["scan", "news", "--member", member, "--json"]);
    }
    all += &run(&["members", "news", "--json"]);
    let mut lines: Vec<String> = all.lines().map(without_what_changes).collect();
    lines.sort();
    lines.join("\n")
}

/// A member gets its whole lease again, and clients have other numbers.
fn without_what_changes(line: &str) -> String {
    let is_of_member = line.starts_with("{\"member\":");
    let changes = |part: &&str| {
        part.starts_with("\"client\":") || (is_of_member && part.starts_with("\"lease_until\":"))
    };
    line.split(',').filter(|part| !changes(part)).collect::<Vec<_>>().join(",")
}

/// Carries a server into a cluster and out of it again.
fn carried(cluster: &Cluster, dir: &Path) {
    let [data, copy] = ["data", "copy"].map(|name| dir.join(name));
    let (data, copy) = (data.to_str().unwrap(), copy.to_str().unwrap());
    let (server, address) = start(Path::new(data));
    let held = fill(&address);
    let at = |address: String| {
        move |words: &[&str]| text(pinpriq(words).args(["--address", &address]).output().unwrap())
    };
    let before = listing(at(address));
    let in_use = cluster.ask(&["import", data]);
    check(&in_use, 3, b"");
    assert!(complaint(&in_use).contains("another process uses this directory"), "{in_use:?}");
    server.stop();
    let missing = cluster.ask(&["import", &dir.join("nothing").display().to_string()]);
    check(&missing, 3, b"");

    let told = "9 tasks, 4 queues, 1 schedules, 2 members, 2 lanes, 1 publications into";
    let imported = text(cluster.ask(&["import", data, "--shards", "3"]));
    assert_eq!(imported, format!("imported {told} 3 shards\n"));
    let again = cluster.ask(&["import", data, "--shards", "3"]);
    check(&again, 3, b"");
    assert!(complaint(&again).contains("the engine is not empty: it holds the cluster"));
    let _nodes = ["n1", "n2", "n3"].map(|name| cluster.node(name, dir));
    cluster.until_served_by(&["n1", "n2", "n3"]);
    let found = listing(|words| cluster.done("n1", words));
    assert_eq!(found, before, "as it was imported");

    let used = cluster.ask(&["export", data]);
    check(&used, 2, b"");
    assert_eq!(text(cluster.ask(&["export", copy])), format!("exported {told} 1 shard\n"));
    assert!(text(pinpriq(&["check", copy]).output().unwrap()).ends_with("no damage\n"));
    let (server, address) = start(Path::new(copy));
    let single = at(address);
    assert_eq!(listing(&single), before, "as it was exported");
    // What was promised before holds in both.
    let node = |words: &[&str]| cluster.done("n2", words);
    let mut ids = Vec::new();
    for run in [&single as Run<'_>, &node] {
        run(&["ack", "{a}q", &held]);
        let unique = run(&["put", "q2", "u", "--unique", "k1", "--window", "1h"]);
        assert!(unique.ends_with("\tduplicate\n"), "{unique}");
        ids.push(run(&["put", "{a}q", "new", "--priority", "-9"]).trim().parse::<u64>().unwrap());
        assert!(run(&["take", "{a}q"]).ends_with("\tnew\n"));
    }
    assert!(ids[0] > ids[1] && ids[1] > 1_000, "numbers are not given twice: {ids:?}");
    server.stop();
}

#[test]
fn a_server_becomes_a_cluster_on_etcd_and_a_server_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    check(&etcd.ask(&["export", dir.path().join("copy").to_str().unwrap()]), 3, b"");
    carried(&etcd, dir.path());
}

/// Starts PostgreSQL with its files in this directory.
fn postgres(directory: &Path) -> Option<(Process, Cluster)> {
    let programs = PostgresPrograms::find_or_skip()?;
    programs.give(directory).unwrap();
    let data = directory.join("data");
    let run = |name: &str| -> Command {
        let mut command = programs.command(name);
        command.current_dir(directory).arg("-D").arg(&data);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let made = run("initdb").args(["-U", "pinpriq", "-A", "trust", "-N", "--locale=C"]).status();
    assert!(made.unwrap().success());
    // It is free once the listener is dropped.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let process =
        run("postgres").args(["-h", "127.0.0.1", "-k", "", "-p", &port.to_string()]).spawn();
    let url =
        format!("postgres://pinpriq@127.0.0.1:{port}/postgres?schema=carried&sslmode=disable");
    Some((Process(process.unwrap()), Cluster { url }))
}

#[test]
fn a_server_becomes_a_cluster_on_postgresql_and_a_server_again() {
    let (dir, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_server, cluster)) = postgres(files.path()) else { return };
    cluster.ask_until(&["nodes"], |code, _| code == 3);
    carried(&cluster, dir.path());
}

#[test]
fn what_a_killed_import_has_left_is_not_served_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    let data = dir.path().join("data");
    let (server, address) = start(&data);
    fill(&address);
    server.stop();
    let data = data.to_str().unwrap();
    let mut import = pinpriq(&["cluster", "import", data, "--shards", "1024"]);
    let import = Process(import.env("PINPRIQ_CLUSTER", &etcd.url).spawn().unwrap());
    let body = format!("{{\"key\":\"{META_KEY}\"}}");
    let is_marked = |_: &u32| gateway(etcd.client, "kv/range", &body).contains("\"value\"");
    assert!((0..TRIES * 100).any(|it| is_marked(&it)), "there is no record of a cluster");
    drop(import);

    let node = etcd.serve("n1", Some(&dir.path().join("n1"))).output().unwrap();
    assert_eq!(node.status.code(), Some(2), "{node:?}");
    assert!(complaint(&node).contains("`pinpriq cluster import` is done, or run that again"));
    check(&etcd.ask(&["export", dir.path().join("copy").to_str().unwrap()]), 3, b"");
    let checked = text_of_failed(&etcd.ask(&["check"]));
    assert!(checked.contains("a data directory is being imported"), "{checked}");
    check(&etcd.ask(&["accept-rollback"]), 3, b"");
    let imported = text(etcd.ask(&["import", data, "--shards", "3", "--json"]));
    let counts = r#"{"shards":3,"tasks":9,"queues":4,"schedules":1,"members":2,"lanes":2,"#;
    assert!(imported.starts_with(counts), "{imported}");
    let _node = etcd.node("n1", dir.path());
    etcd.until_served_by(&["n1"]);
    assert!(etcd.done("n1", &["take", "{a}q"]).ends_with("\tfirst\n"));
}

fn text_of_failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn queues_that_belong_together_must_come_into_one_shard() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    etcd.ask_until(&["nodes"], |code, _| code == 3);
    let data = dir.path().join("data");
    let (server, address) = start(&data);
    let create = ["queue", "create", "mail", "--dead-letter", "lost", "--address", &address];
    text(pinpriq(&create).output().unwrap());
    server.stop();
    let data = data.to_str().unwrap();
    let parted = etcd.ask(&["import", data]);
    check(&parted, 3, b"");
    assert!(complaint(&parted).contains("give their names a common part in braces"), "{parted:?}");
    check(&etcd.ask(&["nodes"]), 3, b"");
    assert!(text(etcd.ask(&["import", data, "--shards", "1"])).starts_with("imported 0 tasks"));
}
