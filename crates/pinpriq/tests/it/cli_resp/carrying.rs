//! `pinpriq export` and `import`: what leaves one server comes into another as it was.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;

use super::{Server, member_of};
use crate::files;
use crate::peer::{check, pinpriq};
use crate::serving::Serving;

/// A moment that no test reaches, on a whole day.
const FAR: &str = "4102444800000";

/// A server with several shards.
fn sharded() -> Server {
    let data = tempfile::tempdir().unwrap();
    let mut command = pinpriq(&["serve", "--pinpriq", "off", "--resp", "127.0.0.1:0"]);
    command.args(["--durability", "memory", "--log-format", "json", "--shards", "3"]);
    command.arg("--data").arg(data.path());
    let serving = Serving::of_command(command);
    let address = serving.door("resp");
    Server { serving: Some(serving), address, _data: data }
}

/// A queue with a task in each state, windows and a schedule, and others.
fn fill(server: &Server) {
    server.done(&["queue", "create", "{a}jobs", "--ids", "given", "--after-ack", "keep"]);
    server.done(&["queue", "set", "{a}jobs", "--dead-letter", "{a}dead", "--attempts", "1"]);
    for id in ["done", "dead", "taken", "buried", "ready"] {
        server.printed(&["put", "{a}jobs", "payload", "--id", id, "--key", "k"]);
    }
    let receipt = server.take("{a}jobs");
    server.done(&["ack", "{a}jobs", &receipt]);
    let receipt = server.take("{a}jobs");
    server.printed(&["fail", "{a}jobs", &receipt, "--reason", "bad \u{1b} reason"]);
    server.take("{a}jobs");
    let receipt = server.take("{a}jobs");
    server.done(&["bury", "{a}jobs", &receipt, "--reason", "no"]);
    let waits = ["put", "{a}jobs", "-", "--id", "waits", "--delay", "10d", "--priority", "none"];
    let unique = ["--unique", "u", "--window", "20d"];
    let put = server.run_with(&[&waits[..], &unique].concat(), b"\x00\xff\n\"");
    assert!(put.status.success(), "{put:?}");
    let gone = server.printed(&["put", "plain", "p", "--unique", "u", "--window", "20d"]);
    let (gone, _) = gone.split_once('\t').unwrap();
    assert_eq!(server.printed(&["kill", "plain", gone]), "1\n");
    server.printed(&["put", "plain", "p", "--unique", "v", "--window", "20d", "--ttl", "9d"]);
    server.done(&["queue", "pause", "plain", "out"]);
    let every = ["--every", "1d", "--at", FAR];
    server.printed(&[&["schedule", "set", "{a}s", "{a}jobs", "tick"][..], &every].concat());
    server.printed(&[&["schedule", "set", "{b}s", "{b}other", "tick"][..], &every].concat());
    server.done(&["schedule", "pause", "{b}s"]);
}

/// The lines of an export without what differs on another server.
fn comparable(text: &str) -> Vec<String> {
    let is_given = |line: &str| line.contains("\"queue\":\"{a}jobs\"");
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let line = line.replace("\"state\":\"taken\"", "\"state\":\"ready\"");
            match line.split_once("\"id\":\"") {
                Some((before, rest)) if !is_given(&line) && !line.contains("\"window\"") => {
                    let (_, after) = rest.split_once('"').unwrap();
                    format!("{before}{after}")
                }
                _ => line,
            }
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn what_was_exported_and_imported_is_the_same() {
    let (from, to) = (sharded(), sharded());
    fill(&from);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.jsonl");
    let file = path.to_str().unwrap();
    let counts = "2 queues, 7 tasks, 1 window, 2 schedules";
    assert_eq!(from.printed(&["export", "--all", file]), format!("exported {counts}\n"));
    let text = std::fs::read_to_string(&path).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(first, "{\"type\":\"pinpriq-export\",\"version\":1}");
    assert!(
        text.ends_with(
            "{\"type\":\"end\",\"queues\":2,\"tasks\":7,\"windows\":1,\"schedules\":2}\n"
        )
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");

    assert_eq!(to.printed(&["import", file]), format!("imported {counts}\n"));
    assert_eq!(comparable(&to.printed(&["export", "--all"])), comparable(&text));
    assert_eq!(to.known("{a}jobs", "waits", "state"), "W");
    // What is unique stays so.
    to.refused(&["put", "plain", "p", "--unique", "u", "--on-dup", "reject"], "EXISTS");

    // One queue alone, over a pipe.
    let alone = from.printed(&["export", "plain"]);
    assert_eq!(alone.lines().count(), 5);
    let third = Server::start();
    let imported = third.run_with(&["import", "-"], alone.as_bytes());
    check(&imported, 0, b"imported 1 queue, 1 task, 1 window, 0 schedules\n");
    assert_eq!(comparable(&third.printed(&["export", "plain", "-"])), comparable(&alone));
}

#[test]
fn limits_come_before_the_queues_that_use_them() {
    let (from, to) = (sharded(), sharded());
    from.done(&["limit", "set", "{a}gpu", "--max", "8", "--rate", "60/60000"]);
    from.done(&["limit", "set", "free"]);
    from.done(&["queue", "create", "{a}render", "--uses", "{a}gpu"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.jsonl");
    let file = path.to_str().unwrap();
    let counts = "1 queue, 0 tasks, 0 windows, 0 schedules, 2 limits";
    assert_eq!(from.printed(&["export", "--all", file]), format!("exported {counts}\n"));
    assert_eq!(to.printed(&["import", file]), format!("imported {counts}\n"));
    assert_eq!(to.printed(&["export", "--all"]), from.printed(&["export", "--all"]));
    let shown = to.printed(&["limit", "show", "{a}gpu", "--json"]);
    assert!(shown.contains("\"max\":8,\"rate\":\"60/60000\""), "{shown}");
    assert!(shown.contains("\"queues\":1"), "{shown}");
    to.refused(&["limit", "drop", "{a}gpu"], "WRONGSTATE");
    to.refused(&["queue", "set", "elsewhere", "--uses", "{a}gpu"], "CROSSSHARD");

    // A queue alone does not bring its limit along.
    let alone = from.printed(&["export", "{a}render"]);
    let third = Server::start();
    let imported = third.run_with(&["import", "-"], alone.as_bytes());
    let complaint = check(&imported, 5, b"");
    assert!(complaint.contains("NOTFOUND there is no limit"), "{complaint}");
}

/// A batch in each state, of which the closed one has a task that is done, and one whose name is no
/// text. What waits for a batch is in the queue whose name comes first.
fn fill_batches(server: &Server) {
    server.printed(&["put", "{a}thumbs", "p", "--batch", "{a}closed", "--count", "2"]);
    let receipt = server.take("{a}thumbs");
    server.done(&["ack", "{a}thumbs", &receipt]);
    server.printed(&["put", "{a}thumbs", "p", "--batch", "{a}open", "--count", "2"]);
    server.printed(&["put", "{a}albums", "ready", "--after", "{a}closed", "--if", "acked"]);
    assert_eq!(server.printed(&["batch", "close", "{a}closed"]), "1\n");
    server.done(&["batch", "open", "{a}done"]);
    assert_eq!(server.printed(&["batch", "close", "{a}done"]), "0\n");
    let open = server.client(&["batch", "open"]).arg(OsStr::from_bytes(b"\xff")).output().unwrap();
    check(&open, 0, b"");
}

/// The state of a batch, and how many tasks it has and had, and how many wait for it.
fn far(server: &Server, batch: &str) -> String {
    let shown = server.printed(&["batch", "show", batch]);
    let of = |member| member_of(&shown, member);
    ["state", "total", "pending", "acked", "failed", "waiting"].map(of).join(" ")
}

#[test]
fn batches_are_opened_before_the_queues_and_closed_after_them() {
    let (from, to) = (sharded(), sharded());
    fill_batches(&from);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.jsonl");
    let file = path.to_str().unwrap();
    let counts = "0 queues, 4 tasks, 0 windows, 0 schedules, 3 batches";
    assert_eq!(from.printed(&["export", "--all", file]), format!("exported {counts}\n"));
    let text = String::from_utf8(files::read(&path)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "{\"type\":\"batch\",\"batch\":\"{a}closed\"}");
    assert_eq!(lines[2], "{\"type\":\"batch\",\"batch\":\"{a}open\"}");
    assert_eq!(lines[3], "{\"type\":\"batch\",\"batch_base64\":\"/w==\"}");
    assert!(lines[4].contains("\"queue\":\"{a}albums\""), "{text}");
    assert_eq!(lines[8], "{\"type\":\"batch\",\"batch\":\"{a}closed\",\"state\":\"closed\"}");
    let end = "\"queues\":0,\"tasks\":4,\"windows\":0,\"schedules\":0,\"batches\":4";
    assert_eq!(lines[9..], [format!("{{\"type\":\"end\",{end}}}")]);

    assert_eq!(to.printed(&["import", "--dry-run", file]), format!("would import {counts}\n"));
    assert_eq!(to.printed(&["batch", "list"]), "");
    let once = ["import", "--once", file];
    assert_eq!(to.printed(&once), format!("imported {counts}\n"));
    check(&to.run(&["batch", "list"]), 0, b"{a}closed\n{a}open\n\xff\n");
    // What has ended before stays behind.
    assert_eq!(far(&from, "{a}closed"), "closed 2 1 1 0 1");
    assert_eq!(far(&to, "{a}closed"), "closed 1 1 0 0 1");
    assert_eq!([far(&from, "{a}open"), far(&to, "{a}open")], ["open 2 2 0 0 0"; 2]);

    let passed = format!("imported {counts}; 7 records of them there already\n");
    assert_eq!(to.printed(&once), passed);
    assert_eq!(far(&to, "{a}closed"), "closed 1 1 0 0 1");
    let receipt = to.take("{a}thumbs");
    to.done(&["ack", "{a}thumbs", &receipt]);
    assert_eq!(far(&to, "{a}closed"), "done 1 0 1 0 0");
    assert_eq!(to.printed(&["pop", "{a}albums", "--wait", "-1"]), "ready\n");
    // One that is done takes no more tasks, but those that it had are known.
    assert_eq!(to.printed(&once), passed);
    assert_eq!(far(&to, "{a}open"), "open 2 2 0 0 0");
}

#[test]
fn a_batch_that_is_there_already_stands_in_no_ones_way() {
    let (from, to) = (Server::start(), Server::start());
    from.printed(&["put", "jobs", "p", "--batch", "b"]);
    from.printed(&["batch", "close", "b"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.jsonl");
    let file = path.to_str().unwrap();
    from.printed(&["export", "--all", file]);
    to.printed(&["put", "jobs", "p", "--batch", "b"]);
    let counts = "0 queues, 1 task, 0 windows, 0 schedules, 1 batch";
    let imported = to.printed(&["import", file]);
    assert_eq!(imported, format!("imported {counts}; 1 record of them there already\n"));
    assert_eq!(far(&to, "b"), "closed 2 2 0 0 0");

    // A queue alone makes its batches, and leaves them open.
    let alone = from.printed(&["export", "jobs"]);
    assert_eq!(alone.lines().count(), 3, "{alone}");
    let third = Server::start();
    let imported = third.run_with(&["import", "-"], alone.as_bytes());
    check(&imported, 0, b"imported 0 queues, 1 task, 0 windows, 0 schedules\n");
    assert_eq!(far(&third, "b"), "open 1 1 0 0 0");
}

/// The text of an export with these records of batches, and this many tasks.
fn with_batches(records: &[&str], tasks: usize) -> String {
    let records: Vec<String> = records.iter().map(|record| (*record).to_owned()).collect();
    let batches = records.len() - tasks;
    let end = format!("\"schedules\":0,\"batches\":{batches}}}");
    file_of(&records, [0, tasks, 0, 0]).replace("\"schedules\":0}", &end)
}

#[test]
fn records_of_batches_are_checked_and_only_an_open_one_may_be_there() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let open = "{\"type\":\"batch\",\"batch\":\"b\"}";
    let red = "{\"type\":\"batch\",\"batch\":\"b\",\"state\":\"red\"}";
    let nameless = "{\"type\":\"batch\",\"queue\":\"b\"}";
    let why = "no record in line 3: the 'state' of a batch is missing or closed";
    unusable(&server, &file, &with_batches(&[open, red], 0), why);
    let why = "no record in line 2: it names no batch";
    unusable(&server, &file, &with_batches(&[nameless], 0), why);
    let lacking = with_batches(&[open], 0).replace("\"batches\":1", "\"batches\":2");
    unusable(&server, &file, &lacking, "lacks some records");
    assert_eq!(server.printed(&["batch", "list"]), "");

    server.done(&["queue", "create", "jobs", "--ids", "given"]);
    server.done(&["batch", "open", "b"]);
    let task = "{\"type\":\"task\",\"queue\":\"jobs\",\"id\":\"a\",\"payload\":\"p\"}";
    let twice = with_batches(&[task, open, task], 2);
    let complaint = check(&server.run_with(&["import", "-"], twice.as_bytes()), 5, b"");
    let words = "EXISTS the queue \"jobs\" has a task \"a\" already (line 4; 1 record came in";
    assert!(complaint.contains(words), "{complaint}");

    let gone = "{\"type\":\"batch\",\"batch\":\"gone\",\"state\":\"closed\"}";
    let text = with_batches(&[open, gone], 0);
    let complaint = check(&server.run_with(&["import", "-"], text.as_bytes()), 5, b"");
    let words = "NOTFOUND there is no batch \"gone\" (line 3; 0 records came in";
    assert!(complaint.contains(words), "{complaint}");
}

#[test]
fn many_pages_arrive() {
    let (from, to) = (Server::start(), Server::start());
    from.printed(&["put", "many", "p", "--count", "2500"]);
    let text = from.printed(&["export", "many"]);
    assert_eq!(text.lines().count(), 2_502);
    let imported = to.run_with(&["import", "-"], text.as_bytes());
    check(&imported, 0, b"imported 0 queues, 2500 tasks, 0 windows, 0 schedules\n");
    assert_eq!(to.figure("many", "counts.R"), "2500");
}

/// Runs an import of a file that nothing must come of.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a test writes the file that a user would")]
fn unusable(server: &Server, file: &Path, text: &str, words: &str) {
    std::fs::write(file, text).unwrap();
    let complaint = check(&server.run(&["import", file.to_str().unwrap()]), 2, b"");
    assert!(complaint.contains(words), "{complaint}");
    assert_eq!(server.printed(&["queue", "list"]), "");
}

#[test]
fn what_is_no_whole_file_is_refused_before_anything_is_sent() {
    let (from, to) = (Server::start(), Server::start());
    from.printed(&["put", "jobs", "p", "--count", "3"]);
    let text = from.printed(&["export", "jobs"]);
    let lines: Vec<&str> = text.lines().collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    unusable(&to, &file, "", "was not written by `pinpriq export`");
    unusable(&to, &file, "{}\n", "was not written by `pinpriq export`");
    let newer = text.replace("\"version\":1", "\"version\":2");
    unusable(&to, &file, &newer, "has the version 2, and this program reads version 1");
    unusable(&to, &file, &text[..text.len() - 1], "was cut in line 5");
    unusable(&to, &file, &format!("{}\n", lines[..4].join("\n")), "was cut after line 4");
    let lacking = [lines[0], lines[1], lines[4]].join("\n") + "\n";
    unusable(&to, &file, &lacking, "lacks some records");
    unusable(&to, &file, &text.replace(lines[2], "red"), "has no record in line 3");
    unusable(&to, &file, &format!("{text}{text}"), "goes on after its last line");

    // What comes from stdin is known to be cut only at its end.
    let cut = to.run_with(&["import", "-"], format!("{}\n", lines[..3].join("\n")).as_bytes());
    let complaint = check(&cut, 2, b"");
    assert!(complaint.contains("2 records came in"), "{complaint}");
    assert!(complaint.contains("stdin was cut after line 3"), "{complaint}");
}

/// The text of an export with these records.
fn file_of(records: &[String], counts: [usize; 4]) -> String {
    let [queues, tasks, windows, schedules] = counts;
    let header = "{\"type\":\"pinpriq-export\",\"version\":1}";
    let end = format!(
        "{{\"type\":\"end\",\"queues\":{queues},\"tasks\":{tasks},\"windows\":{windows},\
         \"schedules\":{schedules}}}"
    );
    let lines = [header].into_iter().chain(records.iter().map(String::as_str)).chain([&*end]);
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test writes the file that a user would")]
fn an_import_that_would_be_refused_brings_nothing_in() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = path.to_str().unwrap();
    let task = |queue: &str, id: &str| {
        format!("{{\"type\":\"task\",\"queue\":\"{queue}\",\"id\":\"{id}\",\"payload\":\"p\"}}")
    };
    server.done(&["queue", "create", "given", "--ids", "given"]);
    server.printed(&["put", "given", "p", "--id", "there"]);
    server.done(&["queue", "create", "small", "--capacity", "3"]);
    server.printed(&["put", "small", "p", "--count", "2"]);
    let every = ["--every", "1d", "--at", FAR];
    server.printed(&[&["schedule", "set", "nightly", "free", "tick"][..], &every].concat());
    let schedule = "{\"type\":\"schedule\",\"queue\":\"free\",\"schedule\":\"nightly\",\
                    \"every_ms\":1000,\"at\":1,\"payload\":\"x\"}"
        .to_owned();
    let fresh = |queue: &str, settings: &str| {
        format!("{{\"type\":\"queue\",\"queue\":\"{queue}\",\"settings\":{{{settings}}}}}")
    };
    let table = [
        (
            file_of(&[task("free", "1"), task("given", "there")], [0, 2, 0, 0]),
            "EXISTS the queue \"given\" has a task \"there\" already (line 3; nothing came in)",
        ),
        (
            file_of(&[task("free", "1"), schedule], [0, 1, 0, 1]),
            "EXISTS there is a schedule \"nightly\" already (line 3; nothing came in)",
        ),
        (
            file_of(&[task("free", "1"), task("small", "1"), task("small", "2")], [0, 3, 0, 0]),
            "FULL the queue \"small\" has room for 1 of its 2 tasks in the file",
        ),
        (
            file_of(
                &[fresh("given", "\"ids\":\"given\",\"capacity\":1"), task("given", "new")],
                [1, 1, 0, 0],
            ),
            "FULL the queue \"given\" has room for 0 of its 1 tasks in the file",
        ),
    ];
    for (text, words) in table {
        std::fs::write(&path, text).unwrap();
        server.refused(&["import", "--dry-run", file], words);
        server.refused(&["import", file], words);
    }
    let malformed = task("free", "1").replace("\"p\"", "\"p\",\"x\":1");
    std::fs::write(&path, file_of(&[task("free", "1"), malformed], [0, 2, 0, 0])).unwrap();
    let complaint = check(&server.run(&["import", file]), 2, b"");
    assert!(complaint.contains("no record in line 3: a task has no field 'x'"), "{complaint}");
    assert_eq!(server.figure("free", "put"), "0");

    // What can come in is counted, and comes in once it is meant.
    let good = [task("free", "1"), task("given", "new"), task("small", "1")];
    std::fs::write(&path, file_of(&good, [0, 3, 0, 0])).unwrap();
    let counts = "0 queues, 3 tasks, 0 windows, 0 schedules\n";
    let would = server.printed(&["import", "--dry-run", file]);
    assert_eq!(would, format!("would import {counts}"));
    let text = std::fs::read(&path).unwrap();
    let piped = server.run_with(&["import", "--dry-run", "-"], &text);
    check(&piped, 0, would.as_bytes());
    assert_eq!(server.figure("free", "put"), "0");
    assert_eq!(server.printed(&["import", file]), format!("imported {counts}"));
}

#[test]
fn a_reader_that_has_gone_ends_an_export_quietly() {
    let server = Server::start();
    server.printed(&["put", "jobs", &"p".repeat(1_000), "--count", "2000"]);
    for arguments in [&["export", "jobs"][..], &["export", "--all"]] {
        let mut child = server.client(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        check(&child.wait_with_output().unwrap(), 0, b"");
    }
}

#[test]
fn the_first_refusal_ends_an_import() {
    let server = Server::start();
    let record = |id: &str| {
        format!("{{\"type\":\"task\",\"queue\":\"jobs\",\"id\":\"{id}\",\"payload\":\"p\"}}\n")
    };
    server.done(&["queue", "create", "jobs", "--ids", "given"]);
    let header = "{\"type\":\"pinpriq-export\",\"version\":1}\n";
    let end = "{\"type\":\"end\",\"queues\":0,\"tasks\":3,\"windows\":0,\"schedules\":0}\n";
    let text = [header, &record("a"), &record("a"), &record("b"), end].concat();
    let complaint = check(&server.run_with(&["import", "-"], text.as_bytes()), 5, b"");
    let words = "EXISTS the queue \"jobs\" has a task \"a\" already (line 3; 2 records came in: ";
    assert!(complaint.contains(words), "{complaint}");

    let malformed = text.replace("\"payload\":\"p\"", "\"payload\":\"p\",\"x\":1");
    let complaint = check(&server.run_with(&["import", "-"], malformed.as_bytes()), 5, b"");
    assert!(
        complaint.contains("BADARG the record cannot be read: a task has no field 'x' (line 2")
    );
}

#[test]
fn an_import_that_is_repeated_with_once_brings_nothing_in_twice() {
    let (from, to) = (Server::start(), Server::start());
    fill(&from);
    from.printed(&["put", "same", "p", "--count", "3"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    from.printed(&["export", "--all", file]);
    let text = String::from_utf8(files::read(Path::new(file))).unwrap();
    let records = text.lines().count() - 2;

    // One that is cut in the middle, as by a lost connection, ends after it has brought in some.
    let half: Vec<&str> = text.lines().take(records / 2).collect();
    let output =
        to.run_with(&["import", "--once", "-"], format!("{}\n", half.join("\n")).as_bytes());
    let told = check(&output, 2, b"");
    assert!(told.contains("came in: repeat the same import to go on"), "{told}");
    let whole = to.run_with(&["import", "--once", "-"], text.as_bytes());
    assert!(whole.status.success(), "{whole:?}");
    let expected = to.printed(&["export", "--all", "-"]);
    assert_eq!(expected.lines().count(), text.lines().count(), "{expected}");
    // What is finished meanwhile does not come back.
    let receipt = to.take("same");
    to.done(&["ack", "same", &receipt]);
    let before = to.printed(&["export", "same", "-"]);
    let again = to.printed(&["import", "--once", file]);
    assert!(again.contains("of them there already"), "{again}");
    assert_eq!(to.printed(&["export", "same", "-"]), before);
}

#[test]
fn fan_outs_and_unknown_queues_are_not_written() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for (queue, words) in [("nowhere", "there is no queue nowhere"), ("news", "is a fan-out")] {
        if queue == "news" {
            server.printed(&["join", "news", "mailer", "--lease", "1h"]);
        }
        let output = server.run(&["export", queue, file.to_str().unwrap()]);
        assert_eq!((output.status.code(), &*output.stdout), (Some(4), &b""[..]));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(words), "{told}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    server.printed(&["put", "news", "p"]);
    let told = server.complained(&["export", "--all"]);
    assert!(told.contains("the fan-out news is not written"), "{told}");
    // A file that is there is replaced, and a folder that is not there is a failure.
    server.printed(&["export", "news", file.to_str().unwrap()]);
    server.printed(&["export", "news", file.to_str().unwrap()]);
    let output = server.run(&["export", "news", "/nowhere/at/all"]);
    check(&output, 1, b"");
}
