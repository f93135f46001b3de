//! What a door is: a protocol on one connection.

use super::desk::Desk;
use crate::clients::about::Manners;
use crate::clients::ending::{Ending, SPEAKS_TLS, TLS_BEGINS};
use crate::config::DoorName;
use crate::session::outbox::Encode;

/// A protocol on one connection. [`Encode`] is the other half, which turns replies into bytes.
pub(crate) trait Door: Encode {
    /// Decodes the request at the front of `input`, which must not be empty, and asks the desk for
    /// it.
    ///
    /// Returns the number of bytes that the request took, or what must happen first.
    fn receive(&mut self, input: &[u8], desk: &mut Desk) -> Result<usize, Next>;
}

/// A door that was opened for a client, and how it treats its clients. See `doors::DoorKind`.
pub(crate) struct Opened {
    pub(crate) name: DoorName,
    pub(crate) door: Box<dyn Door>,
    pub(crate) manners: Manners,
    pub(crate) redirects: bool,
    pub(crate) signs_in: bool,
    pub(crate) moves: bool,
    pub(crate) command_name: CommandName,
}

/// Returns the words of the command at this place of the table of commands, or nothing if none is
/// there.
pub(crate) type CommandName = fn(usize) -> String;

/// Refuses a client that speaks TLS where nothing is decrypted. No request begins like that.
pub(crate) fn refuse_tls(request: &[u8]) -> Result<(), Next> {
    if request.starts_with(&TLS_BEGINS) {
        return Err(Next::Close(Ending::Malformed, SPEAKS_TLS.to_owned()));
    }
    Ok(())
}

/// Why the request at the front of the input was not carried out, or is the last one.
#[derive(Debug)]
pub(crate) enum Next {
    /// More bytes are needed.
    Incomplete,
    /// The request waits for room.
    NoRoom,
    /// The request waits until the client is no longer blocked.
    Blocked,
    /// The connection must move to this shard.
    Move(usize),
    /// The connection ends for this reason once all replies are sent.
    Close(Ending, String),
}
