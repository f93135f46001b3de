//! What two nodes of a cluster write on a connection: a greeting, a proof, and frames.
//!
//! Both nodes know the secret of their cluster. Each greets with the versions that it speaks, its
//! instance and a number that was never used before, and proves that it knows the secret by an
//! HMAC-SHA256 over both greetings. They speak the highest version that both know, and nobody in
//! between can make them speak another one. The keys of the two directions are made in the same
//! way, so they belong to this connection alone. From then on every frame carries an HMAC over its
//! number and its body. Nobody without the secret can write a frame, change or repeat one, leave
//! one out or change their order.
//!
//! This is no encryption: whoever can read the network can read everything. Nor can a connection be
//! kept from breaking.
//!
//! | | bytes |
//! |---|---|
//! | greeting | `pinpriq` and a zero, newest and oldest version (2, 2), instance (16), fresh (32) |
//! | proof | HMAC (32) |
//! | frame | length of the body (4), body, first half of the HMAC (16) |
//!
//! The dialer greets. The acceptor answers with its greeting and its proof, and the dialer sends
//! its proof. Numbers are little-endian. A frame without a body says that the node lives. Nothing
//! here reads or writes a socket.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;

/// The secret of a cluster.
pub(crate) type Secret = [u8; 32];

/// Proves that a node knows the secret.
pub(crate) type Proof = [u8; PROOF_BYTES];

/// The length of a proof.
pub(crate) const PROOF_BYTES: usize = 32;

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
/// are released, so that nodes can be replaced one after the other. Letters have tags since version
/// 2.
pub(crate) const VERSIONS: Versions = Versions { newest: 2, oldest: 2 };

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

/// The bytes after a body.
const TAG_BYTES: usize = 16;

/// Keeps what is made of the secret here apart from what is made of it elsewhere.
const DOMAIN: &[u8] = b"pinpriq link";

/// Why the other side is not talked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Unwelcome {
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
    /// Its proof is wrong.
    #[error("it has another secret, so it belongs to another cluster")]
    Secret,
    /// It is another node than the one that was dialed.
    #[error("the instance {0:032x} answers there")]
    Instance(u128),
}

/// Why no further frame can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum BadFrame {
    /// It would be longer than any frame may be.
    #[error("a frame claims to have {0} bytes")]
    TooLong(usize),
    /// It was changed, repeated or made up, or the one before it is missing.
    #[error("a frame is not the one that was sent")]
    Forged,
}

/// Which side of a connection a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// It has opened the connection.
    Dialer,
    /// It has accepted the connection.
    Acceptor,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Acceptor,
            Self::Acceptor => Self::Dialer,
        }
    }
}

/// What a node says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Greeting {
    /// What it speaks.
    pub(crate) versions: Versions,
    /// The node, since its latest registration.
    pub(crate) instance: u128,
    /// A number that no other greeting has. It need not be secret.
    pub(crate) fresh: [u8; 32],
}

impl Greeting {
    /// The bytes of a greeting that are the same in every version.
    pub(crate) const START_BYTES: usize = 12;
    /// The bytes of a greeting.
    pub(crate) const BYTES: usize = Self::START_BYTES + 48;

    /// Returns its bytes.
    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.versions.newest.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.versions.oldest.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.instance.to_le_bytes());
        bytes[28..].copy_from_slice(&self.fresh);
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
        let (mut instance, mut fresh) = ([0; 16], [0; 32]);
        instance.copy_from_slice(&rest[..16]);
        fresh.copy_from_slice(&rest[16..]);
        Self { versions, instance: u128::from_le_bytes(instance), fresh }
    }
}

/// What two nodes that have greeted each other make of the secret.
pub(crate) struct Meeting(Hmac<Sha256>);

/// What is made of the secret and both greetings. The number keeps them apart.
#[derive(Clone, Copy)]
enum Purpose {
    Proof = 0,
    Key = 2,
}

impl Meeting {
    /// Returns what a dialer and an acceptor with these greetings make of the secret.
    pub(crate) fn of(secret: &Secret, dialer: &Greeting, acceptor: &Greeting) -> Self {
        let greetings = keyed(secret).chain_update(DOMAIN);
        Self(greetings.chain_update(dialer.encode()).chain_update(acceptor.encode()))
    }

    fn derive(&self, purpose: Purpose, side: Side) -> Hmac<Sha256> {
        let side = match side {
            Side::Dialer => 0,
            Side::Acceptor => 1,
        };
        self.0.clone().chain_update([purpose as u8 | side])
    }

    /// Returns the proof of this side.
    pub(crate) fn proof(&self, side: Side) -> Proof {
        self.derive(Purpose::Proof, side).finalize().into_bytes().into()
    }

    /// Checks the proof of this side, in a time that does not depend on it.
    pub(crate) fn check(&self, side: Side, proof: &Proof) -> Result<(), Unwelcome> {
        let proven = self.derive(Purpose::Proof, side).verify_slice(proof);
        proven.map_err(|_| Unwelcome::Secret)
    }

    /// Returns what this side needs to write frames, and to read those of the other side.
    pub(crate) fn into_frames(self, own: Side) -> (Sealer, Opener) {
        let key = |side| keyed(&self.derive(Purpose::Key, side).finalize().into_bytes().into());
        let sealer = Sealer { key: key(own), number: 0 };
        (sealer, Opener { key: key(own.other()), number: 0 })
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let Ok(keyed) = Hmac::new_from_slice(key) else { unreachable!("a key may have any length") };
    keyed
}

/// Returns the HMAC of a frame, unfinished.
fn tag_of(key: &Hmac<Sha256>, number: u64, body: &[u8]) -> Hmac<Sha256> {
    key.clone().chain_update(number.to_le_bytes()).chain_update(body)
}

/// Writes the frames of one direction.
pub(crate) struct Sealer {
    key: Hmac<Sha256>,
    number: u64,
}

impl Sealer {
    /// Appends a frame. Refuses a body that is longer than [`BODY_BYTES_MAX`].
    pub(crate) fn seal(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), BadFrame> {
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= BODY_BYTES_MAX);
        let length = length.ok_or(BadFrame::TooLong(body.len()))?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(body);
        let tag = tag_of(&self.key, self.number, body).finalize().into_bytes();
        out.extend_from_slice(&tag[..TAG_BYTES]);
        self.number += 1;
        Ok(())
    }
}

/// Reads the frames of one direction.
pub(crate) struct Opener {
    key: Hmac<Sha256>,
    number: u64,
}

impl Opener {
    /// Returns the length that the first frame in `input` claims for its body, if that has arrived.
    pub(crate) fn claimed_bytes(input: &[u8]) -> Option<usize> {
        input.first_chunk::<HEAD_BYTES>().map(|length| u32::from_le_bytes(*length) as usize)
    }

    /// Returns the body of the first frame in `input`, and the number of bytes of the frame.
    /// Returns `None` if the frame is not complete. After an error nothing more can be read.
    pub(crate) fn open<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<Option<(&'a [u8], usize)>, BadFrame> {
        let Some(length) = Self::claimed_bytes(input) else { return Ok(None) };
        if length > BODY_BYTES_MAX {
            return Err(BadFrame::TooLong(length));
        }
        let rest = &input[HEAD_BYTES..];
        let Some((body, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let Some((tag, _)) = rest.split_first_chunk::<TAG_BYTES>() else { return Ok(None) };
        let checked = tag_of(&self.key, self.number, body).verify_truncated_left(tag);
        checked.map_err(|_| BadFrame::Forged)?;
        self.number += 1;
        Ok(Some((body, HEAD_BYTES + length + TAG_BYTES)))
    }
}

#[cfg(test)]
mod tests;
