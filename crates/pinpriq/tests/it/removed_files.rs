//! Files that an operator removes under a running server, and file descriptors that run out.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::peer::{check, pinpriq};
use crate::serving::Serving;
use crate::wire::{Wire, push};

/// Waits until a server refuses pushes, which must be soon.
fn refused(server: &Serving) {
    for number in 0..100_000_u32 {
        let push = push(b"q", 65_535, 1, b"k", &number.to_be_bytes());
        if server.connect().try_fenced(&push).is_err() {
            return;
        }
    }
    panic!("pushes are accepted for ever");
}

#[test]
fn a_second_server_is_refused_although_the_lock_file_was_removed() {
    for shards in ["1", "2"] {
        let data = tempfile::tempdir().unwrap();
        let server = Serving::start(data.path(), &["--shards", shards]);
        let files =
            if shards == "1" { vec!["LOCK"] } else { vec!["shard-00/LOCK", "shard-01/LOCK"] };
        for file in files {
            assert!(remove(&data.path().join(file)), "{file}");
        }
        let flags = ["serve", "--pinpriq", "127.0.0.1:0", "--resp", "off", "--shards", shards];
        let data = data.path().to_str().unwrap();
        let second = pinpriq(&flags).args(["--data", data]).output().unwrap();
        let told = check(&second, 3, b"");
        assert!(told.contains("another process uses this directory"), "{told}");
        let report = pinpriq(&["check", data]).output().unwrap();
        assert!(String::from_utf8(report.stdout).unwrap().contains("in use by a server"));
        server.stop();
    }
}

fn remove(path: &Path) -> bool {
    Command::new("rm").arg("-r").arg(path).status().unwrap().success()
}

#[test]
fn a_server_whose_directory_is_removed_refuses_says_why_and_ends_with_code_1() {
    for shards in ["1", "2"] {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("data");
        let server = Serving::start(&data, &["--shards", shards]);
        server.connect().fenced(&push(b"q", 65_535, 1, b"k", b"x"));
        assert!(remove(&data));
        refused(&server);
        let line = server.logged("the data directory is no longer in its place");
        assert!(line.contains("the journal has failed"), "{line}");
        let (code, log) = server.signal_logged("-TERM");
        assert_eq!(code, Some(1), "{log}");
    }
}

#[test]
fn an_idle_server_notices_that_its_files_are_gone() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let server = Serving::start(&data, &[]);
    let moved = Command::new("mv").arg(&data).arg(parent.path().join("old")).status().unwrap();
    assert!(moved.success());
    server.logged("the data directory is no longer in its place");
    assert_eq!(server.signal("-TERM"), Some(1));
}

#[test]
fn connections_leave_the_journal_its_file_descriptors() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 96; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pinpriq"), "serve"])
        .args(["--log-format", "json", "--pinpriq", "127.0.0.1:0", "--resp", "off"])
        .args(["--http", "off", "--data"])
        .arg(data.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let server = Serving::listening(Serving::of_command(command));
    let line = server.logged("the limit on open files (96) is too low");
    assert!(line.contains("32 are accepted"), "{line}");
    let mut first = server.connect();
    let idle: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    server.logged("refused a connection: there are as many as --connections-max allows");
    // More than a segment, so that new files have to be opened.
    for number in 0..1_000_u32 {
        let payload = number.to_be_bytes().repeat(10_000);
        first.fenced(&push(b"q", 65_535, 1, b"k", &payload));
    }
    drop(idle);
    server.stop();
}

#[test]
fn what_a_salvage_that_was_interrupted_has_written_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let (data, new) = (parent.path().join("data"), parent.path().join("new"));
    let server = Serving::start(&data, &[]);
    let mut wire: Wire = server.connect();
    for number in 0..100_u32 {
        wire.fenced(&push(b"q", 65_535, 1, b"k", &number.to_be_bytes()));
    }
    drop(wire);
    server.stop();
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let salvage = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_pinpriq"), "salvage"])
        .args([&data, &new])
        .output()
        .unwrap();
    assert_ne!(salvage.status.code(), Some(0), "{salvage:?}");
    assert!(new.exists());
    let new = new.to_str().unwrap();
    let serve = ["serve", "--pinpriq", "127.0.0.1:0", "--resp", "off", "--data", new];
    let refused = pinpriq(&serve).output().unwrap();
    let told = check(&refused, 3, b"");
    assert!(told.contains("the directory is unfinished"), "{told}");

    assert!(remove(Path::new(new)));
    let salvaged = pinpriq(&["salvage", data.to_str().unwrap(), new]).output().unwrap();
    assert!(salvaged.stdout.starts_with(b"saved 100 tasks"), "{salvaged:?}");
    let server = Serving::start(Path::new(new), &[]);
    server.stop();
}
