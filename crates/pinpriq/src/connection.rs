//! A connection to a server's pinpriq door, for the commands that push, pop and subscribe.
//!
//! It knows nothing of queues or printing. It adds to the client a description of what went wrong.

use pinpriq_client::{Line, Lost, Wire};
use pinpriq_wire::{Framing, Packet, Request};

use crate::exit::Failure;

pub(crate) use pinpriq_client::{Frame, Wanted};

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    address: String,
}

impl Connection {
    /// Connects to the host and port in `address`.
    pub(crate) fn open(address: &str) -> Result<Self, Failure> {
        let line = Line::connect(address)
            .map_err(|error| Failure::on_the_way(format!("no connection to {address}: {error}")))?;
        Ok(Self { wire: Wire::over(line), address: address.to_owned() })
    }

    /// Sends `bytes`, which may hold several requests.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.wire.line_mut().send(bytes).map_err(|error| self.lost(&error.into()))
    }

    /// Reads one frame and hands each of its packets to `take`.
    pub(crate) fn frame(
        &mut self,
        framing: Framing,
        take: impl FnMut(Packet<'_>) -> Result<Wanted, Failure>,
    ) -> Result<Frame, Failure> {
        self.wire.frame(framing, take).map_err(|lost| self.lost(&lost))?
    }

    /// The connection broke, or ended within a frame.
    fn lost(&self, lost: &Lost) -> Failure {
        let address = &self.address;
        Failure::on_the_way(match lost {
            Lost::Closed | Lost::CutShort => {
                format!("{address} closed the connection in the middle of a frame")
            }
            broken => format!("the connection to {address} was lost: {broken}"),
        })
    }
}

/// The bytes of `request`. Refuses fields of more than 65,535 bytes.
pub(crate) fn bytes_of(request: Request<'_>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    request.put(&mut bytes).map_err(|error| Failure::unusable(error.to_string()))?;
    Ok(bytes)
}
