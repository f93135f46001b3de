//! The commands on topics and members, each once or more, and `--member` on those for queues.

use super::Server;
use super::commands::lines;
use crate::peer::check;

#[test]
fn members_are_joined_listed_and_left() {
    let server = Server::start();
    assert_eq!(server.printed(&["publish", "news", "nobody"]), "0\n");
    assert_eq!(server.printed(&["members", "news"]), "");
    assert_eq!(server.printed(&["join", "news", "m1", "--lease-ms", "100000"]), "1\n");
    assert_eq!(server.printed(&["join", "other", "m1"]), "1\n");
    assert_eq!(server.printed(&["join", "news", "m10", "--json"]), "{\"incarnation\":4}\n");
    server.done(&["beat", "m10", "--lease-ms", "5000"]);
    server.refused(&["beat", "m2"], "NOTFOUND there is no member \"m2\"");
    assert_eq!(server.printed(&["publish", "news", "p", "--key", "k"]), "2\n");

    let members = server.printed(&["members", "news"]);
    let lines: Vec<Vec<&str>> = members.lines().map(|it| it.split('\t').collect()).collect();
    assert_eq!([lines[0][0], lines[0][1], lines[0][3], lines[0][4]], ["m1", "1", "1", "0"]);
    assert_eq!([lines[1][0], lines[1][1], lines[1][3], lines[1][4]], ["m10", "4", "1", "0"]);
    assert_eq!(lines[0][2].len(), "1795186184303".len(), "{members}");
    let members = server.printed(&["members", "news", "--json"]);
    assert!(members.starts_with("{\"member\":\"m1\",\"incarnation\":1,\"lease_until\":"));
    assert!(members.lines().all(|line| line.ends_with(",\"ready\":1,\"taken\":0}")), "{members}");

    assert_eq!(server.printed(&["leave", "news", "m10"]), "1\n");
    assert_eq!(server.printed(&["leave", "news", "m10", "--json"]), "{\"lanes\":0}\n");
    assert_eq!(server.printed(&["leave", "m1"]), "2\n");
    assert_eq!(server.printed(&["leave", "m1"]), "0\n");
}

#[test]
fn lines_of_stdin_are_published_to_every_lane() {
    let server = Server::start();
    for member in ["m", "n"] {
        server.printed(&["join", "t", member]);
    }
    let input = lines(3_000, |number| format!("task {number}"));
    let lanes = "2\n".repeat(3_000);
    check(&server.run_with(&["publish", "t", "--lines"], input.as_bytes()), 0, lanes.as_bytes());
    check(&server.run_with(&["publish", "t"], b"by\nstdin"), 0, b"2\n");
    let count = server.run_with(&["publish", "t", "-", "--count", "3", "--ttl-ms", "1"], b"gone");
    check(&count, 0, b"2\n2\n2\n");
    let dated = server.printed(&["publish", "t", "p", "--deadline", "1700000000000"]);
    assert_eq!(dated, "0\n");
    for member in ["m", "n"] {
        let taken = server.printed(&["take", "t", "--member", member, "--count", "5000"]);
        let payloads: String =
            taken.lines().take(3_000).map(|line| line.split('\t').nth(1).unwrap()).collect();
        assert_eq!(payloads, input.replace('\n', ""));
    }
}

#[test]
fn what_can_be_done_with_a_queue_can_be_done_with_a_lane() {
    let server = Server::start();
    for member in ["m", "n"] {
        server.printed(&["join", "t", member]);
    }
    let of = |words: &[&str]| server.printed(&[words, &["--member", "m"]].concat());
    server.printed(&["publish", "t", "p"]);
    let taken = of(&["take", "t"]);
    let (receipt, payload) = taken.split_once('\t').unwrap();
    let id = receipt.split('-').next().unwrap();
    assert_eq!(payload, "p\n");
    assert_ne!(of(&["touch", "t", receipt]), "-\n");
    assert_eq!(of(&["bury", "t", receipt, "--reason", "why"]), "");
    assert!(of(&["get", "t", id]).contains("\nreason: why\n"));
    assert!(of(&["get", "t", id]).contains("\nmember: m\n"));
    assert_eq!(of(&["peek", "t", "--state", "buried"]), format!("{id}\tp\n"));
    assert_eq!(of(&["plow", "t"]), "1\n");
    assert_eq!(of(&["switch", "t", id, "--to", "buried"]), "B\n");
    assert_eq!(of(&["dig", "t", id]), "R\n");
    assert_eq!(of(&["restart", "t", id]), "R\n");
    assert_eq!(of(&["update", "t", id, "--payload", "q"]), "");
    let taken = of(&["take", "t"]);
    assert_eq!(of(&["snatch", "t", id]), "R\n");
    let stale = taken.split('\t').next().unwrap();
    server.refused(&["ack", "t", stale], "STALE ");
    let taken = of(&["take", "t"]);
    let awaited = server.run(&["await", "t", id, "--wait-ms", "0", "--member", "m"]);
    check(&awaited, 13, b"timeout\tT\n");
    assert_eq!(of(&["release", "t", taken.split('\t').next().unwrap()]), "R\n");
    assert_eq!(of(&["kill", "t", id]), "1\n");
    assert_eq!(of(&["queue", "set", "t", "--capacity", "1", "--ttr-ms", "5"]), "");
    assert!(of(&["queue", "show", "t"]).contains("capacity: 1\n"));
    assert_eq!(of(&["queue", "pause", "t", "in"]), "");
    assert_eq!(server.printed(&["publish", "t", "p"]), "1\n");
    assert_eq!(of(&["queue", "resume", "t"]), "");
    assert_eq!(server.printed(&["publish", "t", "p"]), "2\n");
    assert_eq!(server.printed(&["publish", "t", "p"]), "1\n");
    assert!(of(&["stats", "t"]).ends_with("\nmissed: 2\n"));
    assert_eq!(of(&["queue", "truncate", "t"]), "1\n");
    assert_eq!(server.printed(&["queue", "truncate", "t", "--member", "n"]), "4\n");
    server.refused(&["take", "t", "--member", "x"], "NOTFOUND there is no member \"x\"");
    server.refused(&["queue", "show", "t"], "NOQUEUE ");
}

#[test]
fn a_worker_works_for_a_member() {
    let server = Server::start();
    server.printed(&["join", "t", "m"]);
    server.printed(&["publish", "t", "p", "--count", "3"]);
    let worker = ["take", "t", "--member", "m", "--exec", "echo $PINPRIQ_MEMBER $(cat)", "--once"];
    check(&server.run(&worker), 0, b"m p\nm p\nm p\n");
    check(&server.run(&["take", "t", "--member", "m"]), 4, b"");
    server.refused(&["take", "t", "--member", "x", "--exec", "true"], "NOTFOUND ");
}
