//! A server whose log nobody reads any more: it goes on, and stops when it is told to.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use crate::peer::pinpriq;
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
