//! What carries the bytes of every connection, and what can go wrong with it. Knows RESP, since
//! most connections speak it, but no commands.

mod buffer;
mod line;
mod replies;

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
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The connection broke, or the server exceeded the time limit.
    #[error(transparent)]
    Broken(#[from] io::Error),
    /// The server closed the connection in order.
    #[error("the server closed the connection")]
    Closed,
    /// The server closed the connection in the middle of a frame.
    #[error("the server closed the connection in a frame")]
    CutShort,
    /// The server sent something that is not of its protocol, or too long.
    #[error("{0}")]
    Malformed(String),
}
