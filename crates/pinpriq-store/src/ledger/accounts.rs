//! Which entries of a log still count, and which may go.
//!
//! Entries go oldest first. One may go once nothing in it counts *and* the batches that
//! have replaced its records are in the log. Entries of one run go together. Only sums are kept
//! here; the engine alone knows which records count.

use std::collections::VecDeque;

use crate::Position;
use pinpriq_proto::change::Place;

use crate::ledger::batch::volume_of;
use crate::ledger::interface::Seq;

/// An entry, or a run of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    /// The first entry.
    pub(crate) first: Seq,
    /// The number of entries.
    pub(crate) entries: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The bytes of records in them that still count.
    pub(crate) live: u64,
}

/// All entries, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    units: VecDeque<Unit>,
    /// The number of units at the front in which nothing counts. The newest one is never one of
    /// them, since it may still grow.
    emptied: usize,
    /// Pairs of a position and an entry: once that position is reached, the entries before may go.
    notes: VecDeque<(Position, Seq)>,
    /// Entries before this one may go.
    released: Seq,
    /// The bytes of the entries that may go, and the number of their units.
    releasable: (u64, usize),
    used: u64,
    live: u64,
}

impl Accounts {
    pub(crate) fn push(&mut self, unit: Unit) {
        self.used += unit.bytes;
        self.live += unit.live;
        self.units.push_back(unit);
        self.skip_emptied();
    }

    /// Adds a batch to the last unit.
    pub(crate) fn add(&mut self, bytes: u64, live: u64) {
        if let Some(last) = self.units.back_mut() {
            last.bytes += bytes;
            last.live += live;
            self.used += bytes;
            self.live += live;
        }
    }

    /// Notes that a record counts no more, since the batch at `last` or one before it.
    pub(crate) fn obsolete(&mut self, place: Place, last: Position) {
        let length = u64::from(place.length.get());
        let unit = self.find(place.volume).filter(|unit| unit.live >= length);
        let Some(unit) = unit else {
            debug_assert!(false, "a record became obsolete twice: {place:?}");
            return;
        };
        unit.live -= length;
        self.live -= length;
        self.note(last);
    }

    fn find(&mut self, volume: u32) -> Option<&mut Unit> {
        let front = volume_of(self.units.front()?.first);
        let distance = u64::from(volume.wrapping_sub(front));
        let seq = Seq(self.units.front()?.first.0 + distance);
        let at = self.units.partition_point(|unit| unit.first < seq);
        self.units.get_mut(at).filter(|unit| unit.first == seq)
    }

    /// Notes which entries may go once `last` is reached.
    pub(crate) fn note(&mut self, last: Position) {
        self.skip_emptied();
        let noted = self.notes.back().map_or(self.released, |(_, seq)| *seq);
        if let Some(oldest) = self.units.get(self.emptied)
            && self.emptied > 0
            && oldest.first > noted
        {
            self.notes.push_back((last, oldest.first));
        }
    }

    fn skip_emptied(&mut self) {
        while self.emptied + 1 < self.units.len() && self.units[self.emptied].live == 0 {
            self.emptied += 1;
        }
    }

    /// Notes that everything up to this position is in the log.
    pub(crate) fn reached(&mut self, position: Position) {
        while let Some((last, seq)) = self.notes.front()
            && *last <= position
        {
            self.released = *seq;
            self.notes.pop_front();
        }
        let (mut bytes, mut count) = self.releasable;
        while let Some(unit) = self.units.get(count).filter(|unit| unit.first < self.released) {
            bytes += unit.bytes;
            count += 1;
        }
        self.releasable = (bytes, count);
    }

    /// The first entry that has to be kept, and the bytes of those before it.
    pub(crate) const fn releasable(&self) -> (Seq, u64) {
        (self.released, self.releasable.0)
    }

    /// Forgets the entries before this one, which are gone.
    pub(crate) fn trimmed(&mut self, before: Seq) {
        let (mut bytes, mut count) = self.releasable;
        while let Some(unit) = self.units.pop_front_if(|unit| unit.first < before) {
            self.used -= unit.bytes;
            self.emptied -= 1;
            bytes -= unit.bytes;
            count -= 1;
        }
        self.releasable = (bytes, count);
    }

    /// The oldest unit in which something counts, unless it is the newest one.
    pub(crate) fn oldest(&self) -> Option<Unit> {
        let is_newest = self.emptied + 1 >= self.units.len();
        if is_newest { None } else { self.units.get(self.emptied).copied() }
    }

    pub(crate) const fn used_bytes(&self) -> u64 {
        self.used
    }

    pub(crate) const fn live_bytes(&self) -> u64 {
        self.live
    }

    pub(crate) fn count(&self) -> usize {
        self.units.len()
    }

    /// Whether the log holds more than twice what counts plus this constant.
    pub(crate) fn is_wasteful(&self, slack_bytes: u64) -> bool {
        self.used > 2 * self.live + slack_bytes
    }
}
