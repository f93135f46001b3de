//! The RESP door of a server process: what survives it, and many who use it at once.

mod memory_limit;
pub(crate) mod redis;

use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use pinpriq_proto::wire::resp::Value;

use self::redis::{Redis, figure, receipt, serve, show, task};
use crate::serving::Serving;
use crate::wire::Wire;
use pinpriq_testing::Dice;

const IN_MEMORY: &[&str] = &["--durability", "memory"];

/// How many tasks the tests with many consumers put.
fn tasks() -> usize {
    let asked_for = std::env::var("PINPRIQ_TEST_TASKS").ok().and_then(|text| text.parse().ok());
    asked_for.unwrap_or(if cfg!(debug_assertions) { 20_000 } else { 100_000 })
}

/// How often each of so many tasks was finished.
fn counts(count: usize) -> Vec<AtomicU32> {
    std::iter::repeat_with(AtomicU32::default).take(count).collect()
}

fn note(seen: &[AtomicU32], payload: &str) {
    let number: usize = payload.parse().unwrap();
    seen[number].fetch_add(1, Ordering::Relaxed);
}

fn check_once(seen: &[AtomicU32]) {
    for (number, times) in seen.iter().enumerate() {
        assert_eq!(times.load(Ordering::Relaxed), 1, "task {number}");
    }
}

/// Puts numbered tasks, many in one write.
fn produce(address: &str, count: usize) {
    let mut producer = Redis::connect(address);
    let numbers: Vec<usize> = (0..count).collect();
    for chunk in numbers.chunks(500) {
        let lines: Vec<String> = chunk.iter().map(|number| format!("PUT q {number}")).collect();
        producer.ask_all(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn a_lease_with_a_ttr_survives_kill_9_and_one_without_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (server, address) = serve(dir.path(), &[]);
    let mut client = Redis::connect(&address);
    client.ask("QUEUE CREATE q TTR 600000");
    client.ask("QUEUE PAUSE paused OUT");
    for line in
        ["PUT q queue", "PUT q take", "PUT bare p", "PUT q buried", "PUT q later DELAY 600000"]
    {
        client.ask(line);
    }
    let by_queue = client.ask("TAKE q");
    let by_take = client.ask("TAKE q TTR 900000");
    let bare = client.ask("TAKE bare");
    client.ask("TAKE q");
    client.ask("BURY q ID 4 REASON broken");
    // Its reply comes when everything before it is on disk, the grants too.
    client.ask("PUT other p");
    server.kill();

    let (server, address) = serve(dir.path(), &[]);
    let mut client = Redis::connect(&address);
    assert_eq!(client.reply("PEEK q STATE T COUNT 9"), "[[q 1 null queue] [q 2 null take]]");
    assert_eq!(client.reply("PEEK q STATE B"), "[[q 4 null buried]]");
    assert_eq!(client.reply("PEEK q STATE W"), "[[q 5 null later]]");
    assert_eq!(client.reply("PEEK bare STATE R"), "[[bare 3 null p]]");
    assert_eq!(client.reply(&format!("ACK bare {}", receipt(&bare))), "STALE");
    assert_eq!(client.reply("ACK q ID 1"), "NOTOWNER");
    assert_eq!(client.reply(&format!("ACK q {}", receipt(&by_queue))), "OK");
    assert!(matches!(client.ask(&format!("TOUCH q {}", receipt(&by_take))), Value::Integer(_)));
    let again = receipt(&client.ask("TAKE bare"));
    assert_ne!(again, receipt(&bare), "no receipt is issued twice");
    client.ask("PUT other p");
    server.kill();

    // Once more, and with a lease that the server has only read back.
    let (server, address) = serve(dir.path(), &[]);
    let mut client = Redis::connect(&address);
    assert_eq!(client.reply(&format!("ACK bare {again}")), "STALE");
    assert_eq!(client.reply(&format!("RELEASE q {}", receipt(&by_take))), "R");
    assert_eq!(client.reply("TAKE q COUNT 9").matches("take").count(), 1);
    server.stop();
}

#[test]
fn forty_consumers_take_each_task_once() {
    let dir = tempfile::tempdir().unwrap();
    let (server, address) = serve(dir.path(), &[]);
    let count = tasks();
    let seen = counts(count);
    thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let mut client = Redis::connect(&address);
                loop {
                    let taken = client.ask("TAKE q WAIT -1 TTR 600000");
                    let payload = task(&taken)[3].clone();
                    if payload == "end" {
                        return;
                    }
                    note(&seen, &payload);
                    assert_eq!(client.reply(&format!("ACK q {}", receipt(&taken))), "OK");
                }
            });
        }
        produce(&address, count);
        let mut client = Redis::connect(&address);
        client.ask_all(&["PUT q end PRIORITY 1"; 40]);
    });
    check_once(&seen);
    let mut client = Redis::connect(&address);
    let stats = client.ask("STATS");
    let all = i64::try_from(count).unwrap() + 40;
    assert_eq!(figure(&stats, "put"), all);
    assert_eq!(figure(&stats, "acked"), all - 40);
    server.stop();
}

#[test]
fn consumers_of_both_doors_share_a_queue() {
    let dir = tempfile::tempdir().unwrap();
    let (server, address) = serve(dir.path(), &[]);
    let wire_address = server.door("pinpriq");
    let count = tasks();
    let seen = counts(count);
    let left = AtomicU64::new(count as u64);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let mut client = Redis::connect(&address);
                while left.load(Ordering::Relaxed) > 0 {
                    let popped = client.ask("POP q WAIT 20 COUNT 3");
                    for payload in redis::payloads(&popped) {
                        note(&seen, &payload);
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
            scope.spawn(|| {
                let mut client = Wire::connect(&wire_address);
                while left.load(Ordering::Relaxed) > 0 {
                    for payload in client.payloads(b"q") {
                        note(&seen, &String::from_utf8(payload).unwrap());
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
        }
        produce(&address, count);
    });
    check_once(&seen);
    let stats = Redis::connect(&address).ask("STATS");
    assert_eq!(figure(&stats, "acked"), i64::try_from(count).unwrap());
    assert_eq!(figure(&stats, "present"), 0);
    server.stop();
}

#[test]
fn consumers_that_die_at_random_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (server, address) = serve(dir.path(), &[]);
    let count = tasks() / 10;
    let seen = counts(count);
    let left = AtomicU64::new(count as u64);
    thread::scope(|scope| {
        for seed in 0..8 {
            let (address, seen, left) = (&address, &seen, &left);
            scope.spawn(move || {
                let mut dice = Dice::new(seed);
                while left.load(Ordering::Relaxed) > 0 {
                    let mut client = Redis::connect(address);
                    for _ in 0..5 {
                        client.say("TAKE q WAIT 100");
                        if dice.index(4) == 0 {
                            // Blocked, or being served, or with a reply that is not read.
                            break;
                        }
                        let taken = client.value();
                        if show(&taken) == "[]" || dice.index(4) == 0 {
                            continue;
                        }
                        if client.reply(&format!("ACK q {}", receipt(&taken))) == "OK" {
                            note(seen, &task(&taken)[3]);
                            left.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        produce(&address, count);
    });
    check_once(&seen);
    assert_eq!(figure(&Redis::connect(&address).ask("STATS"), "present"), 0);
    server.stop();
}

#[test]
fn a_hundred_thousand_requests_with_unread_replies_take_little_memory() {
    const CLIENTS: usize = 10;
    let dir = tempfile::tempdir().unwrap();
    let (server, address) = serve(dir.path(), IN_MEMORY);
    let mut control = Redis::connect(&address);
    for _ in 0..20 {
        control.ask_all(&["PUT q p"; 500]);
    }
    let stale = format!("ACK q{}", " 1-1-1".repeat(1_000));
    let before = server.resident_bytes();
    for request in ["PING", "COMMAND DOCS", "PEEK q COUNT 65535", "PEEK q WITHMETA", &stale] {
        let mut silent: Vec<Redis> = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = Redis::connect(&address);
            client.say_until_held_back(request, 100_000);
            silent.push(client);
        }
        assert_eq!(control.reply("PING"), "PONG");
        let grown = server.resident_bytes().saturating_sub(before);
        let most = 200 << 20;
        assert!(grown < most, "{grown} bytes more after {CLIENTS} times {request:.20}");
    }
    // Lengths that are merely announced take none at all.
    let mut announced: Vec<Redis> = Vec::new();
    for _ in 0..500 {
        let mut client = Redis::connect(&address);
        client.send(b"*16384\r\n$1048576\r\nx");
        announced.push(client);
    }
    assert_eq!(control.reply("PING"), "PONG");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 250 << 20, "{grown} bytes more");
    drop(announced);
    server.stop();
}

#[test]
fn a_store_that_fails_is_told_to_those_who_are_blocked_too() {
    let dir = tempfile::tempdir().unwrap();
    // Beyond the limit for the size of a file a write fails rather than end the process.
    let mut command = Command::new("sh");
    let serving = "trap '' XFSZ; exec \"$0\" \"$@\"";
    command.args(["-c", serving, env!("CARGO_BIN_EXE_pinpriq"), "serve"]);
    command.args(["--pinpriq", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--http", "off"]);
    command.args(["--log-format", "json"]);
    command.args(["--data", dir.path().to_str().unwrap()]);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let server = Serving::of_command(command);
    let address = server.door("resp");
    let mut client = Redis::connect(&address);
    client.ask("PUT q p");
    let mut blocked = [(); 3].map(|()| Redis::connect(&address));
    blocked[0].say("TAKE none WAIT -1");
    blocked[1].say("AWAIT q 1 WAIT -1");
    blocked[2].say("PUT other p WAIT -1");
    while client.info("blocked_clients") != "3" {}
    let process = format!("--pid={}", client.info("process_id"));
    assert!(Command::new("prlimit").args([&process, "--fsize=16"]).status().unwrap().success());
    assert_eq!(client.reply("PUT q p"), "STORE");
    for client in &mut blocked {
        assert_eq!(show(&client.value()), "STORE");
        assert_eq!(client.reply("PING"), "PONG");
        client.end_input();
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(client.reply("POP q"), "STORE");
    assert_ne!(client.info("journal_failure"), "none");
    assert_eq!(server.signal("-TERM"), Some(1));
}
