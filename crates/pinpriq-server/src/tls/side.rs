//! Our side of one encrypted connection, as far as bytes go, between the socket and rustls.
//!
//! A bounded number of bytes is on its way here: at most [`PIECE_BYTES`] that we have given
//! to rustls, and what one read of the socket has brought.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::Connection;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::TcpStream;

/// How many bytes are encrypted before all of them have left.
const PIECE_BYTES: usize = 32 << 10;

/// How many bytes are read from a socket at a time if there is room for what they become.
const READ_BYTES: usize = 32 << 10;

/// How many are read otherwise. rustls takes them all at once.
const READ_BYTES_FEW: usize = 4 << 10;

/// The most bytes of one record. rustls may hold those of an incomplete one.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// How often a socket is read before others get their turn, if nothing comes of it.
const READS_MAX: usize = 16;

thread_local! {
    /// What was read from a socket, until rustls has it.
    static ENCRYPTED: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Our side of an encrypted connection.
pub(crate) struct Side {
    connection: Connection,
    /// How many bytes rustls was given that have not left yet.
    given: usize,
    /// Whether the client has ended its side.
    has_ended: bool,
    /// Whether the client knows that nothing more comes.
    is_closed: bool,
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").field("given", &self.given).finish_non_exhaustive()
    }
}

/// Why there is no encrypted connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The client does not encrypt.
    #[error("a client speaks plain text to a TLS port")]
    Plain,
    /// The client has gone.
    #[error("the client has closed the connection")]
    Closed,
    /// It took too long.
    #[error("it was not done in time")]
    Late,
    /// It was the oldest one, and others have begun.
    #[error("it made room for others before it was done")]
    Crowded,
    /// The two do not agree.
    #[error(transparent)]
    Refused(#[from] rustls::Error),
    /// The connection broke.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

impl Side {
    /// Carries out a handshake.
    pub(super) async fn shake(
        stream: &TcpStream,
        connection: Connection,
    ) -> Result<Self, HandshakeError> {
        let mut side = Self { connection, given: 0, has_ended: false, is_closed: false };
        let mut is_first = true;
        loop {
            match side.flush(stream) {
                Ok(()) if !side.connection.is_handshaking() => return Ok(side),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) => {
                    stream.writable().await?;
                    continue;
                }
                Ok(()) => stream.readable().await?,
            }
            let mut bytes = [0; READ_BYTES_FEW];
            let count = match stream.try_read(&mut bytes) {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            if std::mem::take(&mut is_first) && ![HANDSHAKE, ALERT].contains(&bytes[0]) {
                return Err(HandshakeError::Plain);
            }
            if let Err(refused) = side.process(&bytes[..count]) {
                // Sends the client the reason, as far as the socket accepts it.
                let _ = side.flush(stream);
                return Err(refused);
            }
        }
    }

    /// Returns the certificate of the other side, if it has shown one.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.connection.peer_certificates()?.first()
    }

    /// Whether there are encrypted bytes that the socket has not taken yet.
    pub(super) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Hands encrypted bytes to the socket until there are none left, or the socket takes no more.
    pub(super) fn flush(&mut self, stream: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut Raw(stream))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Does the same, and waits for the socket.
    pub(super) fn poll_flush(
        &mut self,
        stream: &TcpStream,
        task: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.flush(stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(stream.poll_write_ready(task))?;
                }
                flushed => return Poll::Ready(flushed),
            }
        }
    }

    /// Encrypts bytes and hands them to the socket. Returns how many at the front of `bytes` have
    /// left. Those that have not must be at the front again the next time.
    pub(super) fn try_write(&mut self, stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if self.given == 0 {
            self.given = self.encrypt(bytes)?;
        }
        self.flush(stream)?;
        Ok(std::mem::take(&mut self.given))
    }

    /// Takes bytes in to be encrypted as soon as those before have left, and hands to the socket
    /// what it takes at once. Returns how many it has taken in.
    pub(super) fn poll_write(
        &mut self,
        stream: &TcpStream,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(stream, task))?;
        let count = self.encrypt(bytes)?;
        match self.flush(stream) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(count)),
        }
    }

    fn encrypt(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.writer().write(&bytes[..bytes.len().min(PIECE_BYTES)])
    }

    /// Tells the client that nothing more comes, and waits until that has left.
    pub(super) fn poll_close(
        &mut self,
        stream: &TcpStream,
        task: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.connection.send_close_notify();
        }
        self.poll_flush(stream, task)
    }

    /// Tells the client that nothing more comes, if that can be sent at once.
    pub(super) fn close(&mut self, stream: &TcpStream) {
        // What has not left yet must not leave now: it counts as not sent.
        if !self.is_closed && !self.connection.wants_write() {
            self.is_closed = true;
            self.connection.send_close_notify();
            let _ = self.flush(stream);
        }
    }

    /// Reads and decrypts bytes. Adds none at the end of the client's side: an end without a word
    /// counts like one that was announced, since requests say where they end.
    pub(super) fn poll_read(
        &mut self,
        stream: &mut TcpStream,
        task: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        for _ in 0..READS_MAX {
            self.decrypt(out)?;
            if out.filled().len() > before || self.has_ended || out.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_read_once(stream, task, out))?;
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_read_once(
        &mut self,
        stream: &mut TcpStream,
        task: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let fits = out.remaining() >= READ_BYTES + RECORD_BYTES_MAX;
        let most = if fits { READ_BYTES } else { READ_BYTES_FEW };
        ENCRYPTED.with_borrow_mut(|room| {
            let mut buffer = ReadBuf::new(&mut room[..most]);
            ready!(Pin::new(&mut *stream).poll_read(task, &mut buffer))?;
            let mut bytes = buffer.filled();
            self.has_ended |= bytes.is_empty();
            while !bytes.is_empty() {
                self.connection.read_tls(&mut bytes)?;
                if let Err(refused) = self.connection.process_new_packets() {
                    // Sends the client the reason, as far as the socket accepts it.
                    let _ = self.flush(stream);
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, refused)));
                }
                self.decrypt(out)?;
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Adds bytes that were decrypted, as many as there is room for.
    fn decrypt(&mut self, out: &mut ReadBuf<'_>) -> io::Result<()> {
        while out.remaining() > 0 && !self.has_ended {
            match self.connection.reader().read(out.initialize_unfilled()) {
                Ok(0) => self.has_ended = true,
                Ok(count) => out.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn process(&mut self, mut bytes: &[u8]) -> Result<(), HandshakeError> {
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes)?;
            self.connection.process_new_packets()?;
        }
        Ok(())
    }
}

/// The first byte of a handshake, and of a refusal of one.
const HANDSHAKE: u8 = 0x16;
const ALERT: u8 = 0x15;

/// A socket as rustls writes to it.
struct Raw<'a>(&'a TcpStream);

impl io::Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
