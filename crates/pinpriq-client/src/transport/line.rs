//! A connection: it sends bytes, and buffers received bytes until they are used.

use std::io;
use std::time::Duration;

use pinpriq_proto::wire::resp::Value;
use pinpriq_tls::Peer;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Buffer, Lost, Replies, Stream};
use crate::clock::within;

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    stream: Stream,
    buffer: Buffer,
    /// How long nothing may arrive while something is waited for.
    limit: Option<Duration>,
}

impl Line {
    /// Returns a connection over a socket, from either of its ends.
    pub(crate) fn over(stream: TcpStream) -> Self {
        // A request is often followed by waiting for its reply, so a delay gains nothing.
        let _ = stream.set_nodelay(true);
        Self { stream: Stream::Left(stream), buffer: Buffer::default(), limit: None }
    }

    /// Encrypts a connection on which nothing was sent yet, if the server is who it must be.
    pub(crate) async fn encrypt(self, server: &Peer) -> io::Result<Self> {
        let Stream::Left(stream) = self.stream else { return Ok(self) };
        let handshake = TlsConnector::from(server.config()).connect(server.name().clone(), stream);
        let stream = Stream::Right(Box::new(within(self.limit, handshake).await?));
        Ok(Self { stream, ..self })
    }

    /// Treats the connection as lost if nothing arrives, or can be sent, for this duration. Without
    /// a limit it waits forever.
    pub(crate) const fn limit_waiting(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Sends bytes, which may hold several requests.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = &mut self.stream;
        within(self.limit, async {
            stream.write_all(bytes).await?;
            stream.flush().await
        })
        .await
    }

    /// Ends the sending side of the connection.
    pub(crate) async fn end_input(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Returns the received bytes that were not used.
    pub(crate) fn unused(&self) -> &[u8] {
        self.buffer.unused()
    }

    /// Notes that this number of bytes at the front have been used.
    pub(crate) const fn note_used(&mut self, bytes: usize) {
        self.buffer.note_used(bytes);
    }

    /// Waits for more bytes after the unused ones. Returns false at the end of the stream.
    pub(crate) async fn receive(&mut self) -> io::Result<bool> {
        within(self.limit, self.buffer.fill(&mut self.stream)).await
    }

    /// Whether nothing has arrived that was not used, not even the end of the stream.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.buffer.fill(&mut self.stream) => false,
            () = std::future::ready(()) => self.unused().is_empty(),
        }
    }

    /// Returns the next reply of a RESP door, which may be a message that it sent by itself.
    pub(crate) async fn reply(&mut self, replies: &mut Replies) -> Result<Value, Lost> {
        loop {
            if let Some(value) = replies.next(&mut self.buffer)? {
                return Ok(value);
            }
            if !self.receive().await? {
                return Err(Lost::Closed);
            }
        }
    }

    /// Returns the socket and what was received.
    pub(crate) fn into_parts(self) -> (Stream, Buffer) {
        (self.stream, self.buffer)
    }
}
