//! `pinpriq wire pop`: takes packets out of a queue and prints them.
//!
//! Pops one at a time, so that nothing is taken from the queue that can no longer be printed.

use std::os::unix::ffi::OsStrExt as _;

use pinpriq_proto::wire::{Framing, Request};

use crate::args::wire::PopArgs;
use crate::connection::{Connection, Frame, Wanted, bytes_of};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Pops until the queue is empty or the asked number of pops is done.
pub(crate) fn pop(arguments: &PopArgs) -> Result<Exit, Failure> {
    let request = bytes_of(Request::Pop { queue: arguments.queue.as_bytes() })?;
    let mut connection = Connection::open(&arguments.server.endpoint()?)?;
    let mut output = Output::to_stdout(arguments.print);
    for popped in 0..arguments.count {
        connection.send(&request)?;
        match connection.frame(Framing::Counted, |packet| output.print(packet))? {
            Frame::Whole(0) if popped == 0 => return Ok(Exit::NothingThere),
            Frame::Whole(0) | Frame::Unwanted => break,
            Frame::Whole(_) => {}
            Frame::Closed => {
                return Err(Failure::on_the_way("the server closed the connection"));
            }
        }
        if output.flush()? == Wanted::NoMore {
            break;
        }
    }
    Ok(Exit::Done)
}
