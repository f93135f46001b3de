//! A server without sockets and one client, who asks many things at once and hears all answers
//! before the next ones, as pipelining clients do.
//!
//! The clock stands still. No socket and no disk is measured with this: what counts is from bytes
//! that came in to bytes that go out.

#[path = "../../tests/it/manual_clock.rs"]
mod manual_clock;
mod no_disk;

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::limits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::Request;
use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, ReplyLimits, Value, put_command};
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Durability};
use pinpriq_store::{Durable, Journal, JournalOptions, MemoryStore, Runner, Store};
use pinpriq_testing::server::Simulation;

use self::manual_clock::ManualClock;
use self::no_disk::NoDisk;

/// How many requests are sent at once.
pub(crate) const PIPELINED: u64 = 16;

pub(crate) const PAYLOAD: [u8; 100] = [b'x'; 100];

const NOW: Timestamp = Timestamp::from_ms(1_000_000);

/// No answer to what is sent at once is longer.
const ANSWERS_BYTES: usize = 64 << 10;

/// The server, the client, and what was answered last.
pub(crate) struct Talk {
    simulation: Simulation,
    client: ClientId,
    pub(crate) answers: Vec<u8>,
}

impl Talk {
    /// At level `memory`, or `sync` with a journal whose disk costs nothing.
    pub(crate) fn open(door: DoorName, durability: Durability) -> Self {
        let store: Box<dyn Store> = match durability {
            Durability::Memory => Box::new(MemoryStore::new()),
            Durability::Sync | Durability::Interval => {
                let options = JournalOptions::default();
                let journal = Journal::open(Arc::new(NoDisk), options, Runner::Inline);
                Box::new(journal.expect("no other journal has this disk"))
            }
        };
        let opened = Durable::open(store, limits::Limits::default(), NOW, 1);
        let (durable, _) = opened.expect("there is nothing to read yet");
        let clock: Rc<dyn Clock> = Rc::new(ManualClock::at(NOW));
        let config = Config { durability, ..Config::default() };
        let mut simulation = Simulation::new(durable, &config, &clock, None);
        let client = simulation.connect(door);
        Self { simulation, client, answers: Vec::with_capacity(ANSWERS_BYTES) }
    }

    /// Says something and hears every answer to it.
    pub(crate) fn say(&mut self, requests: &[u8]) {
        self.answers.clear();
        self.simulation.feed(self.client, requests);
        loop {
            self.simulation.run();
            let heard = self.simulation.drain(self.client, usize::MAX, &mut self.answers);
            if heard == 0 {
                return;
            }
        }
    }

    /// How many tasks there are.
    pub(crate) fn present(&self) -> u64 {
        self.simulation.inspect(0, |durable| durable.engine().totals().present())
    }
}

/// This number of these RESP requests, one after another.
pub(crate) fn resp(words: &[&[u8]], times: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..times).for_each(|_| put_command(&mut bytes, words));
    bytes
}

/// This number of RESP puts.
pub(crate) fn resp_puts(times: u64) -> Vec<u8> {
    resp(&[b"PUT", b"jobs", &PAYLOAD, b"PRIORITY", b"5"], times)
}

/// This number of RESP puts with four headers.
pub(crate) fn resp_puts_with_headers(times: u64) -> Vec<u8> {
    let trace = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let headers: [&[u8]; 10] = [
        b"HEADERS",
        b"4",
        b"traceparent",
        trace,
        b"tenant",
        b"acme",
        b"content-type",
        b"application/json",
        b"x-request-id",
        b"7f3a9c21",
    ];
    let put: [&[u8]; 5] = [b"PUT", b"jobs", &PAYLOAD, b"PRIORITY", b"5"];
    resp(&[&put[..], &headers].concat(), times)
}

/// This number of RESP takes.
pub(crate) fn resp_takes(times: u64) -> Vec<u8> {
    resp(&[b"TAKE", b"jobs", b"TTR", b"60000"], times)
}

/// An ack for each task in the answers to takes.
pub(crate) fn resp_acks(answers: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let mut rest = answers;
    while let Ok(DecodedReply::Whole { value, length }) = decoder.decode(rest) {
        rest = &rest[length..];
        let Value::Array(tasks) = &value else { panic!("{value:?} to a take") };
        let [Value::Array(parts)] = tasks.as_slice() else { panic!("{value:?} to a take") };
        let receipt = parts.get(2).and_then(Value::as_bytes).expect("a task has a receipt");
        put_command(&mut bytes, &[b"ACK", b"jobs", receipt]);
    }
    assert!(rest.is_empty(), "nothing else is answered");
    bytes
}

/// Pushes over the pinpriq protocol, each with one of these keys: packets with the same key leave
/// together.
pub(crate) fn pushes(keys: Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in keys {
        let (ttl_ms, priority, key) = (u16::MAX, 5, &key.to_be_bytes());
        let push = Request::Push { queue: b"jobs", ttl_ms, priority, key, payload: &PAYLOAD };
        push.put(&mut bytes).expect("it is short enough");
    }
    bytes
}

/// This number of pops over the pinpriq protocol.
pub(crate) fn pops(times: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..times {
        Request::Pop { queue: b"jobs" }.put(&mut bytes).expect("it is short enough");
    }
    bytes
}
