//! `pinpriq look`: a moment of a place or of a data directory, shown read-only.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command};

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Json, QUEUES, Ran, Room, ran, run};
use crate::files;
use crate::peer::pinpriq;

/// A look that goes on until it is ended.
pub(super) struct Look {
    child: Child,
    /// What it says that it shows, or all that it says as JSON.
    first: String,
    /// Where it speaks RESP and HTTP.
    pub(super) resp: String,
    http: String,
    /// Where it makes its directory.
    folder: PathBuf,
}

impl Look {
    /// Looks at what has this name in a room, and waits until it answers.
    pub(super) fn begin(room: &Room, name: &str, flags: &[&str]) -> Self {
        let folder = room.path("tmp");
        assert!(Command::new("mkdir").arg("-p").arg(&folder).status().unwrap().success());
        let mut command = pinpriq(&[&["look", &room.text(name)], flags].concat());
        let mut child = command.env("TMPDIR", &folder).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().expect("a look says what it shows, and where").unwrap();
        let first = line();
        if flags.contains(&"--json") {
            let told: Json = serde_json::from_str(&first).unwrap();
            let [resp, http] = ["resp", "http"].map(|door| told[door].as_str().unwrap().to_owned());
            return Self { child, first, resp, http, folder };
        }
        let (resp, http) = (line(), line());
        let resp = resp.strip_prefix("RESP: ").unwrap().split_once(',').unwrap().0.to_owned();
        let http = http.strip_prefix("dashboard: http://").unwrap().trim_end_matches('/');
        Self { child, first, resp, http: http.to_owned(), folder }
    }

    fn connect(&self) -> Resp {
        let mut resp = Resp::over(Line::connect(&*self.resp).unwrap());
        resp.ask(&Words::new("HELLO 3")).unwrap();
        resp
    }

    /// The payloads of all queues.
    fn payloads(&self) -> Vec<String> {
        let output = ran(&mut pinpriq(&["export", "--all", "--address", &self.resp]));
        assert_eq!(output.code, 0, "{output:?}");
        let records = output.printed.lines();
        let records = records.map(|line| serde_json::from_str::<Json>(line).unwrap());
        let tasks = records.filter(|record| record["type"] == "task");
        tasks.map(|task| task["payload"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends it, and checks that it leaves nothing.
    pub(super) fn end(self) {
        self.end_by("-INT");
    }

    /// Does the same by a signal.
    fn end_by(mut self, signal: &str) {
        assert_eq!(files::names(&self.folder).len(), 1, "its directory is there");
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(files::names(&self.folder), [""; 0]);
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that a command was refused with this code and in these words.
#[track_caller]
fn refused(output: &Ran, code: i32, words: &str) {
    assert_eq!((output.code, output.printed.as_str()), (code, ""), "{output:?}");
    assert!(output.told.contains(words), "{output:?}");
}

#[test]
fn a_moment_of_a_place_is_shown_and_nothing_changes() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    for queue in QUEUES {
        server.done(&format!("PUT {queue} {queue}-brief TTL 1000"));
        server.done(&format!("PUT {queue} {queue}-held"));
    }
    let before = server.settled();
    server.let_pass(1_000);
    server.put("jobs", "later");
    room.back_up(&mut server);
    let place = room.place();

    let look = Look::begin(&room, "place", &["--until", &before.to_string()]);
    assert!(look.first.ends_with(", by mark 1: 4 tasks, 2 queues"), "{}", look.first);
    let mut expected = QUEUES.map(|queue| [format!("{queue}-brief"), format!("{queue}-held")]);
    expected.sort();
    let mut shown = look.payloads();
    shown.sort();
    assert_eq!(shown, expected.concat());
    let mut resp = look.connect();
    for line in ["PUT jobs x", "TAKE jobs WAIT 100000", "POP a", "QUEUE DROP jobs", "SUBSCRIBE a"] {
        let answer = resp.ask(&Words::new(line)).unwrap();
        let is_refused =
            matches!(&answer, Value::Error(told) if told.starts_with("READONLY this is a look"));
        assert!(is_refused, "{line}: {answer:?}");
    }
    let mut backup = pinpriq(&["backup", &room.text("other")]);
    refused(&ran(backup.env("PINPRIQ_HTTP_ADDRESS", &look.http)), 5, "READONLY");
    let status = run(&["status", "--address", &look.resp]);
    let moment = look.first.split(' ').next().unwrap();
    let last = format!("a look at {moment}: nothing changes here");
    assert_eq!(status.printed.lines().last(), Some(last.as_str()), "{status:?}");
    let status = run(&["status", "--json", "--address", &look.resp]);
    let all: Json = serde_json::from_str(status.printed.lines().last().unwrap()).unwrap();
    assert_eq!(all["look_at_ms"], before, "{status:?}");
    look.end();
    assert!(room.place() == place, "the place was changed");
    server.stop();
}

#[test]
fn a_data_directory_that_nobody_uses_is_shown_as_far_back_as_it_reaches() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    server.put("jobs", "first");
    server.put("a", "other");
    let before = server.settled();
    server.put("jobs", "second");
    let data = room.text("data");
    refused(&run(&["look", &data]), 3, "");
    server.serving.kill();
    let files = files::everything(&room.path("data"));

    let until = before.to_string();
    for (until, why, expected) in [
        ("latest", "latest", &["first", "other", "second"][..]),
        (until.as_str(), "exact", &["first", "other"]),
        ("2999-01-01T00:00:00Z", "latest", &["first", "other", "second"]),
    ] {
        let look = Look::begin(&room, "data", &["--until", until, "--json"]);
        let mut shown = look.payloads();
        shown.sort();
        assert_eq!(shown, expected, "{until}");
        let told: Json = serde_json::from_str(&look.first).unwrap();
        assert_eq!((&told["why"], &told["from"]), (&why.into(), &Json::Null), "{told}");
        assert_eq!((&told["tasks"], &told["queues"]), (&shown.len().into(), &2.into()), "{told}");
        look.end();
    }
    refused(&run(&["look", &data, "--until", "2001-09-09T01:46:40Z"]), 4, "reaches back to 20");
    refused(&run(&["look", &data, "--line", "00ab00000000cdef"]), 2, "only a place has a --line");
    refused(&run(&["look", &data, "--resp", "0.0.0.0:0"]), 2, "other machines reach");
    refused(&run(&["look", &room.text("nothing")]), 4, "there is no backup");
    assert!(files::everything(&room.path("data")) == files, "the directory was changed");
}

#[test]
fn a_terminal_that_closes_ends_it_too() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    server.serving.kill();
    for signal in ["-HUP", "-TERM"] {
        let look = Look::begin(&room, "data", &[]);
        assert_eq!(look.payloads(), ["x"]);
        look.end_by(signal);
    }
}
