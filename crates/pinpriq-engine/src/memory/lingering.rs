//! The queues that have ceased to exist, and whose figures are kept for a while.
//!
//! The object of such a queue stays, with its counters. All are kept equally long, so the oldest
//! ends first. Nothing wakes the engine for that: calls forget some of those whose time is over.
//! Those that are in use stay.

use std::collections::BTreeMap;
use std::fmt;

use crate::memory::slots::QueueSlot;
use pinpriq_proto::limits::LINGERING_BYTES_MAX;
use pinpriq_proto::survey::IsInUse;
use pinpriq_proto::time::{Span, Timestamp};

/// The most queues that one call forgets because their time is over.
pub(crate) const FORGOTTEN_PER_CALL: usize = 64;

/// How long a queue in use is kept at least, before that is asked again.
const IN_USE_SPAN: Span = Span::from_ms(60_000);

/// Says whether a queue is in use although it does not exist.
#[derive(Clone, Default)]
pub(crate) struct InUse(pub(crate) Option<IsInUse>);

impl InUse {
    /// Whether that is so for the queue of this name.
    pub(crate) fn holds(&self, name: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|is_in_use| is_in_use(name))
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("InUse").field(&self.0.is_some()).finish()
    }
}

/// The queues that linger, in the order in which they ended.
#[derive(Debug)]
pub(crate) struct Lingering {
    /// How long each is kept. None is kept if this is zero.
    span: Span,
    queues_max: usize,
    by_age: BTreeMap<u64, Entry>,
    /// Until when the oldest is kept at least. Every call of the engine looks at this.
    oldest_until: Timestamp,
    last_serial: u64,
    bytes: u64,
}

/// A queue that lingers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    slot: QueueSlot,
    until: Timestamp,
    bytes: u64,
}

impl Lingering {
    /// Keeps at most this many queues for this long.
    pub(crate) const fn new(span: Span, queues_max: usize) -> Self {
        Self {
            span,
            queues_max,
            by_age: BTreeMap::new(),
            oldest_until: Timestamp::MAX,
            last_serial: 0,
            bytes: 0,
        }
    }

    /// Keeps a queue that ends now and occupies this many bytes. Returns the number under which it
    /// is kept, or `None` if it is not.
    pub(crate) fn add(
        &mut self,
        slot: QueueSlot,
        now: Timestamp,
        (bytes, is_in_use): (u64, bool),
    ) -> Option<u64> {
        let span = if is_in_use { self.span.max(IN_USE_SPAN) } else { self.span };
        if span == Span::ZERO || self.queues_max == 0 {
            return None;
        }
        self.last_serial += 1;
        let until = now.after(span);
        self.oldest_until = self.oldest_until.min(until);
        self.by_age.insert(self.last_serial, Entry { slot, until, bytes });
        self.bytes += bytes;
        Some(self.last_serial)
    }

    /// Keeps a queue no longer, because it exists again.
    pub(crate) fn remove(&mut self, serial: u64) {
        let entry = self.by_age.remove(&serial);
        self.bytes -= entry.map_or(0, |entry| entry.bytes);
    }

    /// Returns the entry of this number.
    pub(crate) fn entry(&self, serial: u64) -> Option<Entry> {
        self.by_age.get(&serial).copied()
    }

    /// Keeps a queue again that has not existed after all.
    pub(crate) fn put_back(&mut self, serial: u64, entry: Entry) {
        if self.by_age.insert(serial, entry).is_none() {
            self.bytes += entry.bytes;
        }
    }

    /// Whether the time of the oldest queue may be over.
    #[inline]
    pub(crate) fn may_be_over(&self, now: Timestamp) -> bool {
        self.oldest_until <= now
    }

    /// Removes and returns the oldest queue, if its time is over.
    pub(crate) fn pop_over(&mut self, now: Timestamp) -> Option<QueueSlot> {
        let oldest = self.by_age.first_key_value().map(|(_, entry)| entry.until);
        self.oldest_until = oldest.unwrap_or(Timestamp::MAX);
        if has_passed(self.oldest_until, now) { self.pop() } else { None }
    }

    /// Removes and returns the oldest queue, if there are too many.
    pub(crate) fn pop_excess(&mut self) -> Option<QueueSlot> {
        let are_too_many = self.by_age.len() > self.queues_max || self.bytes > LINGERING_BYTES_MAX;
        if are_too_many { self.pop() } else { None }
    }

    fn pop(&mut self) -> Option<QueueSlot> {
        let (_, entry) = self.by_age.pop_first()?;
        self.bytes -= entry.bytes;
        Some(entry.slot)
    }

    /// Whether the time of the queue with this number is over.
    pub(crate) fn is_over(&self, serial: u64, now: Timestamp) -> bool {
        self.by_age.get(&serial).is_none_or(|entry| has_passed(entry.until, now))
    }

    /// Whether a queue is kept under this number.
    pub(crate) fn holds(&self, serial: u64, slot: QueueSlot) -> bool {
        self.by_age.get(&serial).is_some_and(|entry| entry.slot == slot)
    }

    /// The number of queues.
    pub(crate) fn len(&self) -> usize {
        self.by_age.len()
    }
}

fn has_passed(until: Timestamp, now: Timestamp) -> bool {
    until <= now
}
