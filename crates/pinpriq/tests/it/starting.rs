//! How a server starts: what it refuses, what it warns about, and signals while it loads.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::Words;

use crate::files;
use crate::peer::pinpriq;
use crate::serving::{GUARD, Serving};
use crate::wire::{self, push};

/// How many tasks there are to be loaded: many enough that it takes a while.
const TASKS: usize = 300_000;

/// How many are pushed at a time.
const AT_ONCE: usize = 10_000;

#[test]
fn figures_of_all_shards_go_to_the_log_on_a_signal_and_nothing_else_happens() {
    for shards in ["1", "2"] {
        let data = tempfile::tempdir().unwrap();
        let server = Serving::start(data.path(), &["--shards", shards]);
        server.send("-HUP");
        server.send("-USR1");
        let line = server.logged("\"section\":\"Server\"");
        assert!(line.contains(&format!(" shards:{shards} ")), "{line}");
        let line = server.logged("\"section\":\"Clients\"");
        assert!(line.contains(" beanstalkd_draining:0"), "{line}");
        server.logged("\"section\":\"Traffic\"");
        server.stop();
    }
}

#[test]
fn a_signal_begins_and_ends_drain_mode() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &["--shards", "2"]);
    for (sentence, draining) in [("accepts no more jobs", 1), ("accepts jobs again", 0)] {
        server.send("-USR2");
        server.logged(sentence);
        server.send("-USR1");
        server.logged(&format!(" beanstalkd_draining:{draining}"));
    }
    server.stop();
}

#[test]
fn service_manager_is_told_when_the_server_serves_and_when_it_stops() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(GUARD)).unwrap();
    let told = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let mut command = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--log-format", "json"]);
    command.arg("--data").arg(dir.path().join("data")).env("NOTIFY_SOCKET", &path);
    let server = Serving::listening(Serving::of_command(command));
    assert_eq!(told().trim(), "READY=1");
    drop(server.connect());
    server.send("-TERM");
    assert_eq!(told().trim(), "STOPPING=1");
    server.stop();
}

/// A server that gets this socket as a service manager passes it.
fn activated(listener: &TcpListener, flags: &[&str]) -> Serving {
    let program = env!("CARGO_BIN_EXE_pinpriq");
    let script = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 0</dev/null";
    let mut command = Command::new("sh");
    command.args(["-c", script, program, "serve", "--pinpriq", "127.0.0.1:0"]);
    command.args(["--log-format", "json", "--durability", "memory", "--http", "off"]).args(flags);
    command.stdin(OwnedFd::from(listener.try_clone().unwrap()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Serving::of_command(command)
}

#[test]
fn sockets_of_the_service_manager_are_used_and_others_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Who connects before the server is there waits.
    let mut early = Resp::over(wire::connect(&address));
    early.send([&Words::new("PUT jobs early")]).unwrap();
    let server = Serving::listening(activated(&listener, &["--resp", &address]));
    assert_eq!(server.door("resp"), address);
    assert_eq!(early.reply().unwrap().as_bytes(), Some(&b"1"[..]));
    server.stop();
    // The socket outlives the server, so that a client meets the next one.
    let mut late = Resp::over(wire::connect(&address));
    let server = Serving::listening(activated(&listener, &["--resp", &address]));
    assert!(late.ask(&Words::new("PING")).is_ok());
    server.stop();
    let mut refused = activated(&listener, &["--resp", "off"]);
    refused.logged(&format!("has passed a socket at {address}"));
    assert_eq!(refused.wait().code(), Some(2));
}

/// Runs `serve` with these flags, which must not start a server. Returns what it says.
fn refused(flags: &[&str], data: &Path) -> String {
    let mut command = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--durability", "memory"]);
    command.args(flags).arg("--data").arg(data);
    let mut server = Serving::of_command(command);
    let complaint = server.logged("the data directory ");
    assert_eq!(server.wait().code(), Some(2), "{complaint}");
    complaint
}

#[test]
fn durability_memory_hides_no_tasks_unless_told() {
    for shards in ["1", "3"] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let server = Serving::start(&data, &["--shards", shards]);
        let mut wire = server.connect();
        wire.fenced(&push(b"q", 65_535, 1, b"", b"payload"));
        server.stop();
        let before = files::everything(&data);
        let complaint = refused(&[], &data);
        for words in [data.to_str().unwrap(), "holds 1 tasks", "--ignore-data"] {
            assert!(complaint.contains(words), "{complaint}");
        }
        refused(&["--ignore-data", "off"], &data);
        for flags in [&["--ignore-data"][..], &["--ignore-data", "on"]] {
            let flags = [&["--durability", "memory"], flags].concat();
            let server = Serving::start(&data, &flags);
            assert_eq!(server.connect().pop(b"q"), []);
            server.stop();
        }
        assert!(files::everything(&data) == before);
        let server = Serving::start(&data, &["--shards", shards]);
        assert_eq!(server.connect().payloads(b"q"), [b"payload"]);
        server.stop();
        // Without a task there is nothing to hide.
        Serving::start(&data, &["--durability", "memory"]).stop();
    }
}

#[test]
fn durability_memory_hides_no_directory_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    files::write(&dir.path().join("shards"), b"many\n");
    let complaint = refused(&[], dir.path());
    assert!(complaint.contains("cannot be read") && complaint.contains("\"many\""), "{complaint}");
}

#[test]
fn the_limit_on_open_files_is_raised_and_one_that_is_too_low_is_a_warning() {
    for (limits, connections, warns) in [
        ("ulimit -Sn 100 && ulimit -Hn 200", "50", false),
        ("ulimit -Sn 100 && ulimit -Hn 200", "200", true),
    ] {
        let data = tempfile::tempdir().unwrap();
        let script = format!("{limits} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, env!("CARGO_BIN_EXE_pinpriq"), "serve", "--log-format", "json"])
            .args(["--pinpriq", "127.0.0.1:0", "--resp", "off", "--http", "off"])
            .args(["--connections-max", connections, "--data"])
            .arg(data.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let server = Serving::listening(Serving::of_command(command));
        server.logged("\"open_files\":200");
        let in_force = files::read(Path::new(&format!("/proc/{}/limits", server.id())));
        let in_force = String::from_utf8(in_force).unwrap();
        let line = in_force.lines().find(|line| line.starts_with("Max open files")).unwrap();
        assert_eq!(line.split_whitespace().filter(|word| *word == "200").count(), 2, "{line}");
        let (code, log) = server.signal_logged("-TERM");
        assert_eq!(
            (code, log.contains("the limit on open files (200)")),
            (Some(0), warns),
            "{log}"
        );
    }
}

#[test]
fn what_may_not_be_meant_is_a_warning() {
    let data = tempfile::tempdir().unwrap();
    let mut command = pinpriq(&["serve", "--pinpriq", "off", "--resp", "off", "--data"]);
    command.arg(data.path()).args(["--log-format", "json"]);
    command.env("PINPRIQ_LOG_LEVLE", "debug").env("PINPRIQ_ADDRESS", "localhost:1");
    let server = Serving::of_command(command);
    server.logged("all doors are off");
    server.logged("\"opened\"");
    let (code, log) = server.signal_logged("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("\"WARN\"")).collect();
    let [misspelt, _] = &warnings[..] else { panic!("{log}") };
    assert!(misspelt.contains("PINPRIQ_LOG_LEVLE is no setting"), "{misspelt}");
    assert!(misspelt.contains("did you mean PINPRIQ_LOG_LEVEL?"), "{misspelt}");
}

#[test]
fn a_signal_while_tasks_are_loaded_ends_the_start_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server =
        Serving::start(dir.path(), &["--durability", "interval", "--pinpriq-ttl-zero", "forever"]);
    let mut wire = server.connect();
    let tasks = push(b"q", 0, 1, b"", b"payload").repeat(AT_ONCE);
    for _ in 0..TASKS / AT_ONCE {
        wire.fenced(&tasks);
    }
    server.stop();
    let before = files::contents(dir.path());
    for signal in ["-TERM", "-INT"] {
        let server = Serving::launch(dir.path(), &[]);
        server.logged("\"loading\"");
        let (code, log) = server.signal_logged(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("\"stopped while loading\""), "{log}");
        assert!(!log.contains("\"opened\"") && !log.contains("\"listening\""), "{log}");
        assert!(files::contents(dir.path()) == before);
    }
}
