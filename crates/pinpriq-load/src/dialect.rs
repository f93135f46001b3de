//! How a load generator phrases its requests: the interface between the loop and a protocol.

use crate::plan::Step;

/// The most bytes of the proof of a lease.
pub const TOKEN_BYTES_MAX: usize = 64;

/// What came with a taken task and must be returned with it: a receipt or an id. Stored inline.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    bytes: [u8; TOKEN_BYTES_MAX],
    length: u8,
}

impl Token {
    /// An empty token.
    #[must_use]
    pub const fn empty() -> Self {
        Self { bytes: [0; TOKEN_BYTES_MAX], length: 0 }
    }

    /// Stores `bytes`. Refuses more than [`TOKEN_BYTES_MAX`].
    pub fn set(&mut self, bytes: &[u8]) -> Result<(), String> {
        let room = self.bytes.get_mut(..bytes.len());
        let (Some(room), Ok(length)) = (room, u8::try_from(bytes.len())) else {
            return Err(format!("a receipt of {} bytes", bytes.len()));
        };
        room.copy_from_slice(bytes);
        self.length = length;
        Ok(())
    }

    /// Whether nothing is stored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the stored bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// The subject of a request. A slot has one request under way at a time.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The queue, counted from 0.
    pub queue: u32,
    /// The priority of the task to be put, counted from 0.
    pub priority: u32,
    /// The member of the topic, counted from 0.
    pub member: u32,
    /// The token of the last take. Empty before the first one, and once a [`Step::DoneTake`] has
    /// finished its task and found no other.
    pub token: Token,
    /// The queue of that task, counted from 0.
    pub token_queue: u32,
}

/// The front of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<'a> {
    /// The beginning of an answer, but not all of it.
    Incomplete,
    /// An answer.
    Whole {
        /// The meaning of the answer.
        outcome: Outcome<'a>,
        /// The number of bytes of the answer.
        length: usize,
    },
}

/// The meaning of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// The request was done.
    Done,
    /// There was nothing to take.
    Empty,
    /// The request was refused, with this sentence.
    Refused(&'a [u8]),
}

/// A protocol. Requests of one connection are answered in order, with one answer each.
pub trait Dialect {
    /// Returns what a connection sends first, and the number of line ends in the answers to it.
    fn opening(&self) -> (Vec<u8>, usize) {
        (Vec::new(), 0)
    }

    /// Appends a request.
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>);

    /// Looks for the answer to a request at the front of `bytes`, and stores in the slot what later
    /// requests need. The error describes an answer that should never come.
    fn answer<'a>(
        &mut self,
        step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String>;
}

#[cfg(test)]
mod tests {
    use super::{TOKEN_BYTES_MAX, Token};

    #[test]
    fn a_token_is_what_was_set_last() {
        let mut token = Token::empty();
        assert_eq!((token.bytes(), token.is_empty()), (&b""[..], true));
        token.set(&[b'x'; TOKEN_BYTES_MAX]).unwrap();
        token.set(b"3-1-2").unwrap();
        assert_eq!((token.bytes(), token.is_empty()), (&b"3-1-2"[..], false));
        assert!(token.set(&[b'x'; TOKEN_BYTES_MAX + 1]).is_err());
    }
}
