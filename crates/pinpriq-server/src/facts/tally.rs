//! What a shard counts about its clients: requests and how long they took, refusals, connections
//! and their ends, bytes.
//!
//! These are plain numbers in the memory of the shard. A command is known here by its place in the
//! table of commands. `figures` decides who sees the numbers, and under which names.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pinpriq_store::Histogram;

use crate::clients::ending::Ending;
use crate::config::DoorName;
use pinpriq_proto::request::code::Code;

/// The number of doors.
const DOORS: usize = DoorName::ALL.len();

/// A count for each door, in the order of [`DoorName::ALL`].
pub(crate) type ByDoor = [u64; DOORS];

/// What a shard counts about its clients.
#[derive(Default)]
pub(crate) struct Tally {
    refusals: [ByCode; DOORS],
    closes: [Cell<u64>; Ending::ALL.len()],
    received: [Cell<u64>; DOORS],
    sent: [Cell<u64>; DOORS],
    commands: RefCell<Vec<Asked>>,
    http_connections: Cell<u64>,
    http_refusals: Arc<HttpRefusals>,
}

/// A count for each code of a refusal.
struct ByCode([Cell<u64>; Code::COUNT]);

impl Default for ByCode {
    fn default() -> Self {
        Self([const { Cell::new(0) }; Code::COUNT])
    }
}

/// What was asked of one command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Asked {
    /// The number of requests.
    pub(crate) requests: ByDoor,
    /// How long they took, in microseconds.
    pub(crate) took_us: Histogram,
}

/// The counts of a [`Tally`], of one shard or of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    /// Refusals of each door, by the index of their code.
    pub(crate) refusals: [[u64; Code::COUNT]; DOORS],
    /// Connections that have ended, in the order of [`Ending::ALL`].
    pub(crate) closes: [u64; Ending::ALL.len()],
    /// Bytes of requests that were read.
    pub(crate) received: ByDoor,
    /// Bytes of answers that the system has accepted.
    pub(crate) sent: ByDoor,
    /// Requests for each command, by its place. Those after the last were never asked for.
    pub(crate) commands: Vec<Asked>,
    /// Connections that are open.
    pub(crate) connections: ByDoor,
}

/// Refusals that are decided outside the shards, before a request over HTTP stands for a command.
#[derive(Debug)]
pub(crate) struct HttpRefusals([AtomicU64; Code::COUNT]);

impl HttpRefusals {
    /// Counts a refusal.
    pub(crate) fn refuse(&self, code: Code) {
        self.0[code.index()].fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for HttpRefusals {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::default()))
    }
}

impl Tally {
    /// Counts a refusal that is reported to a client of this door, or that ends its connection.
    pub(crate) fn refuse(&self, door: DoorName, code: Code) {
        add(&self.refusals[door as usize].0[code.index()], 1);
    }

    /// Returns where refusals count that are decided before a request over HTTP is a command.
    pub(crate) const fn http_refusals(&self) -> &Arc<HttpRefusals> {
        &self.http_refusals
    }

    /// Counts requests of this door for one command.
    pub(crate) fn ask(&self, door: DoorName, command: usize, count: u64) {
        self.with(command, |asked| asked.requests[door as usize] += count);
    }

    /// Counts that each of `count` requests for one command took this time.
    pub(crate) fn took(&self, command: usize, count: u64, time: Duration) {
        let us = time.as_secs().saturating_mul(1_000_000) + u64::from(time.subsec_micros());
        self.with(command, |asked| asked.took_us.record_times(us, count));
    }

    fn with(&self, command: usize, change: impl FnOnce(&mut Asked)) {
        let mut commands = self.commands.borrow_mut();
        if commands.len() <= command {
            commands.resize_with(command + 1, Asked::default);
        }
        change(&mut commands[command]);
    }

    /// Counts a connection over HTTP that has begun. Others are counted by their clients.
    pub(crate) fn open_http(&self) {
        add(&self.http_connections, 1);
    }

    /// Counts the end of a connection over HTTP.
    pub(crate) fn close_http(&self) {
        self.http_connections.set(self.http_connections.get() - 1);
    }

    /// Counts a connection that has ended.
    pub(crate) fn close(&self, ending: Ending) {
        add(&self.closes[ending as usize], 1);
    }

    /// Counts bytes that were read from a client of this door.
    #[inline]
    pub(crate) fn receive(&self, door: DoorName, bytes: usize) {
        add(&self.received[door as usize], bytes as u64);
    }

    /// Counts bytes that were written to a client of this door.
    #[inline]
    pub(crate) fn send(&self, door: DoorName, bytes: usize) {
        add(&self.sent[door as usize], bytes as u64);
    }

    /// Returns the counts. The connections are those over HTTP.
    pub(crate) fn counts(&self) -> Counts {
        let mut refusals = self.refusals.each_ref().map(|door| door.0.each_ref().map(Cell::get));
        let http = &mut refusals[DoorName::Http as usize];
        for (count, more) in http.iter_mut().zip(&self.http_refusals.0) {
            *count += more.load(Ordering::Relaxed);
        }
        let mut connections = ByDoor::default();
        connections[DoorName::Http as usize] = self.http_connections.get();
        Counts {
            refusals,
            closes: self.closes.each_ref().map(Cell::get),
            received: self.received.each_ref().map(Cell::get),
            sent: self.sent.each_ref().map(Cell::get),
            commands: self.commands.borrow().clone(),
            connections,
        }
    }
}

impl Counts {
    /// Returns the sums of both.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (door, others) in self.refusals.iter_mut().zip(&other.refusals) {
            join(door, others);
        }
        join(&mut self.closes, &other.closes);
        join(&mut self.received, &other.received);
        join(&mut self.sent, &other.sent);
        join(&mut self.connections, &other.connections);
        if self.commands.len() < other.commands.len() {
            self.commands.resize_with(other.commands.len(), Asked::default);
        }
        for (asked, more) in self.commands.iter_mut().zip(&other.commands) {
            join(&mut asked.requests, &more.requests);
            asked.took_us = asked.took_us.and(&more.took_us);
        }
        self
    }

    /// Returns the refusals of all doors, by the index of their code.
    pub(crate) fn refusals_in_all(&self) -> [u64; Code::COUNT] {
        let mut all = [0; Code::COUNT];
        self.refusals.iter().for_each(|door| join(&mut all, door));
        all
    }
}

impl Default for Counts {
    fn default() -> Self {
        Tally::default().counts()
    }
}

#[inline]
fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get() + more);
}

fn join(counts: &mut [u64], others: &[u64]) {
    for (count, more) in counts.iter_mut().zip(others) {
        *count += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_the_place_of_its_name() {
        let tally = Tally::default();
        for (at, code) in Code::all().enumerate() {
            (0..=at).for_each(|_| tally.refuse(DoorName::Resp, code));
        }
        for (at, ending) in Ending::ALL.into_iter().enumerate() {
            (0..=at).for_each(|_| tally.close(ending));
        }
        for (at, door) in DoorName::ALL.into_iter().enumerate() {
            tally.receive(door, at + 1);
            tally.send(door, at + 1);
            tally.ask(door, 3, at as u64 + 1);
        }
        let counts = tally.counts();
        let refusals = &counts.refusals[DoorName::Resp as usize];
        let requests = &counts.commands[3].requests;
        let all = [&refusals[..], &counts.closes, &counts.received, &counts.sent, requests];
        for counts in all {
            assert!(counts.iter().copied().eq(1..=counts.len() as u64), "{counts:?}");
        }
        assert_eq!(counts.clone().and(&counts).closes[2], 6);
    }

    #[test]
    fn refusals_outside_the_shards_are_those_of_http() {
        let tally = Tally::default();
        let outside = tally.http_refusals().clone();
        outside.refuse(Code::Err);
        tally.refuse(DoorName::Http, Code::Err);
        tally.refuse(DoorName::Resp, Code::Err);
        let counts = tally.counts();
        assert_eq!(counts.refusals[DoorName::Http as usize][Code::Err.index()], 2);
        assert_eq!(counts.refusals_in_all()[Code::Err.index()], 3);
    }

    #[test]
    fn commands_that_one_shard_never_saw_are_those_of_the_other() {
        let (one, other) = (Tally::default(), Tally::default());
        one.ask(DoorName::Resp, 1, 2);
        other.ask(DoorName::Http, 5, 7);
        other.took(5, 7, Duration::from_micros(3));
        for both in [one.counts().and(&other.counts()), other.counts().and(&one.counts())] {
            assert_eq!(both.commands[1].requests[DoorName::Resp as usize], 2);
            assert_eq!(both.commands[5].requests[DoorName::Http as usize], 7);
            let took = both.commands[5].took_us;
            assert_eq!((took.count(), took.sum()), (7, 21));
        }
    }

    #[test]
    fn connections_over_http_come_and_go() {
        let tally = Tally::default();
        (0..3).for_each(|_| tally.open_http());
        tally.close_http();
        assert_eq!(tally.counts().connections[DoorName::Http as usize], 2);
    }
}
