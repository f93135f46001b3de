//! What two nodes of a cluster write on an encrypted connection: a greeting each, and frames.
//!
//! TLS 1.3 has made sure of the key of the other side, and no other can read or change what
//! follows. Each node says which versions it speaks, which instance it is, and which one it takes
//! the other for; they speak the highest version that both know. The one that accepts compares the
//! certificate that it has seen with the record of that instance, and answers only if it is the
//! right one.
//!
//! | | bytes |
//! |---|---|
//! | greeting | `pinpriq` and a zero, newest and oldest version (2, 2), two instances (16, 16) |
//! | frame | length of the body (4), body |
//!
//! The dialer greets, and the acceptor answers with its greeting. Numbers are little-endian. A
//! frame without a body says that the node lives. Nothing here reads or writes a socket.

use std::fmt;

use thiserror::Error;

/// The most bytes that a body may have: 16 MiB of letters, and what is around them.
pub(crate) const BODY_BYTES_MAX: usize = (16 << 20) + (1 << 20);

/// The versions of what follows the greetings that a node can speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Versions {
    /// The newest one.
    pub(crate) newest: u16,
    /// The oldest one.
    pub(crate) oldest: u16,
}

/// The versions that this node speaks. The oldest is the one before the newest, once two of them
/// are released, so that nodes can be replaced one after the other. Commands and outputs have tags
/// since version 2, and what is around them since version 3.
pub(crate) const VERSIONS: Versions = Versions { newest: 3, oldest: 3 };

impl Versions {
    /// Returns the highest version that two nodes speak.
    pub(crate) fn common(self, theirs: Self) -> Result<u16, Unwelcome> {
        let highest = self.newest.min(theirs.newest);
        if highest >= self.oldest.max(theirs.oldest) {
            Ok(highest)
        } else {
            Err(Unwelcome::Versions { theirs, own: self })
        }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { newest, oldest } = self;
        if newest == oldest { write!(f, "{newest}") } else { write!(f, "{oldest} to {newest}") }
    }
}

/// What every greeting begins with, in every version.
const MAGIC: [u8; 8] = *b"pinpriq\0";

/// The bytes before a body.
const HEAD_BYTES: usize = 4;

/// Why the other side is not talked to.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum Unwelcome {
    /// It does not encrypt.
    #[error("it does not encrypt: it is no node of a cluster, or one of an older version")]
    Plain,
    /// Its first bytes are no greeting.
    #[error("it is no node of a cluster")]
    Stranger,
    /// It speaks none of our versions.
    #[error(
        "it speaks version {theirs} of links, and this node speaks version {own}: upgrade the node \
         with the lower one, by one release at a time"
    )]
    Versions {
        /// What it speaks.
        theirs: Versions,
        /// What this node speaks.
        own: Versions,
    },
    /// The registry does not know what it says that it is.
    #[error("it says that it is the instance {0:032x}, and the registry has no record of that")]
    Unknown(u128),
    /// The record of the node does not say which certificate it has.
    #[error(
        "the record of {node} in the registry has no fingerprint of its certificate, so it is of a \
         version that does not encrypt links: upgrade it"
    )]
    NoFingerprint {
        /// The name of the node.
        node: String,
    },
    /// Its certificate is not the one that the node has.
    #[error("its certificate is not the one in the record of {node}: it is not that node")]
    Certificate {
        /// The name of the node.
        node: String,
    },
    /// It is another node than the one that was dialed.
    #[error("the instance {0:032x} answers there")]
    Instance(u128),
    /// It has dialed another node than this one.
    #[error("it seeks the instance {0:032x}")]
    Seeks(u128),
}

/// A frame cannot be written or read, since it would be longer than any may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a frame claims to have {0} bytes")]
pub(crate) struct TooLong(pub(crate) usize);

/// What a node says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Greeting {
    /// What it speaks.
    pub(crate) versions: Versions,
    /// The node, since its latest registration.
    pub(crate) instance: u128,
    /// Which one it takes the other side for.
    pub(crate) other: u128,
}

impl Greeting {
    /// The bytes of a greeting that are the same in every version.
    pub(crate) const START_BYTES: usize = 12;
    /// The bytes of a greeting.
    pub(crate) const BYTES: usize = Self::START_BYTES + 32;

    /// Returns its bytes.
    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.versions.newest.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.versions.oldest.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.instance.to_le_bytes());
        bytes[28..].copy_from_slice(&self.other.to_le_bytes());
        bytes
    }

    /// Reads the start of a greeting: what the other side speaks.
    pub(crate) fn decode_start(start: &[u8; Self::START_BYTES]) -> Result<Versions, Unwelcome> {
        let [magic @ .., n0, n1, o0, o1] = start;
        if *magic != MAGIC {
            return Err(Unwelcome::Stranger);
        }
        let newest = u16::from_le_bytes([*n0, *n1]);
        Ok(Versions { newest, oldest: u16::from_le_bytes([*o0, *o1]) })
    }

    /// Reads what follows the start.
    pub(crate) fn decode(versions: Versions, rest: &[u8; Self::BYTES - Self::START_BYTES]) -> Self {
        let (mut instance, mut other) = ([0; 16], [0; 16]);
        instance.copy_from_slice(&rest[..16]);
        other.copy_from_slice(&rest[16..]);
        let [instance, other] = [instance, other].map(u128::from_le_bytes);
        Self { versions, instance, other }
    }
}

/// Appends a frame. Refuses a body that is longer than [`BODY_BYTES_MAX`].
pub(crate) fn put_frame(body: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= BODY_BYTES_MAX);
    let length = length.ok_or(TooLong(body.len()))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(body);
    Ok(())
}

/// Returns the length that the first frame in `input` claims for its body, if that has arrived.
pub(crate) fn claimed_bytes(input: &[u8]) -> Option<usize> {
    input.first_chunk::<HEAD_BYTES>().map(|length| u32::from_le_bytes(*length) as usize)
}

/// Returns the body of the first frame in `input`, and the number of bytes of the frame. Returns
/// `None` if the frame is not complete. After an error nothing more can be read.
pub(crate) fn take_frame(input: &[u8]) -> Result<Option<(&[u8], usize)>, TooLong> {
    match claimed_bytes(input) {
        Some(length) if length > BODY_BYTES_MAX => Err(TooLong(length)),
        length => Ok(length.and_then(|length| {
            let body = input.get(HEAD_BYTES..HEAD_BYTES + length)?;
            Some((body, HEAD_BYTES + length))
        })),
    }
}

#[cfg(test)]
mod tests;
