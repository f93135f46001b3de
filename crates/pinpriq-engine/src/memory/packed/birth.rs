//! The moment at which a task was put, and its TTR if that is a whole number of seconds below 2^16,
//! in eight bytes.
//!
//! Moments end with the year 9999 and take 48 bits, so 16 are left.

use std::num::NonZeroU64;

use pinpriq_proto::time::{Span, Timestamp};

/// The bits of the moment. The seconds of the TTR are above them, 0 if it is not kept here.
const MOMENT_BITS: u32 = 48;
const MOMENT: u64 = (1 << MOMENT_BITS) - 1;
const TTR_SECONDS_MAX: u64 = u64::MAX >> MOMENT_BITS;

const _: () = assert!(Timestamp::MAX.ms() < MOMENT, "every moment has its place");

/// See the start of this file. The moment is stored in milliseconds plus one, so that an `Option`
/// of it takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Birth(NonZeroU64);

impl Birth {
    /// The moment of a put, without a TTR.
    pub(super) const fn at(put_at: Timestamp) -> Self {
        Self(NonZeroU64::MIN.saturating_add(put_at.ms()))
    }

    /// The same TTR with another moment.
    pub(super) fn moved(self, put_at: Timestamp) -> Self {
        Self(Self::at(put_at).0 | (self.0.get() & !MOMENT))
    }

    #[inline]
    pub(super) const fn put_at(self) -> Timestamp {
        Timestamp::from_ms((self.0.get() & MOMENT) - 1)
    }

    /// The TTR, if it is kept here.
    #[inline]
    pub(super) const fn ttr(self) -> Option<Span> {
        match self.0.get() >> MOMENT_BITS {
            0 => None,
            seconds => Some(Span::from_ms(seconds * 1_000)),
        }
    }

    /// Keeps a TTR in place of the former one. Returns it if it has to be kept elsewhere.
    #[inline]
    pub(super) fn keep_ttr(&mut self, ttr: Option<Span>) -> Option<Span> {
        *self = Self::at(self.put_at());
        let ms = ttr?.ms();
        let seconds = ms / 1_000;
        if seconds == 0 || seconds > TTR_SECONDS_MAX || !ms.is_multiple_of(1_000) {
            return ttr;
        }
        self.0 |= seconds << MOMENT_BITS;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Birth, TTR_SECONDS_MAX};
    use pinpriq_proto::time::{Span, Timestamp};

    #[test]
    fn whole_seconds_are_kept_beside_every_moment() {
        for put_at in [Timestamp::ZERO, Timestamp::from_ms(1_764_000_000_000), Timestamp::MAX] {
            let mut birth = Birth::at(put_at);
            assert_eq!((birth.put_at(), birth.ttr()), (put_at, None));
            for (ms, is_kept) in [
                (1_000, true),
                (0, false),
                (TTR_SECONDS_MAX * 1_000, true),
                (999, false),
                (60_000, true),
                (60_001, false),
                ((TTR_SECONDS_MAX + 1) * 1_000, false),
            ] {
                let ttr = Some(Span::from_ms(ms));
                let elsewhere = birth.keep_ttr(ttr);
                assert_eq!((birth.ttr().or(elsewhere), elsewhere.is_none()), (ttr, is_kept));
                assert_eq!(birth.put_at(), put_at);
                assert_eq!(birth.moved(Timestamp::from_ms(9)).ttr(), birth.ttr());
            }
        }
    }
}
