//! What a shard counts about its clients: refusals, ends of connections, bytes.
//!
//! These are plain numbers in the memory of the shard, each at a fixed place. `figures` decides who
//! sees them, and under which names.

use std::cell::Cell;

use crate::config::DoorName;
use crate::session::code::Code;
use crate::session::ending::Ending;

/// What a shard counts about its clients.
#[derive(Default)]
pub(crate) struct Tally {
    refusals: [Cell<u64>; Code::COUNT],
    closes: [Cell<u64>; Ending::ALL.len()],
    received: [Cell<u64>; DoorName::ALL.len()],
    sent: [Cell<u64>; DoorName::ALL.len()],
}

/// The counts of a [`Tally`], of one shard or of all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Refusals, by the index of their code.
    pub(crate) refusals: [u64; Code::COUNT],
    /// Connections that have ended, in the order of [`Ending::ALL`].
    pub(crate) closes: [u64; Ending::ALL.len()],
    /// Bytes of requests that were read, in the order of [`DoorName::ALL`].
    pub(crate) received: [u64; DoorName::ALL.len()],
    /// Bytes of answers that the system has accepted, in the order of [`DoorName::ALL`].
    pub(crate) sent: [u64; DoorName::ALL.len()],
}

impl Tally {
    /// Counts a refusal that is reported to a client, or that ends its connection.
    pub(crate) fn refuse(&self, code: Code) {
        add(&self.refusals[code.index()], 1);
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

    /// Returns the counts.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            refusals: self.refusals.each_ref().map(Cell::get),
            closes: self.closes.each_ref().map(Cell::get),
            received: self.received.each_ref().map(Cell::get),
            sent: self.sent.each_ref().map(Cell::get),
        }
    }
}

impl Counts {
    /// Returns the sums of both.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        join(&mut self.refusals, &other.refusals);
        join(&mut self.closes, &other.closes);
        join(&mut self.received, &other.received);
        join(&mut self.sent, &other.sent);
        self
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
            (0..=at).for_each(|_| tally.refuse(code));
        }
        for (at, ending) in Ending::ALL.into_iter().enumerate() {
            (0..=at).for_each(|_| tally.close(ending));
        }
        for (at, door) in DoorName::ALL.into_iter().enumerate() {
            tally.receive(door, at + 1);
            tally.send(door, at + 1);
        }
        let counts = tally.counts();
        let all = [&counts.refusals[..], &counts.closes, &counts.received, &counts.sent];
        for counts in all {
            assert!(counts.iter().copied().eq(1..=counts.len() as u64), "{counts:?}");
        }
        assert_eq!(counts.clone().and(&counts).closes[2], 6);
    }
}
