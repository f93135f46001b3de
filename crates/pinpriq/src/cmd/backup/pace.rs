//! How fast a backup goes: the server and the disks that it shares with others get rests.
//!
//! After every piece that was read from the server or written into the place, it pauses for as long
//! as that many bytes may take. The work itself takes time besides, so it is never faster.

use std::time::Duration;

use pinpriq_archive::{Listing, Place, PlaceError};

use crate::cmd::pass;

/// How much is read at a time, as a part of a second.
const PARTS_PER_SECOND: u64 = 16;

/// The least that is read at a time, in bytes.
const PART_BYTES_MIN: u64 = 64 << 10;

/// The most bytes a second, if there is such a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    bytes_per_second: Option<u64>,
}

impl Pace {
    /// None: as fast as it goes.
    pub(super) const fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second }
    }

    /// Pauses after so many bytes.
    pub(super) fn rest(self, bytes: u64) {
        if let Some(time) = self.time_of(bytes) {
            pass(time);
        }
    }

    /// The end of what to read at once, which begins at `from` and ends at `to` at the latest.
    pub(super) fn end_of_part(self, from: u64, to: u64) -> u64 {
        let most = self.bytes_per_second.map(|it| (it / PARTS_PER_SECOND).max(PART_BYTES_MIN));
        most.map_or(to, |most| to.min(from.saturating_add(most)))
    }

    fn time_of(self, bytes: u64) -> Option<Duration> {
        let rate = self.bytes_per_second?;
        let micros = u128::from(bytes) * 1_000_000 / u128::from(rate.max(1));
        Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }
}

/// A place that is written at a pace.
pub(super) struct Paced {
    pub(super) place: Box<dyn Place>,
    pub(super) pace: Pace,
}

impl Place for Paced {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        let is_new = self.place.create(name, bytes)?;
        self.pace.rest(bytes.len() as u64);
        Ok(is_new)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.place.get(name)
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        self.place.list(prefix)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        self.place.remove(name)
    }

    fn name(&self) -> String {
        self.place.name()
    }

    fn settle(&self, name: &str) -> Result<(), PlaceError> {
        self.place.settle(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_are_as_long_as_the_bytes_may_take_at_least() {
        let pace = Pace::new(Some(64 << 20));
        assert_eq!(pace.time_of(32 << 20), Some(Duration::from_millis(500)));
        assert_eq!(pace.time_of(0), Some(Duration::ZERO));
        assert_eq!(Pace::new(Some(1)).time_of(u64::MAX), Some(Duration::from_micros(u64::MAX)));
        assert_eq!(Pace::new(None).time_of(u64::MAX), None);
    }

    #[test]
    fn a_slow_backup_reads_a_little_at_a_time() {
        let pace = Pace::new(Some(64 << 20));
        assert_eq!(pace.end_of_part(1, 8 << 20), (4 << 20) + 1);
        assert_eq!(pace.end_of_part(7 << 20, 8 << 20), 8 << 20);
        assert_eq!(Pace::new(Some(1)).end_of_part(0, 8 << 20), 64 << 10);
        assert_eq!(Pace::new(None).end_of_part(0, 8 << 20), 8 << 20);
    }
}
