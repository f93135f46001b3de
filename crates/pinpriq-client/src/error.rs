//! What can go wrong with a request.

use thiserror::Error;

use crate::options::BadAddress;

/// Why a request has no result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused: a correct answer that says no. Nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The address of the server makes no sense.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// There was no reply: no connection could be made, or it broke, or the server was silent for
    /// too long. A request that is safe to repeat was sent again before, for
    /// [`Options::retry_for`](crate::Options::retry_for).
    #[error("no reply from {server}: {why}")]
    Disconnected {
        /// The host and the port of the server.
        server: String,
        /// What happened to the connection.
        why: String,
    },
    /// The server sent a reply that this command never gets, so it is no pinpriq server, or a newer
    /// one.
    #[error("the reply to {command} is not one of pinpriq: {reply}")]
    Unexpected {
        /// The command.
        command: String,
        /// The beginning of the reply.
        reply: String,
    },
}

impl Error {
    /// Returns the refusal, if it is one.
    #[must_use]
    pub const fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }

    /// Whether the server refused with this code.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        self.refused().is_some_and(|refused| refused.code == code)
    }
}

/// A refusal of the server.
///
/// `docs/protocol/resp.md` lists the codes under "Refusals". Those that programs meet most are
/// `STALE` (the lease has ended, so drop the work), `FULL` (the queue is at its capacity),
/// `EXISTS`, `NOTFOUND`, `PAUSED` and `BUSY`.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{code} {message}")]
#[non_exhaustive]
pub struct Refused {
    /// The first word, for programs.
    pub code: String,
    /// The sentence after it, for people. It may change.
    pub message: String,
    /// Whether the request was sent more than once, so that an earlier sending, whose reply was
    /// lost, may have been carried out.
    pub repeated: bool,
}

impl Refused {
    /// Returns the refusal that an error reply is.
    pub(crate) fn of(text: &str, repeated: bool) -> Self {
        let (code, message) = text.split_once(' ').unwrap_or((text, ""));
        Self { code: code.to_owned(), message: message.to_owned(), repeated }
    }
}
