//! Greetings and proofs on a socket: whether the other side is a node of this cluster.
//!
//! How long that may take is up to the caller.

use std::hash::{BuildHasher as _, RandomState};
use std::io;

use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::links::frame::{
    Greeting, Meeting, Opener, PROOF_BYTES, Sealer, Secret, Side, Unwelcome, VERSIONS, Versions,
};

/// Why there is no connection to a node.
#[derive(Debug, Error)]
pub(super) enum Trouble {
    /// It is not one that is talked to.
    #[error(transparent)]
    Unwelcome(#[from] Unwelcome),
    /// It did not answer in time.
    #[error("it does not answer")]
    Late,
    /// It cannot be reached, or has closed the connection.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// What a node says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Own {
    pub(super) instance: u128,
    pub(super) versions: Versions,
}

impl Own {
    pub(super) const fn new(instance: u128) -> Self {
        Self { instance, versions: VERSIONS }
    }
}

/// What was agreed with another node.
pub(super) struct Agreed {
    /// The other node.
    pub(super) instance: u128,
    /// The version of everything that follows.
    pub(super) version: u16,
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
}

/// Greets the node that was dialed, which must be this one.
pub(super) async fn greet_acceptor(
    stream: &mut TcpStream,
    secret: &Secret,
    own: Own,
    expected: u128,
) -> Result<Agreed, Trouble> {
    let dialer = new_greeting(own);
    stream.write_all(&dialer.encode()).await?;
    let (acceptor, version) = read_greeting(stream, own).await??;
    if acceptor.instance != expected {
        return Err(Unwelcome::Instance(acceptor.instance).into());
    }
    let meeting = Meeting::of(secret, &dialer, &acceptor);
    // It is sent in any case, so that both sides learn whose secret is wrong.
    stream.write_all(&meeting.proof(Side::Dialer)).await?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await?;
    meeting.check(Side::Acceptor, &proof)?;
    let (sealer, opener) = meeting.into_frames(Side::Dialer);
    Ok(Agreed { instance: acceptor.instance, version, sealer, opener })
}

/// Greets whoever has connected. Returns which node it is.
pub(super) async fn greet_dialer(
    stream: &mut TcpStream,
    secret: &Secret,
    own: Own,
) -> Result<Agreed, Trouble> {
    let greeted = read_greeting(stream, own).await?;
    let acceptor = new_greeting(own);
    if let Err(Unwelcome::Versions { .. }) = greeted {
        // So that the other side learns it too. Closing a socket with unread input would destroy
        // what was written.
        stream.write_all(&acceptor.encode()).await?;
        stream.shutdown().await?;
        let mut rest = [0; 256];
        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    }
    let (dialer, version) = greeted?;
    let meeting = Meeting::of(secret, &dialer, &acceptor);
    let mut answer = acceptor.encode().to_vec();
    answer.extend_from_slice(&meeting.proof(Side::Acceptor));
    stream.write_all(&answer).await?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await?;
    meeting.check(Side::Dialer, &proof)?;
    let (sealer, opener) = meeting.into_frames(Side::Acceptor);
    Ok(Agreed { instance: dialer.instance, version, sealer, opener })
}

/// Reads a greeting, and returns it with the version that is spoken after it.
async fn read_greeting(
    stream: &mut TcpStream,
    own: Own,
) -> io::Result<Result<(Greeting, u16), Unwelcome>> {
    let mut start = [0; Greeting::START_BYTES];
    stream.read_exact(&mut start).await?;
    let greeted = Greeting::decode_start(&start);
    let agreed = greeted.and_then(|theirs| Ok((theirs, own.versions.common(theirs)?)));
    let (theirs, version) = match agreed {
        Ok(agreed) => agreed,
        Err(unwelcome) => return Ok(Err(unwelcome)),
    };
    let mut rest = [0; Greeting::BYTES - Greeting::START_BYTES];
    stream.read_exact(&mut rest).await?;
    Ok(Ok((Greeting::decode(theirs, &rest), version)))
}

/// Returns a greeting that is different from all before. The keys of the hashes come from the
/// random numbers of the system, and change from one to the next.
fn new_greeting(Own { instance, versions }: Own) -> Greeting {
    let mut fresh = [0; 32];
    for (place, part) in fresh.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&RandomState::new().hash_one((instance, place)).to_le_bytes());
    }
    Greeting { versions, instance, fresh }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Own, new_greeting};

    #[test]
    fn no_two_greetings_are_the_same() {
        let numbers: BTreeSet<[u8; 32]> =
            (0..1_000).map(|_| new_greeting(Own::new(1)).fresh).collect();
        assert_eq!(numbers.len(), 1_000);
        let parts: BTreeSet<&[u8]> = numbers.iter().flat_map(|number| number.chunks(8)).collect();
        assert_eq!(parts.len(), 4_000);
    }
}
