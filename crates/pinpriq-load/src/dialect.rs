//! How a load generator says what it wants: the seam between the loop and a protocol.

use crate::plan::Step;

/// How long the proof of a lease may be.
pub const TOKEN_BYTES_MAX: usize = 64;

/// What came with a taken task and must be given back with it: a receipt, an id. Kept in place.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    bytes: [u8; TOKEN_BYTES_MAX],
    length: u8,
}

impl Token {
    /// None.
    #[must_use]
    pub const fn empty() -> Self {
        Self { bytes: [0; TOKEN_BYTES_MAX], length: 0 }
    }

    /// Remembers `bytes`. Refuses more than [`TOKEN_BYTES_MAX`].
    pub fn set(&mut self, bytes: &[u8]) -> Result<(), String> {
        let room = self.bytes.get_mut(..bytes.len());
        let (Some(room), Ok(length)) = (room, u8::try_from(bytes.len())) else {
            return Err(format!("a receipt of {} bytes", bytes.len()));
        };
        room.copy_from_slice(bytes);
        self.length = length;
        Ok(())
    }

    /// What was remembered.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// What a request is about. A slot has one request under way at a time.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Which queue, counted from 0.
    pub queue: u32,
    /// Which priority the task to be put has, counted from 0.
    pub priority: u32,
    /// Which member of the topic, counted from 0.
    pub member: u32,
    /// What the last take gave.
    pub token: Token,
}

/// What the front of the received bytes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<'a> {
    /// A proper beginning, and no more than that.
    Incomplete,
    /// An answer.
    Whole {
        /// What it says.
        outcome: Outcome<'a>,
        /// How many bytes it takes up.
        length: usize,
    },
}

/// What an answer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// It was done.
    Done,
    /// There was nothing to take.
    Empty,
    /// It was refused, with this sentence.
    Refused(&'a [u8]),
}

/// The words of a protocol. Requests of one connection are answered in order, one answer each.
pub trait Dialect {
    /// What a connection says first, and how many line ends its answers have.
    fn opening(&self) -> (Vec<u8>, usize) {
        (Vec::new(), 0)
    }

    /// Appends a request.
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>);

    /// Looks for the answer to such a request at the front of `bytes`, and keeps in the slot what
    /// later requests need. The error says what is wrong with an answer that should never come.
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
        assert_eq!(token.bytes(), b"");
        token.set(&[b'x'; TOKEN_BYTES_MAX]).unwrap();
        token.set(b"3-1-2").unwrap();
        assert_eq!(token.bytes(), b"3-1-2");
        assert!(token.set(&[b'x'; TOKEN_BYTES_MAX + 1]).is_err());
    }
}
