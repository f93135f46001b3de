//! The socket of a connection, which may be encrypted.

use std::io;
use std::net::TcpStream as StdStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pinpriq_tls::{Fingerprint, common_name, fingerprint};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::side::{HandshakeError, Side};

/// A socket. Without encryption it only passes bytes on.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    side: Option<Box<Side>>,
}

/// A socket on its way from one thread to another.
#[derive(Debug)]
pub(crate) struct Carried {
    stream: StdStream,
    side: Option<Box<Side>>,
}

impl Socket {
    /// Returns a socket that is not encrypted.
    pub(crate) const fn plain(stream: TcpStream) -> Self {
        Self { stream, side: None }
    }

    /// Carries out a handshake with the side that has connected, and returns a socket that is
    /// encrypted.
    pub(crate) async fn shake(
        stream: TcpStream,
        config: Arc<ServerConfig>,
    ) -> Result<Self, HandshakeError> {
        let side = Side::shake(&stream, ServerConnection::new(config)?.into()).await?;
        Ok(Self { stream, side: Some(Box::new(side)) })
    }

    /// Does the same with the side that was connected to, which is not known by its name.
    pub(crate) async fn shake_as_client(
        stream: TcpStream,
        config: Arc<ClientConfig>,
    ) -> Result<Self, HandshakeError> {
        let name = ServerName::from(stream.peer_addr()?.ip());
        let side = Side::shake(&stream, ClientConnection::new(config, name)?.into()).await?;
        Ok(Self { stream, side: Some(Box::new(side)) })
    }

    /// Prepares the socket for another thread.
    pub(crate) fn carry(self) -> io::Result<Carried> {
        Ok(Carried { stream: self.stream.into_std()?, side: self.side })
    }

    /// Whether it is encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.side.is_some()
    }

    /// Returns the common name of the client's certificate, if it has shown one: empty unless there
    /// is exactly one.
    pub(crate) fn common_name(&self) -> Option<Arc<str>> {
        let certificate = self.side.as_ref()?.certificate()?;
        Some(common_name(certificate).unwrap_or_default().into())
    }

    /// Returns the fingerprint of the other side's certificate, if it has shown one.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.side.as_ref()?.certificate().map(fingerprint)
    }

    /// Returns what is below the encryption: events are its own, and bytes may be discarded there.
    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Hands bytes to the socket. Returns how many at the front of `bytes` it has taken. The others
    /// must be at the front again the next time.
    #[inline]
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.side {
            None => self.stream.try_write(bytes),
            Some(side) => side.try_write(&self.stream, bytes),
        }
    }

    /// Ends an encryption in order, if nothing is on its way.
    pub(crate) fn close(&mut self) {
        if let Some(side) = &mut self.side {
            side.close(&self.stream);
        }
    }

    /// Whether there are bytes that the encryption wants to send, whatever the server sends.
    #[inline]
    pub(crate) fn wants_write(&self) -> bool {
        self.side.as_ref().is_some_and(|side| side.wants_write())
    }

    /// Hands those bytes to the socket as far as it takes them.
    #[inline]
    pub(crate) fn write_own(&mut self) -> io::Result<()> {
        let Some(side) = &mut self.side else { return Ok(()) };
        match side.flush(&self.stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            flushed => flushed,
        }
    }
}

impl Carried {
    /// Returns the socket, for this thread.
    pub(crate) fn arrive(self) -> io::Result<Socket> {
        Ok(Socket { stream: TcpStream::from_std(self.stream)?, side: self.side })
    }
}

impl AsyncRead for Socket {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, side } = &mut *self;
        match side {
            None => Pin::new(stream).poll_read(task, buffer),
            Some(side) => side.poll_read(stream, task, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, side } = &mut *self;
        match side {
            None => Pin::new(stream).poll_write(task, bytes),
            Some(side) => side.poll_write(stream, task, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, side } = &mut *self;
        let Some(side) = side else {
            return Pin::new(stream).poll_write_vectored(task, pieces);
        };
        let first = pieces.iter().find(|piece| !piece.is_empty());
        side.poll_write(stream, task, first.map_or(&[], |piece| piece))
    }

    fn is_write_vectored(&self) -> bool {
        self.side.is_none() && self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, side } = &mut *self;
        match side {
            None => Pin::new(stream).poll_flush(task),
            Some(side) => side.poll_flush(stream, task),
        }
    }

    /// Ends the sending side, encrypted or not.
    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, side } = &mut *self;
        if let Some(side) = side {
            ready!(side.poll_close(stream, task))?;
        }
        Pin::new(stream).poll_shutdown(task)
    }
}
