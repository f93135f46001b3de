//! One connection: what is to be sent, the received part of a reply, and the requests that wait for
//! theirs.
//!
//! It knows no protocol. Requests gather until they are sent with one write. Replies are read into
//! a buffer that all connections share; only the beginning of an incomplete one is kept here.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use pinpriq_tls::Peer;
use rustls::{ClientConnection, Stream};

use crate::plan::Step;

/// How long a server may take to accept a connection, and to reply to its opening.
const OPENING: Duration = Duration::from_secs(10);

/// A request that has no reply yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    /// The slot of the request.
    pub(crate) slot: u32,
    /// The kind of the request.
    pub(crate) step: Step,
    /// The moment from which its latency counts.
    pub(crate) since_ns: u64,
}

/// How reading ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Received {
    /// This number of bytes was read, and more may be available at once.
    More(usize),
    /// This number of bytes was read, and no more are available now.
    Last(usize),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    encryption: Option<Box<ClientConnection>>,
    /// Bytes to be sent. Those before `sent` have been.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// The beginning of a reply.
    rest: Vec<u8>,
    /// The requests in the order in which they were sent, at most one for each slot.
    pub(crate) under_way: VecDeque<UnderWay>,
}

impl Connection {
    /// Connects, sends the opening of a connection, and waits for the given number of lines in
    /// reply.
    pub(crate) fn open(
        (address, server): (SocketAddr, Option<&Peer>),
        (greeting, lines): &(Vec<u8>, usize),
    ) -> io::Result<Self> {
        let mut stream = std::net::TcpStream::connect_timeout(&address, OPENING)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(OPENING))?;
        let encryption = server.map(Peer::connection).transpose().map_err(io::Error::other)?;
        let mut encryption = encryption.map(Box::new);
        while encryption.as_ref().is_some_and(|it| it.is_handshaking()) {
            encryption.as_mut().map(|it| it.complete_io(&mut stream)).transpose()?;
        }
        if *lines > 0 {
            match &mut encryption {
                None => greet(&mut stream, greeting, *lines)?,
                Some(own) => greet(&mut Stream::new(&mut **own, &mut stream), greeting, *lines)?,
            }
        }
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: TcpStream::from_std(stream),
            encryption,
            out: Vec::new(),
            sent: 0,
            rest: Vec::new(),
            under_way: VecDeque::new(),
        })
    }

    /// Registers the connection for events under this number.
    pub(crate) fn register(&mut self, registry: &Registry, number: usize) -> io::Result<()> {
        registry.register(&mut self.stream, Token(number), Interest::READABLE | Interest::WRITABLE)
    }

    /// Sends as much as the socket accepts.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while let Some(unsent) = self.out.get(self.sent..).filter(|unsent| !unsent.is_empty()) {
            let written = match &mut self.encryption {
                None => self.stream.write(unsent),
                Some(own) => Stream::new(&mut **own, &mut self.stream).write(unsent),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads once into `inbox`, after what was kept. The end of the stream is an error.
    pub(crate) fn receive(&mut self, inbox: &mut Vec<u8>) -> io::Result<Received> {
        let kept = self.rest.len();
        if kept * 2 > inbox.len() {
            inbox.resize(kept * 4, 0);
        }
        let (front, room) = inbox.split_at_mut(kept);
        front.copy_from_slice(&self.rest);
        let bytes = loop {
            let read = match &mut self.encryption {
                None => self.stream.read(room),
                Some(own) => Stream::new(&mut **own, &mut self.stream).read(room),
            };
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => break bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Received::Last(0));
                }
                Err(error) => return Err(error),
            }
        };
        self.rest.clear();
        // A read that did not fill the buffer has emptied the socket. One that was decrypted may be
        // a part of what has come.
        Ok(if bytes < room.len() && self.encryption.is_none() {
            Received::Last(kept + bytes)
        } else {
            Received::More(kept + bytes)
        })
    }

    /// Keeps the beginning of a reply until more of it arrives.
    pub(crate) fn keep(&mut self, beginning: &[u8]) {
        self.rest.extend_from_slice(beginning);
    }
}

/// Sends the opening of a connection, and waits for this number of lines in reply.
fn greet(stream: &mut (impl Read + Write), greeting: &[u8], lines: usize) -> io::Result<()> {
    stream.write_all(greeting)?;
    stream.flush()?;
    // Nothing is lost in this buffer: the server has nothing else to send yet.
    let mut reader = BufReader::new(stream);
    for _ in 0..lines {
        if reader.skip_until(b'\n')? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
