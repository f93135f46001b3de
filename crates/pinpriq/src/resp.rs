//! A blocking connection to a server's RESP door, for the commands on tasks and queues.
//!
//! It knows the protocol and no command. Nothing is ever sent again: a connection that broke is
//! over, and whoever wants another opens one.

use std::io::{self, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use pinpriq_wire::resp::{DecodedReply, ReplyDecoder, ReplyLimits, Value};

use crate::exit::Failure;
use crate::receiving::receive;
use crate::words::Words;

/// How long a server may take to accept a connection, and to greet.
const OPENING: Duration = Duration::from_secs(10);

/// One connection, which speaks RESP3.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    address: String,
    decoder: ReplyDecoder,
    /// Received bytes; those before `used` have been decoded.
    received: Vec<u8>,
    used: usize,
}

/// Why there is no proper answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// There is no connection, or no longer. Whether the request was carried out is unknown.
    Lost(String),
    /// The server answered with a refusal: a word for programs, then a sentence.
    Refused(String),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost(sentence) => Self::on_the_way(sentence),
            Trouble::Refused(sentence) => Self::refused(sentence),
        }
    }
}

impl Client {
    /// Connects to the host and port in `address`.
    pub(crate) fn open(address: &str) -> Result<Self, Trouble> {
        let stream = connect(address)
            .map_err(|error| Trouble::Lost(format!("no connection to {address}: {error}")))?;
        // A request is often followed by waiting for its answer, so nothing is gained by delay.
        let _ = stream.set_nodelay(true);
        let mut client = Self {
            stream,
            address: address.to_owned(),
            decoder: ReplyDecoder::new(ReplyLimits::default()),
            received: Vec::new(),
            used: 0,
        };
        client.limit_waiting(Some(OPENING))?;
        client.call(&Words::new("HELLO 3")).map_err(|trouble| match trouble {
            Trouble::Lost(why) => {
                Trouble::Lost(format!("{why}. Is this the address of the RESP door?"))
            }
            refused @ Trouble::Refused(_) => refused,
        })?;
        client.limit_waiting(None)?;
        Ok(client)
    }

    /// Sends one command and waits for its answer.
    pub(crate) fn call(&mut self, words: &Words) -> Result<Value, Trouble> {
        let mut bytes = Vec::new();
        words.put(&mut bytes);
        self.send(&bytes)?;
        match self.reply()? {
            Value::Error(sentence) => Err(Trouble::Refused(sentence)),
            value => Ok(value),
        }
    }

    /// Sends `bytes`, which may hold several commands.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.stream.write_all(bytes).map_err(|error| self.lost(&error))
    }

    /// The answer to the earliest command that has none yet, which may be a refusal.
    pub(crate) fn reply(&mut self) -> Result<Value, Trouble> {
        loop {
            let unused = self.received.get(self.used..).unwrap_or_default();
            match self.decoder.decode(unused) {
                Ok(DecodedReply::Whole { value: Value::Push(_), length }) => self.used += length,
                Ok(DecodedReply::Whole { value, length }) => {
                    self.used += length;
                    return Ok(value);
                }
                Ok(DecodedReply::Incomplete { length }) => {
                    self.used += length;
                    self.receive()?;
                }
                Err(malformed) => {
                    let address = &self.address;
                    return Err(Trouble::Lost(format!(
                        "{address} does not speak RESP: {malformed}"
                    )));
                }
            }
        }
    }

    /// Counts the connection as lost when a reply takes longer; without a limit it never does.
    pub(crate) fn limit_waiting(&self, limit: Option<Duration>) -> Result<(), Trouble> {
        self.stream.set_read_timeout(limit).map_err(|error| self.lost(&error))
    }

    /// A second handle to the stream, with which another thread can end it.
    pub(crate) fn handle(&self) -> Result<TcpStream, Trouble> {
        self.stream.try_clone().map_err(|error| self.lost(&error))
    }

    /// Waits for more bytes.
    fn receive(&mut self) -> Result<(), Trouble> {
        self.received.drain(..self.used);
        self.used = 0;
        match receive(&mut self.stream, &mut self.received) {
            Ok(0) => Err(Trouble::Lost(format!("{} closed the connection", self.address))),
            Ok(_) => Ok(()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// The connection broke, or the server took too long.
    fn lost(&self, error: &io::Error) -> Trouble {
        let address = &self.address;
        Trouble::Lost(match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("{address} does not answer")
            }
            _ => format!("the connection to {address} was lost: {error}"),
        })
    }
}

/// What the server sent is not how such a command is answered.
pub(crate) fn unexpected() -> Failure {
    Failure::on_the_way("the answer is not one of a pinpriq server")
}

/// Tries each address that the host stands for.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut outcome = Err(io::Error::other("the host stands for no address at all"));
    for address in address.to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, OPENING);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
