//! Kills at random moments, and what is there afterwards.
//!
//! Every packet carries its own number and bytes that follow from it. What a fence confirmed and
//! no client popped must be there, what a client saw must not, and what is there must be as it was.
//! Only what was being popped at the moment of a kill may be in either place.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use pinpriq_dice::Dice;

use crate::serving::Serving;
use crate::sizes::size;
use crate::wire::{Packet, Wire, push};

const PUSHERS: u64 = 4;
const POPPERS: usize = 2;
const CYCLES: u64 = 5;
/// The packets between two fences.
const BLOCK: u64 = 200;
/// The packets that share a key.
const GROUP: u64 = 3;
/// The packets in a directory that is started and killed over and over.
const COUNT: u64 = 20_000;

/// A packet of this number: its cycle, its pusher and its place, from the top down.
fn payload(number: u64) -> Vec<u8> {
    let mut dice = Dice::new(number);
    let length = dice.index(300);
    [&number.to_be_bytes()[..], &dice.bytes(length)].concat()
}

fn priority(number: u64) -> u8 {
    u8::try_from(1 + Dice::new(!number).index(3)).unwrap()
}

fn first_number(cycle: u64, pusher: u64) -> u64 {
    cycle << 40 | pusher << 32
}

fn key(number: u64) -> Vec<u8> {
    (number / GROUP).to_be_bytes().to_vec()
}

fn number_of((packet_key, bytes): &Packet) -> u64 {
    let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
    assert!(*bytes == payload(number) && *packet_key == key(number), "packet {number} has changed");
    number
}

/// What is known about the packets.
#[derive(Default)]
struct Known {
    /// Confirmed by a fence.
    fenced: HashSet<u64>,
    /// Sent, whether confirmed or not.
    sent: HashSet<u64>,
    /// Received by somebody.
    seen: HashSet<u64>,
    /// How many packets may have been under way at a kill.
    under_way: usize,
}

impl Known {
    fn see(&mut self, number: u64) {
        assert!(self.sent.contains(&number), "packet {number} was never pushed");
        assert!(self.seen.insert(number), "packet {number} came twice");
    }
}

/// Pushes block after block until all are done or the server is gone. Returns how many packets
/// were confirmed and how many were sent.
fn push_until_killed(mut wire: Wire, first: u64, count: u64, told: &SyncSender<()>) -> (u64, u64) {
    let mut confirmed = 0;
    while confirmed < count {
        let block = confirmed..count.min(confirmed + BLOCK);
        let end = block.end;
        let bytes: Vec<u8> = block
            .map(|place| first + place)
            .flat_map(|number| push(b"q", 0, priority(number), &key(number), &payload(number)))
            .collect();
        if wire.try_fenced(&bytes).is_err() {
            return (confirmed, end);
        }
        confirmed = end;
        // The receiver has gone once the kill is due.
        let _ = told.send(());
    }
    (confirmed, confirmed)
}

/// Pops until the server is gone, and returns what came.
fn pop_until_killed(mut wire: Wire) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Ok(packets) = wire.try_pop(b"q") {
        seen.extend(packets.iter().map(number_of));
    }
    seen
}

/// Pushes and pops until so many fences were confirmed, and then kills the server.
fn run_and_kill(server: Serving, known: &mut Known, cycle: u64, count: u64, fences: usize) {
    let (told, tells) = sync_channel(0);
    let pushers: Vec<_> = (0..PUSHERS)
        .map(|pusher| {
            let (wire, told) = (server.connect(), told.clone());
            let first = first_number(cycle, pusher);
            (first, thread::spawn(move || push_until_killed(wire, first, count, &told)))
        })
        .collect();
    drop(told);
    let poppers: Vec<_> = (0..POPPERS)
        .map(|_| {
            let wire = server.connect();
            thread::spawn(move || pop_until_killed(wire))
        })
        .collect();
    assert_eq!(tells.iter().take(fences).count(), fences);
    drop(tells);
    server.kill();
    for (first, pusher) in pushers {
        let (confirmed, sent) = pusher.join().unwrap();
        known.fenced.extend(first..first + confirmed);
        known.sent.extend(first..first + sent);
    }
    let seen: Vec<u64> = poppers.into_iter().flat_map(|it| it.join().unwrap()).collect();
    for number in seen {
        known.see(number);
    }
    known.under_way += POPPERS * usize::try_from(GROUP).unwrap();
}

/// Pops everything, and checks that it comes in order.
fn drain(server: &Serving, known: &mut Known) {
    let mut wire = server.connect();
    let mut last_priority = 0;
    let mut last_of_pusher: HashMap<(u8, u64), u64> = HashMap::new();
    let mut pushers_in_cycles: HashMap<u8, u64> = HashMap::new();
    loop {
        let packets = wire.pop(b"q");
        let Some(first) = packets.first().map(number_of) else { return };
        let urgency = priority(first);
        assert!(urgency >= last_priority, "priority {urgency} after {last_priority}");
        last_priority = urgency;
        // The newest first: cycles go down, and so do the packets of each pusher.
        let cycle = first >> 40;
        let former = pushers_in_cycles.insert(urgency, cycle);
        assert!(former.is_none_or(|former| cycle <= former), "cycle {cycle} after {former:?}");
        let former = last_of_pusher.insert((urgency, first >> 32), first);
        assert!(former.is_none_or(|former| first < former), "packet {first} after {former:?}");
        for number in packets.iter().map(number_of) {
            known.see(number);
        }
    }
}

fn crash_again_and_again(level: &str, pushes: u64, seed: u64) {
    let flags = ["--durability", level, "--pinpriq-ttl-zero", "forever"];
    let data = tempfile::tempdir().unwrap();
    let mut dice = Dice::new(seed);
    let mut known = Known::default();
    let count = (pushes / CYCLES / PUSHERS).max(1);
    for cycle in 0..CYCLES {
        let server = Serving::start(data.path(), &flags);
        let all = usize::try_from(count.div_ceil(BLOCK) * PUSHERS).unwrap();
        let fences = 1 + dice.index(all);
        println!("seed {seed}, {level}, cycle {cycle}: killed after {fences} of {all} fences");
        run_and_kill(server, &mut known, cycle, count, fences);
    }
    let server = Serving::start(data.path(), &flags);
    drain(&server, &mut known);
    let missing = known.fenced.difference(&known.seen).count();
    println!(
        "{level}: {} packets confirmed, {} received, {missing} popped and not received",
        known.fenced.len(),
        known.seen.len(),
    );
    assert!(missing <= known.under_way, "seed {seed}: {missing} confirmed packets are lost");
    server.stop();
}

#[test]
fn nothing_confirmed_is_lost_by_kills_at_level_sync() {
    let pushes = u64::from(size("PINPRIQ_TEST_PUSHES", 100_000));
    crash_again_and_again("sync", pushes, 1);
}

#[test]
fn nothing_confirmed_is_lost_by_kills_at_level_interval() {
    let pushes = u64::from(size("PINPRIQ_TEST_PUSHES", 100_000));
    crash_again_and_again("interval", pushes / 4, 2);
}

#[test]
fn few_packets_survive_many_kills() {
    for seed in 10..20 {
        crash_again_and_again("sync", 2_000, seed);
    }
}

/// A directory with so many packets, and a server that was killed over it.
fn killed_with(data: &Path, flags: &[&str], count: u64) {
    let server = Serving::start(data, flags);
    // The receiver may have gone.
    let (told, _) = sync_channel(1);
    assert_eq!(push_until_killed(server.connect(), 0, count, &told), (count, count));
    server.kill();
}

#[test]
fn nothing_is_lost_by_kills_while_idle_and_during_start_up() {
    let flags = ["--pinpriq-ttl-zero", "forever"];
    let data = tempfile::tempdir().unwrap();
    killed_with(data.path(), &flags, COUNT);
    for _ in 0..3 {
        Serving::start(data.path(), &flags).kill();
        Serving::launch(data.path(), &flags).kill();
        let server = Serving::launch(data.path(), &flags);
        server.logged("\"opened\"");
        server.kill();
        // As soon as it begins to write.
        let before = crate::files::written(data.path());
        let mut server = Serving::launch(data.path(), &flags);
        while server.is_running() && crate::files::written(data.path()) == before {}
        server.kill();
    }
    let server = Serving::start(data.path(), &flags);
    let mut known = Known { sent: (0..COUNT).collect(), ..Known::default() };
    drain(&server, &mut known);
    assert_eq!(known.seen.len() as u64, COUNT);
    server.stop();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a time to live is judged by the time that passed")]
fn times_to_live_go_on_over_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &[]);
    let mut wire = server.connect();
    let before = std::time::Instant::now();
    let packets = [
        push(b"short", 1, 1, b"k", b"gone"),
        push(b"long", 65_535, 1, b"k", b"there"),
        push(b"both", 65_535, 1, b"k", b"there"),
        push(b"both", 1, 1, b"k", b"gone"),
    ];
    wire.fenced(&packets.concat());
    server.kill();
    // The start alone takes longer than a millisecond.
    let server = Serving::start(data.path(), &[]);
    let mut wire = server.connect();
    assert_eq!(wire.pop(b"short"), []);
    let (long, both) = (wire.payloads(b"long"), wire.payloads(b"both"));
    if before.elapsed().as_secs() < 60 {
        assert_eq!((long, both), (vec![b"there".to_vec()], vec![b"there".to_vec()]));
    } else {
        println!("this took longer than the packets live: nothing to see");
    }
    server.stop();
}

#[test]
fn popped_packets_do_not_come_back_after_a_kill() {
    let data = tempfile::tempdir().unwrap();
    for round in 0..5_u8 {
        let server = Serving::start(data.path(), &[]);
        let mut wire = server.connect();
        assert_eq!(wire.pop(b"popped"), []);
        assert_eq!(wire.payloads(b"kept").len(), usize::from(round > 0));
        wire.fenced(&push(b"popped", 65_535, 1, b"k", &[round]));
        wire.fenced(&push(b"kept", 65_535, 1, b"k", &[round]));
        assert_eq!(wire.payloads(b"popped"), [[round]]);
        wire.send(b"\x73\x00\x09delivered\x41");
        wire.send(&push(b"delivered", 65_535, 1, b"k", b"p"));
        assert_eq!(wire.try_frame().unwrap().len(), 1);
        assert_eq!(wire.pop(b"delivered"), []);
        server.kill();
    }
}
