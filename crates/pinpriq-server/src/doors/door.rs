//! What a door is: a protocol on one connection.

use crate::home::desk::Desk;
use crate::session::ending::Ending;
use crate::session::outbox::Encode;

/// See the head of this file. [`Encode`] is the other half: replies become bytes.
pub(crate) trait Door: Encode {
    /// Decodes the request at the front of `input`, which is not empty, and asks the desk for it.
    /// Returns how many bytes it took, or what is to happen before anything else.
    fn receive(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next>;
}

/// Why the request at the front of the input was not carried out, or is the last.
#[derive(Debug)]
pub(crate) enum Next {
    /// More bytes are needed.
    Incomplete,
    /// It waits for room.
    NoRoom,
    /// This shard is to have the connection.
    Move(usize),
    /// The connection ends once what was answered is sent, for this reason.
    Close(Ending, String),
}
