//! A warm standby: it follows what comes into a place, says how far it is, and a server goes on
//! from it.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::{QUEUES, Room, Server, run};
use crate::files;
use crate::peer::pinpriq;
use crate::serving::Serving;

/// How long it may take. Nothing waits for this to pass.
const GUARD_MS: u64 = 60_000;

/// Starts to follow the place of a room, and waits until it has a state.
fn follow(room: &Room, data: &str) -> Serving {
    let (place, data, status) = (room.text("place"), room.text(data), room.text("status"));
    let command = ["restore", &place, "--data", &data, "--follow", "--every", "100ms"];
    let telling = ["--status", &status, "--http", "127.0.0.1:0"];
    let standby = Serving::of_command(pinpriq(&[&command[..], &telling].concat()));
    standby.logged("pinpriq: following line ");
    standby
}

fn status(room: &Room) -> Json {
    serde_json::from_slice(&files::read(&room.path("status"))).unwrap()
}

/// Waits until the standby has the state of a mark.
#[track_caller]
fn wait_for(room: &Room, server: &mut Server, mark: u64) {
    let last = server.now() + GUARD_MS;
    while status(room)["mark"] != mark {
        assert!(server.now() < last, "{}", status(room));
    }
}

/// What it answers over HTTP: the status, and the body.
fn asked(standby: &Serving, path: &str) -> (String, String) {
    let line = standby.logged("listening: http://");
    let (_, rest) = line.split_once("http://").unwrap();
    let (address, _) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn a_standby_follows_and_a_server_goes_on_from_it() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    let mut ids = BTreeSet::new();
    for queue in QUEUES {
        ids.insert(server.put(queue, "first"));
    }
    room.back_up(&mut server);
    let standby = follow(&room, "standby");
    wait_for(&room, &mut server, 1);
    for queue in QUEUES {
        ids.insert(server.put(queue, "second"));
    }
    let at = room.back_up(&mut server)["at_ms"].as_u64().unwrap();
    wait_for(&room, &mut server, 2);
    let told = status(&room);
    assert_eq!((&told["state"], &told["at_ms"]), (&"following".into(), &at.into()), "{told}");
    assert_eq!(told["error"], Json::Null);
    let (head, body) = asked(&standby, "/healthz");
    assert_eq!(head, "HTTP/1.1 200 OK");
    let answered: Json = serde_json::from_str(&body).unwrap();
    assert_eq!(answered["line"], told["line"]);
    assert_eq!(asked(&standby, "/other").0, "HTTP/1.1 404 Not Found");

    // Nobody else uses the directory.
    let data = room.text("standby");
    let output = run(&["serve", "--data", &data, "--shards", "2", "--pinpriq", "127.0.0.1:0"]);
    assert_eq!(output.code, 3, "{output:?}");
    let sentence =
        "follows an archive: go on following with `pinpriq restore --follow`, or start a server";
    let new = room.text("new");
    let others: [&[&str]; 3] =
        [&["check", &data], &["salvage", &data, &new], &["reshard", &data, &new, "--shards", "3"]];
    for arguments in others {
        let output = run(arguments);
        assert_eq!(output.code, 3, "{output:?}");
        assert!(output.told.contains(sentence), "{output:?}");
    }
    let output = room.restores("standby", &[]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.told.contains(sentence), "{output:?}");

    // It ends in order, and goes on with what came meanwhile.
    assert_eq!(standby.signal("-TERM"), Some(0));
    server.put("jobs", "third");
    room.back_up(&mut server);
    let expected = server.export();
    let standby = follow(&room, "standby");
    wait_for(&room, &mut server, 3);
    assert_eq!(standby.signal("-INT"), Some(0));
    server.stop();
    let mut server = room.serve_two("standby");
    assert_eq!(server.export(), expected);
    for queue in QUEUES {
        assert!(ids.insert(server.put(queue, "later")), "an id was given again");
    }
    // It goes on in the same place, and follows no more.
    assert_eq!(room.back_up(&mut server)["mark"], 4);
    server.stop();
    let output = run(&["restore", &room.text("place"), "--data", &data, "--follow"]);
    assert_eq!(output.code, 2, "{output:?}");
}

#[test]
fn following_ends_when_a_restored_server_has_gone_on() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    room.back_up(&mut server);
    let mut standby = follow(&room, "standby");
    server.stop();
    room.restore("restored", &[]);
    let mut restored = room.serve("restored");
    room.back_up(&mut restored);
    standby.logged("somebody has restored line");
    assert_eq!(standby.wait().code(), Some(1));
    restored.stop();
}

#[test]
fn a_standby_waits_for_a_place() {
    let room = Room::new();
    let [place, data, told] = ["place", "standby", "status"].map(|name| room.text(name));
    let arguments = ["restore", &place, "--data", &data, "--follow", "--status", &told];
    let standby = Serving::of_command(pinpriq(&arguments));
    standby.logged("Waiting, and trying again");
    let told = status(&room);
    assert_eq!((&told["state"], &told["mark"]), (&"waiting".into(), &Json::Null), "{told}");
    assert!(!room.path("standby").exists());
    let mut server = room.serve("data");
    server.put("jobs", "x");
    room.back_up(&mut server);
    standby.logged("pinpriq: following line ");
    assert_eq!(standby.signal("-TERM"), Some(0));
    server.stop();
}

#[test]
fn a_standby_waits_for_what_it_followed_to_be_back() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    room.back_up(&mut server);
    server.stop();
    let standby = follow(&room, "standby");
    assert_eq!(standby.signal("-TERM"), Some(0));
    let [marks, elsewhere] = ["place/marks", "elsewhere"].map(|name| room.path(name));
    let moved = |from: &Path, to: &Path| {
        assert!(Command::new("mv").args([from, to]).status().unwrap().success());
    };
    moved(&marks, &elsewhere);
    let [place, data] = ["place", "standby"].map(|name| room.text(name));
    let arguments = ["restore", &place, "--data", &data, "--follow", "--every", "100ms"];
    let standby = Serving::of_command(pinpriq(&arguments));
    standby.logged("there is no backup in ");
    moved(&elsewhere, &marks);
    standby.logged("pinpriq: following line ");
    assert_eq!(standby.signal("-TERM"), Some(0));
}

#[test]
fn options_of_one_moment_are_no_options_of_following() {
    let room = Room::new();
    for flags in [&["--until", "latest"][..], &["--dry-run"], &["--paused"], &["--json"]] {
        let output = room.restores("standby", &[&["--follow"], flags].concat());
        assert_eq!(output.code, 2, "{output:?}");
    }
    let missing = room.text("missing/status");
    let output = room.restores("standby", &["--follow", "--status", &missing]);
    assert_eq!(output.code, 2, "{output:?}");
}
