//! The connection below all protocols.

use std::future::Future;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use pinpriq_proto::wire::resp::Value;
use pinpriq_tls::Peer;
use tokio::runtime::{Builder, Runtime};

use crate::transport::{Line as AsyncLine, Lost, Replies};

/// A connection: it sends bytes, and buffers received bytes until they are used.
#[derive(Debug)]
pub struct Line {
    below: AsyncLine,
    runtime: Runtime,
    /// The same socket, for what another thread does with it.
    socket: TcpStream,
}

impl Line {
    /// Connects to the first address that accepts, for as long as the system tries.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
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
        Self::over(outcome?)
    }

    /// Returns a connection over a socket, from either of its ends.
    pub fn over(socket: TcpStream) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let stream = socket.try_clone()?;
        stream.set_nonblocking(true)?;
        let below = {
            let _within = runtime.enter();
            AsyncLine::over(tokio::net::TcpStream::from_std(stream)?)
        };
        Ok(Self { below, runtime, socket })
    }

    /// Encrypts a connection on which nothing was sent yet, if the server is who it must be.
    pub fn encrypt(self, server: &Peer) -> io::Result<Self> {
        let Self { below, runtime, socket } = self;
        let below = runtime.block_on(below.encrypt(server))?;
        Ok(Self { below, runtime, socket })
    }

    /// Returns the socket, with which another thread can end the connection. It does not block.
    #[must_use]
    pub const fn stream(&self) -> &TcpStream {
        &self.socket
    }

    /// Treats the connection as lost if nothing arrives, or can be sent, for this duration. Without
    /// a limit it waits forever.
    pub const fn limit_waiting(&mut self, limit: Option<Duration>) {
        self.below.limit_waiting(limit);
    }

    /// Sends bytes, which may hold several requests.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wait_for(|line| line.send(bytes))
    }

    /// Ends the sending side of the connection.
    pub fn end_input(&mut self) -> io::Result<()> {
        self.wait_for(AsyncLine::end_input)
    }

    /// Returns the received bytes that were not used.
    #[must_use]
    pub fn unused(&self) -> &[u8] {
        self.below.unused()
    }

    /// Notes that this number of bytes at the front have been used.
    pub const fn note_used(&mut self, bytes: usize) {
        self.below.note_used(bytes);
    }

    /// Waits for more bytes after the unused ones. Returns false at the end of the stream.
    pub fn receive(&mut self) -> io::Result<bool> {
        self.wait_for(AsyncLine::receive)
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

    /// Waits for the next reply of a RESP door.
    pub(super) fn reply(&mut self, replies: &mut Replies) -> Result<Value, Lost> {
        self.runtime.block_on(self.below.reply(replies))
    }

    fn wait_for<'a, W: Future>(
        &'a mut self,
        work: impl FnOnce(&'a mut AsyncLine) -> W,
    ) -> W::Output {
        self.runtime.block_on(work(&mut self.below))
    }
}
