//! The commands as a shell uses them, against a real server: bytes, settings, signals, codes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Output, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::files;
use crate::peer::{check, pinpriq};
use crate::serving::{Serving, address_in};
use crate::wire::{Wire, push};
use pinpriq_testing::Dice;

/// Runs a client command with this input.
fn run(server: &Serving, arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = server.client(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn any_bytes_go_in_by_stdin_and_come_out_by_stdout() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &[]);
    let mut dice = Dice::new(1);
    let all: Vec<u8> = (0..=255).collect();
    for payload in [vec![], all, dice.bytes(65_535)] {
        check(&run(&server, &["wire", "push", "q"], &payload), 0, b"");
        let popped = run(&server, &["wire", "pop", "q", "--null"], b"");
        assert!(popped.stdout == [&payload[..], b"\0"].concat());
        check(&run(&server, &["wire", "push", "q", "-", "--key", "\u{fc}"], &payload), 0, b"");
        let mut line = "C3BC\t".to_owned();
        for byte in &payload {
            write!(line, "{byte:02X}").unwrap();
        }
        line.push('\n');
        check(&run(&server, &["wire", "pop", "q", "--hex", "--with-key"], b""), 0, line.as_bytes());
        check(&run(&server, &["wire", "pop", "q"], b""), 4, b"");
    }
    let too_long = run(&server, &["wire", "push", "q"], &vec![7; 65_536]);
    assert_eq!(too_long.status.code(), Some(2));
    server.stop();
}

#[test]
fn subscribe_prints_what_is_pushed_meanwhile() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &["--durability", "memory"]);
    let arguments = ["wire", "subscribe", "a", "b", "--count", "3", "--with-key"];
    let subscriber = server.client(&arguments).spawn().unwrap();
    for (queue, payload) in [("a", "1"), ("b", "2"), ("a", "3")] {
        // Of one key, those that came before it subscribes would be one delivery.
        let key = format!("{queue}{payload}");
        check(&run(&server, &["wire", "push", queue, payload, "--key", &key], b""), 0, b"");
    }
    let output = subscriber.wait_with_output().unwrap();
    let mut lines: Vec<&[u8]> = output.stdout.split_inclusive(|byte| *byte == b'\n').collect();
    // Of what was there before it subscribed it gets the newest first.
    lines.sort_unstable();
    assert_eq!(lines, [&b"a1\t1\n"[..], b"a3\t3\n", b"b2\t2\n"]);
    assert_eq!(output.status.code(), Some(0));
    server.stop();
}

/// Flags, variables, and the durability and the length of a reply that follow from them.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str, Option<usize>);

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, data) = (dir.path().join("pinpriq.toml"), dir.path().join("data"));
    let settings = "durability = \"memory\"\npinpriq-ttl-zero = \"forever\"\n\
        payload-bytes-max = 10\nlog-format = \"json\"\npinpriq = \"127.0.0.1:0\"\nresp = \"off\"\n";
    files::write(&file, settings.as_bytes());
    let start = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = pinpriq(&["serve", "--config", file.to_str().unwrap()]);
        command.args(flags).env("PINPRIQ_DATA", &data).envs(variables.iter().copied());
        let server = Serving::of_command(command);
        let (listening, opened) = (server.logged("\"listening\""), server.logged("\"opened\""));
        let mut wire = Wire::connect(&address_in(&listening));
        // A TTL of 0 and a payload of 5 bytes tell two more settings.
        wire.send(&push(b"q", 0, 1, b"k", b"12345"));
        let kept = wire.try_pop(b"q").ok().map(|packets| packets.len());
        drop(server);
        (opened, kept)
    };
    let table: [Case<'_>; 5] = [
        (&[], &[], "memory", Some(1)),
        (&[], &[("PINPRIQ_DURABILITY", "interval")], "interval", Some(1)),
        (&["--durability", "sync"], &[("PINPRIQ_DURABILITY", "interval")], "sync", Some(1)),
        (&["--pinpriq-ttl-zero", "immediate"], &[], "memory", Some(0)),
        (&[], &[("PINPRIQ_PAYLOAD_BYTES_MAX", "4")], "memory", None),
    ];
    for (flags, variables, level, kept) in table {
        let (opened, found) = start(flags, variables);
        let words = format!("\"durability\":\"{level}\"");
        assert!(opened.contains(&words), "{flags:?} {variables:?}: {opened}");
        assert_eq!(found, kept, "{flags:?} {variables:?}");
    }
}

#[test]
fn wrong_usage_is_told_apart_from_a_busy_port_and_other_failures() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let serve = ["serve", "--resp", "off", "--log-level", "error", "--pinpriq", &address, "--data"];
    let complaint = check(&pinpriq(&serve).arg(&data).output().unwrap(), 1, b"");
    assert!(complaint.contains(&format!("cannot listen on {address}")), "{complaint}");
    assert!(!data.exists(), "a server that cannot listen touches no directory");
    for arguments in [
        &["wire", "push"][..],
        &["wire", "pop"],
        &["serve", "--pinpriq", "nowhere"],
        &["wire", "push", "q", "--ttl-ms", "0"],
    ] {
        check(&pinpriq(arguments).output().unwrap(), 2, b"");
    }
    drop(taken);
    for arguments in
        [&["wire", "push", "q", "p"][..], &["wire", "pop", "q"], &["wire", "subscribe", "q"]]
    {
        let output = pinpriq(arguments).args(["--address", &address]).output().unwrap();
        check(&output, 1, b"");
    }
}

#[test]
fn signals_stop_the_server_in_order_with_all_that_was_confirmed() {
    for (round, signal) in ["-TERM", "-INT", "-TERM"].into_iter().enumerate() {
        let data = tempfile::tempdir().unwrap();
        let level = ["sync", "interval", "interval"][round];
        let server = Serving::start(data.path(), &["--durability", level]);
        let (told, tells) = sync_channel(0);
        let mut wire = server.connect();
        let pusher = thread::spawn(move || {
            let mut confirmed = 0_u32;
            loop {
                let payload = confirmed.to_be_bytes();
                let block = push(b"q", 65_535, 1, b"k", &payload).repeat(10);
                if wire.try_fenced(&block).is_err() {
                    return confirmed;
                }
                confirmed += 1;
                // The receiver has gone once the stop is due.
                let _ = told.send(());
            }
        });
        assert_eq!(tells.iter().take(50).count(), 50);
        drop(tells);
        assert_eq!(server.signal(signal), Some(0));
        let confirmed = pusher.join().unwrap();
        let server = Serving::start(data.path(), &[]);
        let payloads = server.connect().payloads(b"q");
        for number in 0..confirmed {
            let copies = payloads.iter().filter(|payload| **payload == number.to_be_bytes());
            assert_eq!(copies.count(), 10, "block {number} of {confirmed}, {signal}");
        }
        server.stop();
    }
}
