//! `pinpriq wire subscribe`: prints deliveries as they come, one credit at a time.
//!
//! The next credit is given only after a delivery has been printed and handed on, so that a slow
//! reader of stdout leaves the packets in the queue.

use std::os::unix::ffi::OsStrExt as _;

use pinpriq_proto::wire::{READY, Request};

use crate::args::wire::SubscribeArgs;
use crate::connection::{Connection, Frame, Wanted, bytes_of};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Framing;

/// Prints deliveries until there have been enough, or until one of the two ends is closed.
pub(crate) fn subscribe(arguments: &SubscribeArgs) -> Result<Exit, Failure> {
    let mut subscriptions = Vec::new();
    for queue in &arguments.queues {
        let request = Request::Subscribe { queue: queue.as_bytes() };
        subscriptions.extend(bytes_of(request)?);
    }
    let framing = match arguments.framing {
        Framing::Counted => pinpriq_proto::wire::Framing::Counted,
        Framing::Bare => pinpriq_proto::wire::Framing::Bare,
    };
    let mut connection = Connection::open(&arguments.server.endpoint()?)?;
    connection.send(&subscriptions)?;
    let mut output = Output::to_stdout(arguments.print);
    let mut delivered = 0;
    while arguments.count.is_none_or(|count| delivered < count) {
        connection.send(&[READY])?;
        match connection.frame(framing, |packet| output.print(packet))? {
            Frame::Whole(_) => delivered += 1,
            Frame::Unwanted => break,
            Frame::Closed => return closed(arguments.count, delivered),
        }
        if output.flush()? == Wanted::NoMore {
            break;
        }
    }
    Ok(Exit::Done)
}

/// The server closed the connection: in order, unless deliveries are missing.
fn closed(count: Option<u64>, delivered: u64) -> Result<Exit, Failure> {
    match count {
        None => Ok(Exit::Done),
        Some(count) => Err(Failure::on_the_way(format!(
            "the server closed the connection after {delivered} of {count} deliveries"
        ))),
    }
}
