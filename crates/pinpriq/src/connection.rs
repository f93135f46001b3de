//! A blocking connection to a server, for the commands that push, pop and subscribe.
//!
//! It knows nothing of queues or printing. What was received and not yet used stays here, so that
//! frames may arrive in any pieces. Nothing is ever sent again: a connection that broke is over.

use std::io::{self, Write as _};
use std::net::TcpStream;

use pinpriq_wire::{Framing, Packet, Piece, ReplyDecoder, Request};

use crate::exit::Failure;
use crate::receiving::receive;

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    address: String,
    /// Received bytes; those before `used` have been handed out.
    received: Vec<u8>,
    used: usize,
}

/// How reading a frame ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// A frame with that many packets.
    Whole(u16),
    /// No frame: the server closed the connection in good order.
    Closed,
    /// Part of a frame: whoever gets the packets wants no more of them.
    Unwanted,
}

/// Whether whoever gets the packets wants more of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// Yes.
    More,
    /// No, as when the reader of a pipe has gone.
    NoMore,
}

impl Connection {
    /// Connects to the host and port in `address`.
    pub(crate) fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)
            .map_err(|error| Failure::on_the_way(format!("no connection to {address}: {error}")))?;
        // A request is often followed by waiting for its answer, so nothing is gained by delay.
        let _ = stream.set_nodelay(true);
        Ok(Self { stream, address: address.to_owned(), received: Vec::new(), used: 0 })
    }

    /// Sends `bytes`, which may hold several requests.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(|error| self.lost(&error))
    }

    /// Reads one frame and hands each of its packets to `take`.
    ///
    /// With bare framing a frame is one packet. Waits for as long as it takes.
    pub(crate) fn frame(
        &mut self,
        framing: Framing,
        mut take: impl FnMut(Packet<'_>) -> Result<Wanted, Failure>,
    ) -> Result<Frame, Failure> {
        let mut decoder = ReplyDecoder::new(framing);
        let mut packets = 1;
        loop {
            let unused = self.received.get(self.used..).unwrap_or_default();
            match decoder.decode(unused) {
                Piece::Incomplete { needed_at_least } => {
                    let between = decoder.is_between_frames() && unused.is_empty();
                    if !self.receive(needed_at_least)? {
                        return if between { Ok(Frame::Closed) } else { Err(self.cut_short()) };
                    }
                }
                Piece::Count { packets: 0, length } => {
                    self.used += length;
                    return Ok(Frame::Whole(0));
                }
                Piece::Count { packets: count, length } => {
                    self.used += length;
                    packets = count;
                }
                Piece::Packet { packet, left, length } => {
                    self.used += length;
                    let wanted = take(packet)?;
                    if left == 0 {
                        return Ok(Frame::Whole(packets));
                    }
                    if wanted == Wanted::NoMore {
                        return Ok(Frame::Unwanted);
                    }
                }
            }
        }
    }

    /// Waits until `needed` unused bytes are there; false if the stream ends first.
    fn receive(&mut self, needed: usize) -> Result<bool, Failure> {
        self.received.drain(..self.used);
        self.used = 0;
        while self.received.len() < needed {
            match receive(&mut self.stream, &mut self.received) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(true)
    }

    /// The stream ended within a frame.
    fn cut_short(&self) -> Failure {
        let address = &self.address;
        Failure::on_the_way(format!("{address} closed the connection in the middle of a frame"))
    }

    /// The connection broke.
    fn lost(&self, error: &io::Error) -> Failure {
        Failure::on_the_way(format!("the connection to {} was lost: {error}", self.address))
    }
}

/// The bytes of `request`. Refuses fields of more than 65,535 bytes.
pub(crate) fn bytes_of(request: Request<'_>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    request.put(&mut bytes).map_err(|error| Failure::unusable(error.to_string()))?;
    Ok(bytes)
}
