//! What carries the bytes of every connection, and what can go wrong with it. Knows RESP, since
//! most connections speak it, but no commands.

mod buffer;
mod line;
mod replies;

use std::fmt;
use std::io;

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

pub(crate) use buffer::Buffer;
pub(crate) use line::Line;
pub(crate) use replies::Replies;

/// A socket, plain or encrypted.
pub(crate) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Why there is no reply. It is unknown whether the request was carried out.
#[derive(Debug)]
pub enum Lost {
    /// The connection broke, or the server exceeded the time limit.
    Broken(io::Error),
    /// The server closed the connection in order.
    Closed,
    /// The server closed the connection in the middle of a frame.
    CutShort,
    /// The server sent something that is not of its protocol, or too long.
    Malformed(String),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => error.fmt(f),
            Self::Closed => f.write_str("the server closed the connection"),
            Self::CutShort => f.write_str("the server closed the connection in a frame"),
            Self::Malformed(malformed) => f.write_str(malformed),
        }
    }
}

impl std::error::Error for Lost {}
