//! A server whose log is no longer read: it continues, and stops on request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Command;

use crate::peer::{check, pinpriq};
use crate::serving::address_in;
use crate::wire::{Wire, push};

#[test]
fn a_server_whose_log_is_closed_serves_and_stops_in_order() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let flags = ["serve", "--pinpriq", "127.0.0.1:0", "--log-format", "json", "--data", data];
    let mut server = pinpriq(&flags).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = log.find(|line| line.as_ref().unwrap().contains("\"door\"")).unwrap().unwrap();
    let (_, rest) = line.split_once("\"address\":\"").unwrap();
    let address = rest.split('"').next().unwrap().to_owned();
    drop(log);

    // Closing a connection for an unknown opcode is logged, and so is the signal.
    let mut wrong = Wire::connect(&address);
    wrong.send(b"?");
    assert_eq!(wrong.ended(), 0, "nothing is answered");
    let mut right = Wire::connect(&address);
    right.fenced(&push(b"jobs", 65_535, 1, b"k", b"hello"));
    assert_eq!(right.payloads(b"jobs"), [b"hello"], "it serves on");
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(server.wait().unwrap().code(), Some(0), "it stops in order");
}

#[test]
fn a_server_whose_log_is_not_read_serves_and_stops_when_it_is_told_to() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    // At this level every request is logged, much more than a pipe holds.
    let flags = ["serve", "--pinpriq", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data", data];
    let mut server =
        pinpriq(&flags).args(["--log-format", "json", "--log-level", "trace"]).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let (mut address, mut resp) = (String::new(), String::new());
    while address.is_empty() || resp.is_empty() {
        let line = log.next().unwrap().unwrap();
        if line.contains("\"door\":\"pinpriq\"") && line.contains("\"listening\"") {
            address = address_in(&line);
        } else if line.contains("\"door\":\"resp\"") && line.contains("\"listening\"") {
            resp = address_in(&line);
        }
    }
    let dropped = || -> u64 {
        let stats = pinpriq(&["ping", "--address", &resp]).output().unwrap();
        check(&stats, 0, b"PONG\n");
        let mut info = std::net::TcpStream::connect(&resp).unwrap();
        info.write_all(b"INFO server\r\nQUIT\r\n").unwrap();
        let mut text = String::new();
        info.read_to_string(&mut text).unwrap();
        let (_, figure) = text.split_once("log_lines_dropped:").unwrap();
        figure.lines().next().unwrap().parse().unwrap()
    };
    // Each connection that sends rubbish is logged.
    let mut rounds = 0;
    while dropped() == 0 {
        for _ in 0..100 {
            let mut wrong = Wire::connect(&address);
            wrong.send(b"?");
            assert_eq!(wrong.ended(), 0, "nothing is answered");
        }
        rounds += 1;
        assert!(rounds < 1_000, "nothing was ever dropped");
    }
    let mut right = Wire::connect(&address);
    right.fenced(&push(b"jobs", 65_535, 1, b"k", b"hello"));
    assert_eq!(right.payloads(b"jobs"), [b"hello"], "it serves on");
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(server.wait().unwrap().code(), Some(0), "it stops in order");
    drop(log);
}
