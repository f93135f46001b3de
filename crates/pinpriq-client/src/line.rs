//! The connection below both protocols: it sends bytes, and buffers received bytes until they are
//! used.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use pinpriq_tls::Peer;
use pinpriq_wire::resp::MalformedReply;
use rustls::{ClientConnection, StreamOwned};

/// How many bytes are read from the socket at a time. A larger frame or reply takes more calls.
const READ_BYTES: usize = 64 << 10;

/// A connection.
#[derive(Debug)]
pub struct Line {
    stream: Stream,
    /// Received bytes; those before `used` have been used.
    received: Vec<u8>,
    used: usize,
}

/// What carries the bytes.
#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Why there is no reply. It is unknown whether the request was carried out.
#[derive(Debug)]
pub enum Lost {
    /// The connection broke, or the server exceeded the time limit.
    Broken(io::Error),
    /// The server closed the connection in order.
    Closed,
    /// The server closed the connection in the middle of a frame.
    CutShort,
    /// The server sent something that is not RESP.
    Malformed(MalformedReply),
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
            Self::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl std::error::Error for Lost {}

impl Line {
    /// Connects to the first address that accepts, for as long as the system tries.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(Self::over(TcpStream::connect(address)?))
    }

    /// Connects to the first address that accepts within this time.
    pub fn connect_within(limit: Duration, address: impl ToSocketAddrs) -> io::Result<Self> {
        let mut outcome = Err(io::Error::other("the host stands for no address at all"));
        for address in address.to_socket_addrs()? {
            outcome = TcpStream::connect_timeout(&address, limit);
            if outcome.is_ok() {
                break;
            }
        }
        outcome.map(Self::over)
    }

    /// Returns a connection over a socket, from either of its ends.
    #[must_use]
    pub fn over(stream: TcpStream) -> Self {
        // A request is often followed by waiting for its reply, so a delay gains nothing.
        let _ = stream.set_nodelay(true);
        Self { stream: Stream::Plain(stream), received: Vec::new(), used: 0 }
    }

    /// Encrypts a connection on which nothing was sent yet, if the server is who it must be.
    pub fn encrypt(self, server: &Peer) -> io::Result<Self> {
        let Stream::Plain(mut stream) = self.stream else { return Ok(self) };
        let mut connection = server.connection().map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        let stream = Stream::Encrypted(Box::new(StreamOwned::new(connection, stream)));
        Ok(Self { stream, ..self })
    }

    /// Returns the socket, with which another thread can end the connection.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Encrypted(stream) => stream.get_ref(),
        }
    }

    /// Treats the connection as lost if nothing arrives for this duration. Without a limit it waits
    /// forever.
    pub fn limit_waiting(&self, limit: Option<Duration>) -> io::Result<()> {
        self.stream().set_read_timeout(limit)
    }

    /// Sends bytes, which may hold several requests.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes),
            Stream::Encrypted(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    /// Ends the sending side of the connection.
    pub fn end_input(&mut self) -> io::Result<()> {
        if let Stream::Encrypted(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.stream().shutdown(Shutdown::Write)
    }

    /// Returns the received bytes that were not used.
    #[must_use]
    pub fn unused(&self) -> &[u8] {
        self.received.get(self.used..).unwrap_or_default()
    }

    /// Notes that this number of bytes at the front have been used.
    pub const fn note_used(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Waits for more bytes after the unused ones. Returns false at the end of the stream.
    /// Continues after a signal.
    pub fn receive(&mut self) -> io::Result<bool> {
        self.received.drain(..self.used);
        self.used = 0;
        let start = self.received.len();
        self.received.resize(start + READ_BYTES, 0);
        let count = loop {
            let free = self.received.get_mut(start..).unwrap_or_default();
            let read = match &mut self.stream {
                Stream::Plain(stream) => stream.read(free),
                Stream::Encrypted(stream) => stream.read(free),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server has ended the connection without a word, as if it were plain.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break Ok(0),
                outcome => break outcome,
            }
        };
        self.received.truncate(start + count.as_ref().map_or(0, |count| *count));
        Ok(count? > 0)
    }

    /// Waits for this number of bytes and uses them.
    pub fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        loop {
            if let Some(bytes) = self.unused().get(..count) {
                let bytes = bytes.to_vec();
                self.note_used(count);
                return Ok(bytes);
            }
            if !self.receive()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads until the server closes in order, and returns the bytes that were not used.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.receive()? {}
        Ok(self.unused().to_vec())
    }
}
