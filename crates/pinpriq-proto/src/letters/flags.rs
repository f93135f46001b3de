//! Small choices packed into one number, which comes before the fields that they describe.
//!
//! They are read in the order in which they were added. Add those first that are most often not 0,
//! since zeroes at the end take no room. This module knows nothing about the meaning of a choice.

use crate::records::primitives::{put_number, take_number};

use crate::letters::Malformed;

/// Collects choices.
#[derive(Default)]
pub(crate) struct Packed {
    bits: u64,
    used: u32,
}

/// Reads choices.
pub(crate) struct Packing {
    bits: u64,
}

impl Packed {
    /// Adds a choice that fits in `bits` bits.
    #[inline]
    pub(crate) fn code(&mut self, bits: u32, code: u8) {
        debug_assert!(u32::from(code) < 1 << bits, "{code} takes more than {bits} bits");
        self.bits |= u64::from(code) << self.used;
        self.used += bits;
    }

    /// Adds a choice between two.
    #[inline]
    pub(crate) fn flag(&mut self, flag: bool) {
        self.code(1, u8::from(flag));
    }

    /// Appends all choices.
    #[inline]
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        put_number(out, self.bits);
    }
}

impl Packing {
    #[inline]
    pub(crate) fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self { bits: take_number(input)? })
    }

    /// Reads the next choice, which has `bits` bits.
    #[inline]
    pub(crate) fn code(&mut self, bits: u32) -> u8 {
        let mask = (1_u64 << bits) - 1;
        #[expect(clippy::cast_possible_truncation, reason = "a choice has fewer than eight bits")]
        let code = (self.bits & mask) as u8;
        self.bits >>= bits;
        code
    }

    /// Reads the next choice between two.
    #[inline]
    pub(crate) fn flag(&mut self) -> bool {
        self.code(1) != 0
    }

    /// Checks that all choices were read.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.bits == 0 { Ok(()) } else { Err(Malformed::OutOfRange("flags")) }
    }
}
