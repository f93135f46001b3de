//! The numbers that the engine has issued: of tasks, lanes and members, of grants, of burials, and
//! of clock readings. They only grow, and a store keeps how far they have come.

use pinpriq_proto::change::Header;
use pinpriq_proto::task::{Burial, Grant};
use pinpriq_proto::time::Timestamp;

/// The last number of each kind.
#[derive(Debug)]
pub(crate) struct Issued {
    incarnation: u64,
    number: u64,
    grant: u64,
    time64: u64,
    burial: Burial,
}

/// How far the numbers had come that a transaction may take back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    number: u64,
    time64: u64,
    burial: Burial,
}

impl Default for Issued {
    fn default() -> Self {
        Self { incarnation: 0, number: 0, grant: 0, time64: 0, burial: Burial::UNKNOWN }
    }
}

impl Issued {
    /// Begins the next incarnation, after what the newest batch of the store says.
    ///
    /// # Panics
    /// If the incarnation is not higher than the last one.
    pub(crate) fn begin(&mut self, incarnation: u64, latest: Header) {
        assert!(incarnation > latest.incarnation, "incarnation {incarnation} is not new");
        self.incarnation = incarnation;
        self.raise(latest.last_number);
        // Above every id that a clock reading can have given. The clock may stand where it stood at
        // the last start, so each incarnation begins a millisecond later.
        self.time64 = latest.now.ms().saturating_add(incarnation).saturating_mul(1_000_000);
    }

    pub(crate) const fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The highest number of a task, lane or member.
    pub(crate) const fn last(&self) -> u64 {
        self.number
    }

    /// The next number of a task, lane or member.
    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Issues this many numbers, and returns the first.
    pub(crate) const fn next_run(&mut self, count: u64) -> u64 {
        let first = self.number + 1;
        self.number += count;
        first
    }

    /// Notes that a number was issued in an earlier incarnation.
    #[inline]
    pub(crate) fn raise(&mut self, number: u64) {
        self.number = self.number.max(number);
    }

    /// How far all have come, for [`Issued::go_back`].
    pub(crate) const fn mark(&self) -> Mark {
        let Self { number, time64, burial, .. } = *self;
        Mark { number, time64, burial }
    }

    /// Takes back what was issued since this mark, except for grants. No client may know
    /// of it.
    pub(crate) const fn go_back(&mut self, mark: Mark) {
        (self.number, self.time64, self.burial) = (mark.number, mark.time64, mark.burial);
    }

    /// The next burial, at this moment.
    pub(crate) const fn bury(&mut self, now: Timestamp) -> Burial {
        self.burial = Burial::next(self.burial, now);
        self.burial
    }

    /// Returns the burial of a task that was buried elsewhere: its own, unless that is unknown or
    /// would come after burials of this moment.
    pub(crate) fn adopt(&mut self, burial: Burial, now: Timestamp) -> Burial {
        let is_past = burial < Burial::next(self.burial, now);
        if burial != Burial::UNKNOWN && is_past { burial } else { self.bury(now) }
    }

    /// Notes that a task was buried in an earlier incarnation.
    pub(crate) fn raise_burial(&mut self, burial: Burial) {
        self.burial = self.burial.max(burial);
    }

    /// The next grant.
    #[inline]
    pub(crate) const fn grant(&mut self) -> Grant {
        self.grant += 1;
        Grant { incarnation: self.incarnation, serial: self.grant }
    }

    /// The clock in nanoseconds, or the lowest number above the last of these.
    pub(crate) fn time64(&mut self, now: Timestamp) -> u64 {
        let clock_ns = now.ms().saturating_mul(1_000_000);
        self.time64 = clock_ns.max(self.time64 + 1);
        self.time64
    }
}
