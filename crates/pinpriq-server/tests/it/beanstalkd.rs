//! The beanstalkd door: conversations in `testdata/beanstalkd`, whose replies are those of
//! beanstalkd 1.13 itself.

mod conversations;
mod crossing;
mod numbers;
mod play;

use std::rc::Rc;

use conversations::{Conversation, files};
use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Span;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Limits};
use pinpriq_store::{Durable, MemoryStore};
use pinpriq_testing::server::Simulation;
use play::play;

use crate::manual_clock::ManualClock;
use crate::world::START;

#[test]
fn conversations_are_those_of_beanstalkd() {
    play_all(1);
}

#[test]
fn conversations_are_the_same_with_several_shards() {
    for shards in [2, 3, 7] {
        play_all(shards);
    }
}

fn play_all(shards: usize) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, conversations) in files() {
        for conversation in conversations {
            count += 1;
            if let Err(difference) = play(&conversation, shards) {
                let Conversation { line, name, .. } = conversation;
                wrong.push(format!("{file}:{line} == {name}\n{difference}"));
            }
        }
    }
    assert!(count > 400, "only {count} conversations");
    let (few, all) = (wrong.iter().take(20).cloned().collect::<Vec<_>>(), wrong.len());
    assert!(
        wrong.is_empty(),
        "{all} of {count} conversations differ, {shards} shards:\n{}",
        few.join("\n")
    );
}

/// Sends a request, and returns what comes.
fn ask(sim: &mut Simulation, client: ClientId, request: &[u8]) -> String {
    sim.feed(client, request);
    sim.run();
    let mut answer = Vec::new();
    sim.drain(client, usize::MAX, &mut answer);
    answer.escape_ascii().to_string()
}

#[test]
fn job_of_a_client_that_quits_has_not_failed() {
    let store = Box::new(MemoryStore::new());
    let durable = Durable::open(store, EngineLimits::default(), START, 1).unwrap().0;
    let clock: Rc<dyn Clock> = Rc::new(ManualClock::at(START));
    let mut sim = Simulation::new(durable, &Config::default(), &clock, None);
    let other = sim.connect(DoorName::Resp);
    assert_eq!(ask(&mut sim, other, b"QUEUE CREATE default ATTEMPTS 1\r\n"), "+OK\\r\\n");
    let producer = sim.connect(DoorName::Beanstalkd);
    assert_eq!(ask(&mut sim, producer, b"put 0 0 60 1\r\na\r\n"), "INSERTED 1\\r\\n");
    for (end, becomes) in [(&b"quit\r\n"[..], "peek-ready\r\n"), (b"", "peek-buried\r\n")] {
        let worker = sim.connect(DoorName::Beanstalkd);
        assert_eq!(ask(&mut sim, worker, b"reserve\r\n"), "RESERVED 1 1\\r\\na\\r\\n");
        assert_eq!(ask(&mut sim, worker, end), "");
        assert!(sim.is_connected(worker) == end.is_empty());
        sim.cut(worker);
        let found = ask(&mut sim, producer, becomes.as_bytes());
        assert_eq!(found, "FOUND 1 1\\r\\na\\r\\n", "{becomes}");
    }
}

#[test]
fn counts_of_a_tube_stay_while_a_connection_uses_or_watches_it() {
    let (minute, two_minutes) = (Span::from_ms(60_000), Span::from_ms(120_000));
    for linger in [minute, Span::ZERO] {
        let limits = EngineLimits { queue_linger: linger, ..EngineLimits::default() };
        let durable = Durable::open(Box::new(MemoryStore::new()), limits, START, 1).unwrap().0;
        let manual = Rc::new(ManualClock::at(START));
        let clock: Rc<dyn Clock> = manual.clone();
        let mut sim = Simulation::new(durable, &Config::default(), &clock, None);
        let (user, looker) = (sim.connect(DoorName::Beanstalkd), sim.connect(DoorName::Beanstalkd));
        assert_eq!(ask(&mut sim, user, b"use t\r\n"), "USING t\\r\\n");
        assert!(ask(&mut sim, user, b"put 0 0 60 1\r\na\r\n").starts_with("INSERTED 1"));
        assert_eq!(ask(&mut sim, user, b"delete 1\r\n"), "DELETED\\r\\n");
        let mut counted = || {
            manual.advance(two_minutes);
            // What is over is looked for by the next request, whatever it is.
            ask(&mut sim, looker, b"stats-tube default\r\n");
            let told = ask(&mut sim, looker, b"stats-tube t\r\n");
            (told.contains("total-jobs: 1") && told.contains("cmd-delete: 1"), told)
        };
        for _ in 0..3 {
            let (is_counted, told) = counted();
            assert!(is_counted, "{told}");
        }
        ask(&mut sim, looker, b"watch t\r\n");
        ask(&mut sim, user, b"use default\r\n");
        manual.advance(two_minutes);
        let told = ask(&mut sim, looker, b"stats-tube t\r\n");
        assert!(told.contains("total-jobs: 1"), "{told}");
        ask(&mut sim, looker, b"ignore t\r\n");
        manual.advance(two_minutes);
        assert_eq!(ask(&mut sim, looker, b"stats-tube t\r\n"), "NOT_FOUND\\r\\n");
        ask(&mut sim, looker, b"use t\r\n");
        let told = ask(&mut sim, looker, b"stats-tube t\r\n");
        assert!(told.contains("total-jobs: 0"), "{told}");
    }
}

#[test]
fn lists_of_tubes_that_are_not_read_count_together() {
    const TUBES: usize = 400;
    let limits = Limits {
        payload_bytes_max: 1_000,
        connection_bytes_max: 500_000,
        // Nothing but what all connections keep together may stop one.
        out_bytes_max: 1 << 30,
        ..Limits::default()
    };
    let store = Box::new(MemoryStore::new());
    let durable = Durable::open(store, EngineLimits::default(), START, 1).unwrap().0;
    let clock: Rc<dyn Clock> = Rc::new(ManualClock::at(START));
    let config = Config { limits, ..Config::default() };
    let mut sim = Simulation::new(durable, &config, &clock, None);
    let other = sim.connect(DoorName::Resp);
    for number in 0..TUBES {
        let put = format!("PUT {number:0150} x\r\n");
        assert!(ask(&mut sim, other, put.as_bytes()).starts_with('$'));
    }
    let mut lists = 0;
    let mut slow = Vec::new();
    for _ in 0..3 {
        let client = sim.connect(DoorName::Beanstalkd);
        for _ in 0..100 {
            if !sim.reads_from(client) {
                break;
            }
            sim.feed(client, b"list-tubes\r\n");
            sim.run();
            lists += 1;
        }
        assert!(!sim.reads_from(client), "{lists} lists are kept");
        slow.push(client);
    }
    // A client that keeps nothing yet may always begin.
    assert!((4..20).contains(&lists), "{lists} lists are kept");
    assert_eq!(ask(&mut sim, other, b"PING\r\n"), "+PONG\\r\\n");
    for client in slow {
        let mut read = Vec::new();
        while sim.drain(client, usize::MAX, &mut read) > 0 {
            sim.run();
        }
        assert!(read.starts_with(b"OK ") && read.len() > TUBES * 150);
        assert!(sim.reads_from(client), "what was read counts no longer");
    }
}

#[test]
fn what_lists_of_tubes_are_made_of_counts() {
    let limits = Limits { payload_bytes_max: 1_000, ..Limits::default() };
    let limits = Limits { connection_bytes_max: 500_000, out_bytes_max: 1 << 30, ..limits };
    let store = Box::new(MemoryStore::new());
    let durable = Durable::open(store, EngineLimits::default(), START, 1).unwrap().0;
    let clock: Rc<dyn Clock> = Rc::new(ManualClock::at(START));
    let config = Config { limits, ..Config::default() };
    let mut sim = Simulation::new(durable, &config, &clock, None);
    let client = sim.connect(DoorName::Beanstalkd);
    for number in 0..400 {
        let watched = ask(&mut sim, client, format!("watch {number:0150}\r\n").as_bytes());
        assert!(watched.starts_with("WATCHING "), "{watched}");
    }
    // Each keeps the names of the watched tubes, as they are, until it is written.
    sim.feed(client, "list-tubes\r\n".repeat(50).as_bytes());
    sim.run();
    let mut answers = Vec::new();
    while sim.drain(client, usize::MAX, &mut answers) > 0 {
        sim.run();
    }
    let answers = answers.escape_ascii().to_string();
    let (lists, refused) =
        (answers.matches("OK ").count(), answers.matches("OUT_OF_MEMORY").count());
    assert_eq!(lists + refused, 50);
    assert!((1..20).contains(&lists), "{lists} lists are kept");
    assert!(ask(&mut sim, client, b"list-tubes\r\n").starts_with("OK "));
}
