//! A connection to a server's pinpriq door, for the commands that push, pop and subscribe.
//!
//! It knows nothing of queues or printing. It adds to the client a description of what went wrong.

use std::time::Duration;

use pinpriq_client::blocking::{Lost, Wire};
use pinpriq_proto::wire::{Framing, Packet, Request};

use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;

pub(crate) use pinpriq_client::blocking::{Frame, Wanted};

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    endpoint: Endpoint,
    /// Whether the server has sent something that this protocol has.
    answered: bool,
    /// Whether the server speaks RESP, as far as that was found out.
    speaks_resp: bool,
}

/// How long a server may take to say which protocol it speaks.
const PROBE: Duration = Duration::from_secs(1);

impl Connection {
    /// Connects to a server.
    pub(crate) fn open(endpoint: &Endpoint) -> Result<Self, Failure> {
        let line = endpoint.connect(None).map_err(|error| {
            Failure::on_the_way(format!("no connection to {endpoint}: {}", endpoint::shown(&error)))
        })?;
        let (wire, endpoint) = (Wire::over(line), endpoint.clone());
        Ok(Self { wire, endpoint, answered: false, speaks_resp: false })
    }

    /// Sends `bytes`, which may hold several requests.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = self.wire.line_mut().send(bytes);
        sent.map_err(|error| self.other_door().unwrap_or_else(|| self.lost(&error.into())))
    }

    /// Reads one frame and hands each of its packets to `take`.
    pub(crate) fn frame(
        &mut self,
        framing: Framing,
        take: impl FnMut(Packet<'_>) -> Result<Wanted, Failure>,
    ) -> Result<Frame, Failure> {
        if !self.answered {
            self.await_answer()?;
        }
        self.wire.frame(framing, take).map_err(|lost| self.lost(&lost))?
    }

    /// Whether the last failure was that the server speaks RESP.
    pub(crate) const fn speaks_resp(&self) -> bool {
        self.speaks_resp
    }

    /// Waits for the first answer, and fails if that is one of RESP. A server that speaks RESP may
    /// also wait for the end of a line and then close the connection without a word.
    fn await_answer(&mut self) -> Result<(), Failure> {
        let is_short = |bytes: &[u8]| bytes.is_empty() || is_start_of_refusal(bytes);
        while is_short(self.wire.line().unused()) {
            match self.wire.line_mut().receive() {
                Ok(true) => {}
                Ok(false) => return self.other_door().map_or(Ok(()), Err),
                Err(error) => {
                    let lost = self.lost(&error.into());
                    return Err(self.other_door().unwrap_or(lost));
                }
            }
        }
        if is_refusal(self.wire.line().unused()) {
            self.speaks_resp = true;
            return Err(self.wrong_door());
        }
        self.answered = true;
        Ok(())
    }

    /// Returns the failure if no answer has come because the server speaks RESP.
    fn other_door(&mut self) -> Option<Failure> {
        self.speaks_resp = !self.answered
            && (is_refusal(self.wire.line().unused()) || answers_ping(&self.endpoint));
        self.speaks_resp.then(|| self.wrong_door())
    }

    fn wrong_door(&self) -> Failure {
        let address = &self.endpoint;
        Failure::on_the_way(format!(
            "{address} speaks RESP, so it looks like the server's RESP port. `pinpriq wire` needs \
             the pinpriq port, 7250 by default: give it with --address or PINPRIQ_ADDRESS. At this \
             port use `pinpriq put`, `take`, `pop` or `listen`"
        ))
    }

    /// The connection broke, or ended within a frame.
    fn lost(&self, lost: &Lost) -> Failure {
        let address = &self.endpoint;
        Failure::on_the_way(match lost {
            Lost::Closed | Lost::CutShort => {
                format!("{address} closed the connection in the middle of a frame")
            }
            Lost::Broken(error) => {
                format!("the connection to {address} was lost: {}", endpoint::shown(error))
            }
            broken @ Lost::Malformed(_) => {
                format!("the connection to {address} was lost: {broken}")
            }
        })
    }
}

/// The lengths that the first word of a refusal of RESP can have.
const WORD_BYTES_MIN: usize = 3;
const WORD_BYTES_MAX: usize = 16;

/// Whether these bytes are a refusal of RESP: `-`, a word of capital letters, and a space. A frame
/// would need more than 11,000 packets to look like this.
fn is_refusal(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"-") else { return false };
    let word = rest.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    word >= WORD_BYTES_MIN && rest.get(word) == Some(&b' ')
}

/// Whether these bytes may become a refusal when more of them arrive.
fn is_start_of_refusal(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"-") else { return false };
    rest.len() < WORD_BYTES_MAX && rest.iter().all(u8::is_ascii_uppercase)
}

/// Whether a server greets like one of RESP. For the pinpriq protocol this is the beginning of a
/// request that never ends, which changes nothing.
fn answers_ping(endpoint: &Endpoint) -> bool {
    let answer = || -> std::io::Result<bool> {
        let mut line = endpoint.connect(Some(PROBE))?;
        line.limit_waiting(Some(PROBE));
        line.send(b"PING\r\n")?;
        Ok(line.receive()? && line.unused().starts_with(b"+PONG"))
    };
    answer().unwrap_or(false)
}

/// The bytes of `request`. Refuses fields of more than 65,535 bytes.
pub(crate) fn bytes_of(request: Request<'_>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    request.put(&mut bytes).map_err(|error| Failure::unusable(error.to_string()))?;
    Ok(bytes)
}
