//! What a request costs from its bytes to those of its answer, through a door, the engine and a
//! store, without sockets and without a disk.
//!
//! Each sample is a few pipelined requests to a server with a backlog of ten thousand tasks, which
//! is brought back to that before the next sample. The journal is on a disk that costs nothing.
//! How many instructions the same takes is counted by `scripts/count-instructions`. Nothing is
//! judged.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has nothing to tell")]

mod talk;

use std::cell::RefCell;

use divan::Bencher;
use divan::counter::ItemsCount;

use pinpriq_server::config::DoorName;
use pinpriq_server::config::Durability;

use self::talk::{PIPELINED, Talk, pops, pushes, resp_acks, resp_puts, resp_takes};

const LEVELS: [Durability; 2] = [Durability::Memory, Durability::Sync];
const BACKLOG: u64 = 10_000;

fn main() {
    divan::main();
}

#[divan::bench(args = LEVELS, sample_count = 1_000, sample_size = 1)]
fn resp_put(bencher: Bencher<'_, '_>, level: Durability) {
    let (puts, takes) = (resp_puts(PIPELINED), resp_takes(PIPELINED));
    let talk = RefCell::new(filled(DoorName::Resp, level, &puts));
    let restore = |talk: &mut Talk| {
        if talk.present() > BACKLOG {
            talk.say(&takes);
            let acks = resp_acks(&talk.answers);
            talk.say(&acks);
        }
        puts.clone()
    };
    measure(bencher, &talk, restore);
    assert_eq!(talk.borrow().present(), BACKLOG + PIPELINED);
}

#[divan::bench(args = LEVELS, sample_count = 1_000, sample_size = 1)]
fn resp_take(bencher: Bencher<'_, '_>, level: Durability) {
    let (puts, takes) = (resp_puts(PIPELINED), resp_takes(PIPELINED));
    let talk = RefCell::new(filled(DoorName::Resp, level, &puts));
    let restore = |talk: &mut Talk| {
        // Before the first sample these are the answers to puts.
        if talk.answers.starts_with(b"*") {
            let acks = resp_acks(&talk.answers);
            talk.say(&acks);
            talk.say(&puts);
        }
        takes.clone()
    };
    measure(bencher, &talk, restore);
    let acks = resp_acks(&talk.borrow().answers);
    talk.borrow_mut().say(&acks);
    assert_eq!(talk.borrow().present(), BACKLOG - PIPELINED, "each take gave a task");
}

#[divan::bench(args = LEVELS, sample_count = 1_000, sample_size = 1)]
fn resp_ack(bencher: Bencher<'_, '_>, level: Durability) {
    let (puts, takes) = (resp_puts(PIPELINED), resp_takes(PIPELINED));
    let talk = RefCell::new(filled(DoorName::Resp, level, &puts));
    let restore = |talk: &mut Talk| {
        if talk.present() < BACKLOG {
            talk.say(&puts);
        }
        talk.say(&takes);
        resp_acks(&talk.answers)
    };
    measure(bencher, &talk, restore);
    assert_eq!(talk.borrow().present(), BACKLOG - PIPELINED);
}

/// A push has no answer, so there is a pop behind each.
#[divan::bench(args = LEVELS, sample_count = 1_000, sample_size = 1)]
fn pinpriq_push_and_pop(bencher: Bencher<'_, '_>, level: Durability) {
    let mut talk = Talk::open(DoorName::Pinpriq, level);
    for first in (0..BACKLOG).step_by(64) {
        talk.say(&pushes(first..BACKLOG.min(first + 64)));
    }
    let talk = RefCell::new(talk);
    let both = [pushes(BACKLOG..BACKLOG + PIPELINED), pops(PIPELINED)].concat();
    measure(bencher, &talk, |_| both.clone());
    assert_eq!(talk.borrow().present(), BACKLOG);
}

fn filled(door: DoorName, level: Durability, puts: &[u8]) -> Talk {
    let mut talk = Talk::open(door, level);
    (0..BACKLOG / PIPELINED).for_each(|_| talk.say(puts));
    talk
}

/// Measures what is said, which `restore` tells after having brought the backlog back.
fn measure(bencher: Bencher<'_, '_>, talk: &RefCell<Talk>, restore: impl Fn(&mut Talk) -> Vec<u8>) {
    bencher
        .counter(ItemsCount::new(PIPELINED))
        .with_inputs(|| restore(&mut talk.borrow_mut()))
        .bench_local_refs(|requests| talk.borrow_mut().say(requests));
}
