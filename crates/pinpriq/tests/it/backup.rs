//! Backups of real servers: taken while they run, looked after, and brought back.

mod archiving;
mod coming_back;
mod following;
mod keeping;
mod looking_after;
mod looks;
mod misuse;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_proto::wire::resp::{Value, Words};
use serde_json::Value as Json;

use crate::files;
use crate::peer::pinpriq;
use crate::serving::Serving;

/// Queues that two shards have one each of.
const QUEUES: [&str; 2] = ["jobs", "a"];

/// A folder with a place for backups, and with data directories beside it.
struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Starts a server with one shard.
    fn serve(&self, data: &str) -> Server {
        Server::start(&self.path(data), &[])
    }

    /// Starts a server with two shards.
    fn serve_two(&self, data: &str) -> Server {
        Server::start(&self.path(data), &["--shards", "2"])
    }

    /// Backs a server up into the place, with all that it was asked so far.
    #[track_caller]
    fn back_up(&self, server: &mut Server) -> Json {
        server.settled();
        let output = server.backs_up(&self.text("place"), &["--json"]);
        assert_eq!((output.code, output.told.as_str()), (0, ""), "{output:?}");
        serde_json::from_str(&output.printed).unwrap()
    }

    /// Runs `pinpriq archive` on the place.
    fn archive(&self, command: &str, flags: &[&str]) -> Ran {
        run(&[&["archive", command, &self.text("place")], flags].concat())
    }

    /// Runs `pinpriq restore` into this directory.
    fn restores(&self, data: &str, flags: &[&str]) -> Ran {
        let (place, data) = (self.text("place"), self.text(data));
        run(&[&["restore", &place, "--data", &data], flags].concat())
    }

    /// The same, which succeeds.
    #[track_caller]
    fn restore(&self, data: &str, flags: &[&str]) -> Json {
        let output = self.restores(data, &[&["--json"], flags].concat());
        assert_eq!((output.code, output.told.as_str()), (0, ""), "{output:?}");
        serde_json::from_str(&output.printed).unwrap()
    }

    /// All files of the place.
    fn place(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.path("place"), "", &mut found);
        found
    }
}

fn collect(directory: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for name in files::names(directory) {
        let (path, known) = (directory.join(&name), format!("{prefix}{name}"));
        if path.is_dir() {
            collect(&path, &format!("{known}/"), found);
        } else {
            found.insert(known, files::read(&path));
        }
    }
}

/// How a command has ended.
#[derive(Debug)]
struct Ran {
    code: i32,
    printed: String,
    told: String,
}

fn run(arguments: &[&str]) -> Ran {
    ran(&mut pinpriq(arguments))
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let code = output.status.code().unwrap();
    let (printed, told) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    Ran { code, printed: printed.unwrap(), told: told.unwrap() }
}

/// A server and a connection to it.
struct Server {
    serving: Serving,
    resp: Resp,
}

impl Server {
    fn start(data: &Path, flags: &[&str]) -> Self {
        let doors = ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let serving = Serving::start(data, &[&doors, flags].concat());
        let resp = connect(&serving);
        Self { serving, resp }
    }

    fn ask(&mut self, line: &str) -> Value {
        self.resp.ask(&Words::new(line)).unwrap()
    }

    /// Asks for what is not refused.
    #[track_caller]
    fn done(&mut self, line: &str) -> Value {
        let answer = self.ask(line);
        assert!(!matches!(answer, Value::Error(_)), "{line}: {answer:?}");
        answer
    }

    /// Puts a task and returns its id.
    #[track_caller]
    fn put(&mut self, queue: &str, payload: &str) -> String {
        text(&self.done(&format!("PUT {queue} {payload}")))
    }

    /// Takes a task for an hour, and returns its receipt.
    #[track_caller]
    fn take(&mut self, queue: &str) -> String {
        let taken = self.done(&format!("TAKE {queue} TTR 3600000"));
        text(&taken.elements().expect("tasks")[0].elements().expect("a task")[2])
    }

    /// The time of the server.
    fn now(&mut self) -> u64 {
        let info = text(&self.done("INFO"));
        let line = info.lines().find_map(|line| line.strip_prefix("server_time_ms:"));
        line.unwrap().trim().parse().unwrap()
    }

    /// Returns a moment at which everything so far has happened, and nothing later will.
    fn settled(&mut self) -> u64 {
        let at = self.now();
        while self.now() == at {}
        at
    }

    /// Waits until the server's time has gone on.
    fn let_pass(&mut self, ms: u64) {
        let from = self.now();
        while self.now() < from + ms {}
    }

    /// All that `pinpriq export` tells of the server.
    fn export(&self) -> String {
        let mut command = pinpriq(&["export", "--all"]);
        let output = ran(command.env("PINPRIQ_RESP_ADDRESS", self.serving.door("resp")));
        assert_eq!(output.code, 0, "{output:?}");
        output.printed
    }

    /// The tasks of all queues.
    fn tasks(&self) -> Vec<Json> {
        let records = self.export();
        let records = records.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
        records.filter(|record| record["type"] == "task").collect()
    }

    /// The payloads of all queues.
    fn payloads(&self) -> Vec<String> {
        self.tasks().iter().map(|task| task["payload"].as_str().unwrap().to_owned()).collect()
    }

    /// The slots for which schedules have put tasks.
    fn slots(&self) -> Vec<u64> {
        self.tasks().iter().filter_map(|task| task["slot"].as_u64()).collect()
    }

    fn backs_up(&self, place: &str, flags: &[&str]) -> Ran {
        let mut command = pinpriq(&[&["backup", place], flags].concat());
        ran(command.env("PINPRIQ_HTTP_ADDRESS", self.serving.door("http")))
    }

    fn stop(self) {
        self.serving.stop();
    }
}

fn connect(serving: &Serving) -> Resp {
    let mut resp = Resp::over(Line::connect(&*serving.door("resp")).unwrap());
    resp.ask(&Words::new("HELLO 3")).unwrap();
    resp
}

#[track_caller]
fn text(value: &Value) -> String {
    let bytes = value.as_bytes().unwrap_or_else(|| panic!("{value:?} is no text"));
    String::from_utf8(bytes.to_vec()).unwrap()
}
