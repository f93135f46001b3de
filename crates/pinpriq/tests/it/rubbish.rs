//! Clients that send anything at all: they are closed, and no other client notices.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pinpriq_testing::Dice;

use crate::serving::{GUARD, Serving};
use crate::sizes::size;
use crate::wire::push;

/// How many connections send rubbish at a time.
const CONNECTIONS: u64 = 100;

/// The most memory that the server may occupy meanwhile: 100 incomplete requests of 192 KiB, as
/// much again in buffers, and what random pushes leave in queues, many times over.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;

/// Something to send: mostly random bytes, and some that begin well.
fn rubbish(dice: &mut Dice) -> Vec<u8> {
    let length = 1 + dice.index(20_000);
    let mut bytes = dice.bytes(length);
    match dice.index(8) {
        // Credit without end, and then something unknown.
        0 => bytes.fill(0x41),
        // A push, a pop and a subscribe that never end.
        1 => bytes.splice(..0, *b"\x70\xff\xff\xff\xff\x01\xff\xff\xff\xff").for_each(drop),
        2 => bytes.splice(..0, *b"\x50\xff\xff").for_each(drop),
        3 => bytes.splice(..0, *b"\x73\xff\xff").for_each(drop),
        // Proper requests first.
        4 => bytes.splice(..0, push(b"rubbish", 10, 1, b"k", &[7; 100])).for_each(drop),
        5 => bytes.splice(..0, *b"\x73\x00\x07rubbish\x41\x50\x00\x07rubbish").for_each(drop),
        _ => {}
    }
    bytes.push(0xFF);
    bytes
}

/// Sends rubbish on one connection, and waits until the server has closed it.
fn send_rubbish(address: &str, dice: &mut Dice) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.set_write_timeout(Some(GUARD)).unwrap();
    // The server may close before all of it is sent.
    let sent = stream.write_all(&rubbish(dice)).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = [0; 4096];
    loop {
        match stream.read(&mut answer) {
            Ok(1..) => {}
            Ok(0) => return,
            Err(error) => {
                let timed_out = error.kind() == std::io::ErrorKind::WouldBlock;
                assert!(!timed_out, "the server does not close ({sent:?})");
                return;
            }
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long this goes on is chosen in seconds")]
fn rubbish_is_closed_and_a_proper_client_loses_nothing() {
    let seconds = u64::from(size("PINPRIQ_TEST_RUBBISH_SECONDS", 2));
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &["--durability", "interval"]);
    let begun = std::time::Instant::now();
    let goes_on = AtomicBool::new(true);
    let (sent, echoed, most) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..CONNECTIONS {
            let (server, goes_on, sent) = (&server, &goes_on, &sent);
            scope.spawn(move || {
                let mut dice = Dice::new(seed);
                while goes_on.load(Ordering::Relaxed) {
                    send_rubbish(&server.address, &mut dice);
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut wire = server.connect();
        // A scope waits for its threads even if this one panics, so they must be stopped.
        let _told = Told(&goes_on);
        let mut number = 0_u64;
        while begun.elapsed() < Duration::from_secs(seconds) || number < 100 {
            let payload = number.to_be_bytes();
            wire.fenced(&push(b"proper", 65_535, 1, &payload, &payload));
            assert_eq!(wire.payloads(b"proper"), [payload]);
            wire.fenced(&push(b"kept", 65_535, 1, &payload, &payload));
            if number >= 10 {
                let newest_first = wire.payloads(b"kept");
                assert_eq!(newest_first, [payload]);
            }
            number += 1;
            most.fetch_max(server.resident_bytes(), Ordering::Relaxed);
        }
        echoed.store(number, Ordering::Relaxed);
    });
    let (sent, echoed, most) = (sent.into_inner(), echoed.into_inner(), most.into_inner());
    println!("{sent} connections of rubbish, {echoed} echoes, at most {} MiB", most >> 20);
    assert!(sent >= CONNECTIONS);
    assert!(most < RESIDENT_BYTES_MAX, "{most} bytes of memory");
    if begun.elapsed().as_secs() < 60 {
        let mut wire = server.connect();
        for number in (0..10_u64).rev() {
            assert_eq!(wire.payloads(b"kept"), [number.to_be_bytes()]);
        }
        assert_eq!(wire.pop(b"kept"), []);
    }
    server.stop();
}

/// Ends the rubbish when it goes out of scope.
struct Told<'a>(&'a AtomicBool);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The most memory for 1,024 pops of 60 kB that are not read, and what is left in the queue: the
/// packets are 120 MB, and nothing may hold them twice.
const UNREAD_BYTES_MAX: u64 = 300 << 20;

#[test]
fn a_client_that_never_reads_costs_no_more_than_its_packets() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &["--durability", "memory"]);
    let mut pusher = server.connect();
    for number in 0..2_000_u32 {
        pusher.send(&push(b"q", 65_535, 1, &number.to_be_bytes(), &vec![7; 60_000]));
    }
    pusher.fenced(&[]);
    let before = server.resident_bytes();
    let slow = server.connect();
    slow.stream().set_nonblocking(true).unwrap();
    let pops = b"\x50\x00\x01q".repeat(1_000);
    let mut refused = 0;
    while refused < 200 {
        match slow.stream().write(&pops) {
            Ok(_) => refused = 0,
            Err(_) => refused += 1,
        }
        // Everybody else is served, and by then the server has read what it was going to read.
        pusher.fenced(&[]);
        let most = server.resident_bytes();
        assert!(most < UNREAD_BYTES_MAX, "{most} bytes of memory, {before} before");
    }
    let left = std::iter::from_fn(|| Some(pusher.pop(b"q").len()).filter(|&it| it > 0)).count();
    assert!(left > 1_000, "only {left} of 2000 packets were left for others");
    drop(slow);
    server.stop();
}
