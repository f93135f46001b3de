//! Moments and durations, in whole milliseconds.
//!
//! Nothing here reads a clock: the caller passes the current moment with each command. Timestamps
//! saturate at the end of the year 9999, so no deadline ever wraps.

use std::fmt;
use std::num::NonZeroU64;

/// The last representable moment: the end of the year 9999, in Unix milliseconds.
const LAST_MS: u64 = 253_402_300_799_999;

/// A moment in the server's time, in milliseconds since the Unix epoch.
// Stores the milliseconds plus one, so that an `Option` of it takes no more room. Each task has
// several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(NonZeroU64);

/// A duration in milliseconds, at most [`Span::MAX`].
// Stores the milliseconds plus one, like [`Timestamp`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span(NonZeroU64);

impl Timestamp {
    /// The Unix epoch, before every other moment.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// The end of the year 9999, after every other moment.
    pub const MAX: Self = Self(NonZeroU64::MIN.saturating_add(LAST_MS));

    /// The moment `ms` milliseconds after the Unix epoch, or [`Timestamp::MAX`] if that is earlier.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        if ms > LAST_MS { Self::MAX } else { Self(NonZeroU64::MIN.saturating_add(ms)) }
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0.get() - 1
    }

    /// The moment `span` later, or [`Timestamp::MAX`] if that is earlier.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self::from_ms(self.ms().saturating_add(span.ms()))
    }

    /// The time since `earlier`, or zero if `earlier` is in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span::from_ms(self.ms().saturating_sub(earlier.ms()))
    }
}

impl Span {
    /// A duration of zero.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// The longest duration, some 584 million years.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// A duration of `ms` milliseconds, or [`Span::MAX`] if that is shorter.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(ms))
    }

    /// The duration in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0.get() - 1
    }

    /// Whether the duration is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.ms() == 0
    }
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.ms())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.ms())
    }
}
