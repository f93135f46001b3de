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
use pinpriq_server::clock::{Clock, ManualClock};
use pinpriq_server::config::DoorName;
use pinpriq_server::simulation::{Options, Simulation};
use pinpriq_store::{Durable, MemoryStore};
use play::play;

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
    let mut sim = Simulation::new(durable, Options::default(), &clock, None);
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
        let mut sim = Simulation::new(durable, Options::default(), &clock, None);
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
