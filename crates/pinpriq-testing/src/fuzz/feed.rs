//! Bytes of an input, taken one after another to make choices.
//!
//! An input that ends early counts as followed by zeros, so that no input is refused and a short
//! one means something simple.

/// The rest of an input.
#[derive(Clone, Debug)]
pub(crate) struct Feed<'a> {
    rest: &'a [u8],
}

impl<'a> Feed<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the rest.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *byte
    }

    /// Returns the number in two bytes, the higher one first.
    pub(crate) fn pair(&mut self) -> usize {
        let high = self.byte();
        usize::from(u16::from_be_bytes([high, self.byte()]))
    }

    /// Returns a number less than `bound`, which must be at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if bound <= 256 { usize::from(self.byte()) % bound } else { self.pair() % bound }
    }

    /// Returns this number of bytes, or fewer if no more are left.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        bytes
    }
}
