//! Servers that archive while they serve: what is in the place then, and what they tell of it.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value as Json;

use super::{QUEUES, Ran, Room, Server, ran, run};
use crate::peer::pinpriq;

impl Room {
    /// Starts a server that archives into the place.
    fn archiving(&self, data: &str, flags: &[&str]) -> Server {
        let place = self.text("place");
        let archive = ["--archive", &place, "--archive-every", "100ms"];
        Server::start(&self.path(data), &[&archive, flags].concat())
    }

    /// The lines of the place.
    #[track_caller]
    fn lines(&self) -> Vec<Json> {
        let listed = self.archive("list", &["--json"]);
        assert_eq!((listed.code, listed.told.as_str()), (0, ""), "{listed:?}");
        listed.printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// What `pinpriq status` says of a server.
fn status(server: &Server, flags: &[&str]) -> Ran {
    let mut command = pinpriq(&[&["status"], flags].concat());
    ran(command.env("PINPRIQ_RESP_ADDRESS", server.serving.door("resp")))
}

/// Waits until a server has archived something.
fn until_archived(server: &mut Server) {
    while !server.info().contains("archive_state:ok") {}
}

impl Server {
    fn info(&mut self) -> String {
        super::text(&self.done("INFO persistence"))
    }
}

#[test]
fn all_that_was_confirmed_is_archived_when_the_server_has_stopped() {
    let room = Room::new();
    let mut server = room.archiving("data", &["--shards", "2"]);
    server.put("jobs", "one");
    let at = server.settled();
    for queue in QUEUES {
        server.put(queue, "two");
    }
    server.stop();
    let lines = room.lines();
    assert_eq!((lines.len(), &lines[0]["by"]), (1, &"serve".into()), "{lines:?}");
    assert_eq!(lines[0]["ranges"].as_array().map(Vec::len), Some(1), "{lines:?}");
    assert_eq!(room.archive("verify", &[]).code, 0);
    room.restore("new", &[]);
    room.restore("earlier", &["--until", &at.to_string()]);
    for (name, expected) in [("new", &["one", "two", "two"][..]), ("earlier", &["one"])] {
        let server = room.serve_two(name);
        let mut payloads = server.payloads();
        payloads.sort();
        assert_eq!(payloads, expected, "{name}");
        server.stop();
    }
}

#[test]
fn a_killed_server_goes_on_without_a_gap() {
    let room = Room::new();
    for round in 0..3 {
        let mut server = room.archiving("data", &[]);
        server.put("jobs", &format!("before-{round}"));
        until_archived(&mut server);
        server.put("jobs", &format!("after-{round}"));
        server.serving.kill();
    }
    room.archiving("data", &[]).stop();
    let lines = room.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["ranges"].as_array().map(Vec::len), Some(1), "{lines:?}");
    room.restore("new", &[]);
    let server = room.serve("new");
    let payloads: BTreeSet<String> = server.payloads().into_iter().collect();
    let put = |round: u32| [format!("before-{round}"), format!("after-{round}")];
    let expected: BTreeSet<String> = (0..3).flat_map(put).collect();
    assert_eq!(payloads, expected);
    server.stop();
}

#[test]
fn a_restored_directory_goes_on_in_the_same_place() {
    let room = Room::new();
    let mut server = room.archiving("data", &[]);
    server.put("jobs", "one");
    server.stop();
    let restored = room.restore("new", &[]);
    let mut server = room.archiving("new", &[]);
    server.put("jobs", "two");
    server.stop();
    let lines = room.lines();
    let known: Vec<&Json> = lines.iter().map(|line| &line["line"]).collect();
    assert_eq!(known, [&restored["from"], &restored["line"]]);
    assert_eq!(lines[1]["parent"]["line"], restored["from"]);
}

#[test]
fn status_tells_of_the_archive_of_a_server_that_has_one() {
    let room = Room::new();
    let mut server = room.archiving("data", &[]);
    server.put("jobs", "one");
    until_archived(&mut server);
    let output = status(&server, &[]);
    let last = output.printed.lines().last().unwrap();
    assert!(last.starts_with("archive: ok"), "{output:?}");
    let output = status(&server, &["--json"]);
    let objects: Vec<Json> =
        output.printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2, "{objects:?}");
    assert_eq!(objects[0].get("archive_state"), None);
    assert_eq!(objects[1]["archive_state"], "ok");
    assert!(objects[1]["archive_behind_ms"].is_u64(), "{objects:?}");
    server.stop();

    let server = room.serve("other");
    assert!(!status(&server, &[]).printed.contains("archive"));
    server.stop();
}

#[test]
fn a_server_serves_while_its_place_is_away_and_archives_when_it_is_back() {
    let room = Room::new();
    // As if nothing were mounted there.
    let place = room.text("mount/place");
    let mut server = Server::start(&room.path("data"), &["--archive", &place]);
    while server.info().contains("archive_failures:0") {}
    server.put("jobs", "one");
    let receipt = server.take("jobs");
    server.done(&format!("ACK jobs {receipt}"));
    server.put("jobs", "two");
    let output = status(&server, &[]);
    let last = output.printed.lines().last().unwrap();
    assert!(last.starts_with("archive: ") && !last.starts_with("archive: ok"), "{output:?}");
    assert!(Command::new("mkdir").arg(room.path("mount")).status().unwrap().success());
    until_archived(&mut server);
    server.stop();
    let restored = run(&["restore", &place, "--data", &room.text("new")]);
    assert_eq!((restored.code, restored.told.as_str()), (0, ""), "{restored:?}");
    let server = room.serve("new");
    assert_eq!(server.payloads(), ["two"]);
    server.stop();
}

#[test]
fn a_server_does_not_archive_into_its_data_or_without_any() {
    let room = Room::new();
    let (data, inside, place) = (room.text("data"), room.text("data/place"), room.text("place"));
    let none: &[&str] = &[];
    let memory: &[&str] = &["--durability", "memory"];
    let cluster: &[&str] = &["--cluster", "etcd://127.0.0.1:1/test"];
    for (place, flags, words) in [
        (&inside, none, "lies in the data directory"),
        (&data, none, "give a directory outside"),
        (&place, memory, "durability memory uses none"),
        (&place, cluster, "take the backups of its engine"),
    ] {
        let line = ["serve", "--pinpriq", "127.0.0.1:0", "--data", &data, "--archive", place];
        let output = run(&[&line, flags].concat());
        assert_eq!((output.code, output.printed.as_str()), (2, ""), "{output:?}");
        assert!(output.told.contains(words), "{output:?}");
        assert!(!room.path("data").exists(), "a start that was refused has made the directory");
    }
}
