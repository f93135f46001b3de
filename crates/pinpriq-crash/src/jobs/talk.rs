//! A connection that speaks beanstalkd's protocol, with a timeout for everything.
//!
//! Any error means that the connection is gone.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use pinpriq_wire::beanstalkd::{Answer, DecodedAnswer, Request, decode_answer};

use crate::fault::Fallible;
use crate::process::GUARD;

/// The most bytes of a job or a document.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection.
pub(crate) struct Talk {
    stream: TcpStream,
    received: Vec<u8>,
    /// How many of them were answers that are done with.
    used: usize,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// A line without its end.
    Line(String),
    /// A job with its id.
    Job(u64, Vec<u8>),
    /// A document.
    Document(String),
    /// Bytes that are no answer, and why.
    Malformed(String),
}

impl Talk {
    pub(crate) fn connect(address: SocketAddr) -> Fallible<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GUARD))?;
        stream.set_write_timeout(Some(GUARD))?;
        Ok(Self { stream, received: Vec::new(), used: 0 })
    }

    /// Sends requests together.
    pub(crate) fn send(&mut self, requests: &[Request<'_>]) -> Fallible<()> {
        let mut bytes = Vec::new();
        for request in requests {
            request.put(&mut bytes).map_err(|error| format!("{request:?}: {error:?}"))?;
        }
        Ok(self.stream.write_all(&bytes)?)
    }

    /// Waits for the next answer.
    pub(crate) fn answer(&mut self) -> Fallible<Heard> {
        loop {
            let rest = self.received.get(self.used..).unwrap_or_default();
            let decoded = match decode_answer(rest, BODY_BYTES_MAX) {
                Ok(decoded) => decoded,
                Err(error) => return Ok(Heard::Malformed(error.to_string())),
            };
            if let DecodedAnswer::Whole { answer, length } = decoded {
                let heard = match answer {
                    Answer::Line(line) => Heard::Line(text(line)),
                    Answer::Job { id, body, .. } => Heard::Job(id, body.to_vec()),
                    Answer::Document(document) => Heard::Document(text(document)),
                };
                self.used += length;
                return Ok(heard);
            }
            self.received.drain(..std::mem::take(&mut self.used));
            let before = self.received.len();
            self.received.resize(before + READ_BYTES, 0);
            let read = self.stream.read(self.received.get_mut(before..).unwrap_or_default())?;
            self.received.truncate(before + read);
            if read == 0 {
                return Err("the connection was closed".into());
            }
        }
    }

    /// Sends one request and waits for the answer.
    pub(crate) fn ask(&mut self, request: Request<'_>) -> Fallible<Heard> {
        self.send(&[request])?;
        self.answer()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
