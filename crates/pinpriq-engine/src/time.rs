//! Moments and durations, in whole milliseconds.
//!
//! Nothing here reads a clock: every command brings its own moment along. Arithmetic saturates at
//! the end of the year 9999, so that no deadline ever wraps.

use std::fmt;

/// The last representable moment: the end of the year 9999, in Unix milliseconds.
const LAST_MS: u64 = 253_402_300_799_999;

/// A moment on the server's one time line, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(u64);

/// A duration in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

impl Timestamp {
    /// The Unix epoch, before every other moment.
    pub const ZERO: Self = Self(0);
    /// The end of the year 9999, after every other moment.
    pub const MAX: Self = Self(LAST_MS);

    /// The moment `ms` milliseconds after the Unix epoch, or [`Timestamp::MAX`] if that is earlier.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        if ms > LAST_MS { Self::MAX } else { Self(ms) }
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// The moment `span` later, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self::from_ms(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was, zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A duration of `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// The duration in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// Whether this is no time at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}
