//! A number of 128 bits where every byte of memory counts.

/// A number of 128 bits that needs no more room than its bytes: a `u128` has to begin at a multiple
/// of sixteen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Wide {
    high: u64,
    low: u64,
}

impl Wide {
    pub(super) const ZERO: Self = Self { high: 0, low: 0 };

    /// A number that is in the same order with others as these are.
    pub(super) fn of_signed(number: i128) -> Self {
        (number.cast_unsigned() ^ (1 << 127)).into()
    }

    /// The sum, or the highest number if that is beyond it.
    #[inline]
    pub(super) fn plus(self, more: u64) -> Self {
        u128::from(self).saturating_add(more.into()).into()
    }

    /// The difference, or zero if that is below it.
    #[inline]
    pub(super) fn minus(self, less: u64) -> Self {
        u128::from(self).saturating_sub(less.into()).into()
    }
}

impl From<u128> for Wide {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
    #[inline]
    fn from(number: u128) -> Self {
        Self { high: (number >> 64) as u64, low: number as u64 }
    }
}

impl From<Wide> for u128 {
    #[inline]
    fn from(wide: Wide) -> Self {
        (Self::from(wide.high) << 64) | Self::from(wide.low)
    }
}
