//! A client of the pinpriq door that tells apart what was answered and what was not.

use std::io;
use std::net::TcpStream;

use pinpriq_client::blocking::{Frame, Line, Lost, Wanted, Wire as Client};
use pinpriq_proto::wire::{Framing, Request};

use crate::serving::GUARD;

/// A queue without pushes.
const FENCE: &[u8] = b"fence";

/// One connection.
pub(crate) struct Wire(Client);

/// A key and a payload.
pub(crate) type Packet = (Vec<u8>, Vec<u8>);

/// The bytes of a request.
pub(crate) fn bytes_of(request: Request<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.put(&mut bytes).unwrap();
    bytes
}

/// The bytes of a push.
pub(crate) fn push(queue: &[u8], ttl_ms: u16, priority: u8, key: &[u8], payload: &[u8]) -> Vec<u8> {
    bytes_of(Request::Push { queue, ttl_ms, priority, key, payload })
}

/// A connection on which a test waits for nothing for ever.
pub(crate) fn connect(address: &str) -> Line {
    let mut line = Line::connect(address).unwrap();
    line.limit_waiting(Some(GUARD));
    line
}

impl Wire {
    pub(crate) fn connect(address: &str) -> Self {
        Self(Client::over(connect(address)))
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.0.line().stream()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.line_mut().send(bytes).unwrap();
    }

    /// Sends some requests and a fence, and waits until all of them are done.
    pub(crate) fn try_fenced(&mut self, requests: &[u8]) -> Result<(), Lost> {
        let fence = bytes_of(Request::Pop { queue: FENCE });
        self.0.line_mut().send(&[requests, &fence].concat())?;
        let reply = self.try_frame()?;
        assert_eq!(reply, [], "an unexpected frame");
        Ok(())
    }

    pub(crate) fn fenced(&mut self, requests: &[u8]) {
        self.try_fenced(requests).unwrap();
    }

    pub(crate) fn try_pop(&mut self, queue: &[u8]) -> Result<Vec<Packet>, Lost> {
        self.0.line_mut().send(&bytes_of(Request::Pop { queue }))?;
        self.try_frame()
    }

    pub(crate) fn pop(&mut self, queue: &[u8]) -> Vec<Packet> {
        self.try_pop(queue).unwrap()
    }

    /// Pops, and returns the payloads.
    pub(crate) fn payloads(&mut self, queue: &[u8]) -> Vec<Vec<u8>> {
        self.pop(queue).into_iter().map(|(_, payload)| payload).collect()
    }

    /// Reads one reply or counted delivery.
    pub(crate) fn try_frame(&mut self) -> Result<Vec<Packet>, Lost> {
        let mut packets = Vec::new();
        let read = self.0.frame(Framing::Counted, |packet| {
            packets.push((packet.key.to_vec(), packet.payload.to_vec()));
            Ok::<_, Lost>(Wanted::More)
        });
        if read?? == Frame::Closed { Err(Lost::Closed) } else { Ok(packets) }
    }

    /// Reads until the server closes, in order or not, and returns how many bytes came.
    pub(crate) fn ended(&mut self) -> usize {
        if let Err(error) = self.0.line_mut().rest() {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        self.0.line().unused().len()
    }
}
