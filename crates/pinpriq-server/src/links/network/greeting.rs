//! Handshakes and greetings on a socket: whether the other side is the node that it must be.
//!
//! How long that may take is up to the caller.

use std::io;
use std::sync::Arc;

use pinpriq_tls::is_other_node;
use rustls::{ClientConfig, ServerConfig};
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Record;
use crate::links::frame::{Greeting, Unwelcome, VERSIONS, Versions};
use crate::tls::side::HandshakeError;
use crate::tls::socket::Socket;

/// Why there is no connection to a node.
#[derive(Debug, Error)]
pub(super) enum Trouble {
    /// It is not one that is talked to.
    #[error(transparent)]
    Unwelcome(#[from] Unwelcome),
    /// The two do not agree on an encryption.
    #[error("the encryption fails: {0}")]
    Encryption(rustls::Error),
    /// It did not answer in time.
    #[error("it does not answer")]
    Late,
    /// It has ended the connection instead of an answer.
    #[error("it has closed the connection: its log says why if it does not accept this node")]
    Closed,
    /// It cannot be reached, or the connection broke.
    #[error(transparent)]
    Socket(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Socket(error),
        }
    }
}

impl From<HandshakeError> for Trouble {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Plain => Unwelcome::Plain.into(),
            HandshakeError::Closed
            | HandshakeError::Crowded
            | HandshakeError::Refused(rustls::Error::AlertReceived(_)) => Self::Closed,
            HandshakeError::Late => Self::Late,
            HandshakeError::Refused(error) => Self::Encryption(error),
            HandshakeError::Broken(error) => error.into(),
        }
    }
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
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) socket: Socket,
    /// The other node.
    pub(super) instance: u128,
    /// The version of everything that follows.
    pub(super) version: u16,
}

/// Greets the node that was dialed, which must be this one.
pub(super) async fn greet_acceptor(
    stream: TcpStream,
    config: Arc<ClientConfig>,
    own: Own,
    (expected, record): (u128, &Record),
) -> Result<Agreed, Trouble> {
    let mut socket = match Socket::shake_as_client(stream, config).await {
        Err(HandshakeError::Refused(error)) if is_other_node(&error) => {
            return Err(Unwelcome::Certificate { node: record.node.clone() }.into());
        }
        shaken => shaken?,
    };
    say(&mut socket, own, expected).await?;
    let (Greeting { instance, .. }, version) = read_greeting(&mut socket, own).await??;
    if instance != expected {
        return Err(Unwelcome::Instance(instance).into());
    }
    Ok(Agreed { socket, instance, version })
}

/// Greets a new connection, if it is the node that it says it is. `record_of` returns what the
/// registry knows of an instance.
pub(super) async fn greet_dialer(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    own: Own,
    record_of: impl AsyncFnOnce(u128) -> Option<Record>,
) -> Result<Agreed, Trouble> {
    let mut socket = Socket::shake(stream, config).await?;
    let greeted = read_greeting(&mut socket, own).await?;
    if let Err(Unwelcome::Versions { .. }) = greeted {
        // So that the other side learns it too. It sends nothing before it has the answer.
        say(&mut socket, own, 0).await?;
        socket.shutdown().await?;
    }
    let (Greeting { instance, other, .. }, version) = greeted?;
    let record = record_of(instance).await.ok_or(Unwelcome::Unknown(instance))?;
    let node = record.node;
    match record.fingerprint {
        None => return Err(Unwelcome::NoFingerprint { node }.into()),
        Some(right) if socket.fingerprint() != Some(right) => {
            return Err(Unwelcome::Certificate { node }.into());
        }
        Some(_) => {}
    }
    say(&mut socket, own, instance).await?;
    if other != own.instance {
        return Err(Unwelcome::Seeks(other).into());
    }
    Ok(Agreed { socket, instance, version })
}

async fn say(socket: &mut Socket, Own { instance, versions }: Own, other: u128) -> io::Result<()> {
    socket.write_all(&Greeting { versions, instance, other }.encode()).await?;
    socket.flush().await
}

/// Reads a greeting, and returns it with the version that is spoken after it.
async fn read_greeting(
    socket: &mut Socket,
    own: Own,
) -> io::Result<Result<(Greeting, u16), Unwelcome>> {
    let mut start = [0; Greeting::START_BYTES];
    socket.read_exact(&mut start).await?;
    let greeted = Greeting::decode_start(&start);
    let agreed = greeted.and_then(|theirs| Ok((theirs, own.versions.common(theirs)?)));
    let (theirs, version) = match agreed {
        Ok(agreed) => agreed,
        Err(unwelcome) => return Ok(Err(unwelcome)),
    };
    let mut rest = [0; Greeting::BYTES - Greeting::START_BYTES];
    socket.read_exact(&mut rest).await?;
    Ok(Ok((Greeting::decode(theirs, &rest), version)))
}
