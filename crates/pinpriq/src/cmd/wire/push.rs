//! `pinpriq wire push`: sends packets, then makes sure that they were accepted.
//!
//! A push has no reply. But the server replies to a later pop of the same connection only after
//! every earlier push was accepted and is durable. So this command ends with such a pop, from a
//! queue that is not used: see `docs/protocol/pinpriq.md#ordering-and-durability`.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use pinpriq_proto::wire::{Framing, Request};

use crate::args::wire::PushArgs;
use crate::connection::{Connection, Frame, Wanted, bytes_of};
use crate::exit::{Exit, Failure};

/// One byte more than a payload can have, so that a longer stdin is noticed.
const STDIN_BYTES_MAX: u64 = 65_536;

/// About how many bytes are sent at once.
const WRITE_BYTES: usize = 64 << 10;

/// Pushes, and waits until the server has confirmed it.
pub(crate) fn push(arguments: PushArgs) -> Result<Exit, Failure> {
    let payload = payload(arguments.payload)?;
    let packet = bytes_of(Request::Push {
        queue: arguments.queue.as_bytes(),
        ttl_ms: arguments.ttl_ms,
        priority: arguments.priority,
        key: arguments.key.as_bytes(),
        payload: &payload,
    })?;
    let fence = bytes_of(Request::Pop { queue: unused_queue().as_bytes() })?;

    let mut connection = Connection::open(&arguments.server.endpoint()?)?;
    let sent = send_many(&mut connection, &packet, arguments.count)
        .and_then(|()| connection.send(&fence))
        .and_then(|()| connection.frame(Framing::Counted, |_| Ok(Wanted::NoMore)));
    match sent {
        Ok(Frame::Whole(0)) => Ok(Exit::Done),
        Ok(Frame::Closed) => Err(refused("the server closed the connection")),
        Ok(Frame::Whole(_) | Frame::Unwanted) => {
            Err(Failure::on_the_way("the answer is not one of a pinpriq server"))
        }
        Err(failure) if connection.speaks_resp() => Err(failure),
        // A server that refuses closes while bytes are still under way to it, and that can look
        // like a broken connection here.
        Err(failure) => Err(refused(failure)),
    }
}

/// Sends `packet` that many times, many of them at once where they are small.
fn send_many(connection: &mut Connection, packet: &[u8], count: u64) -> Result<(), Failure> {
    let at_once = (WRITE_BYTES / packet.len()).max(1);
    let chunk = packet.repeat(usize::try_from(count).map_or(at_once, |count| count.min(at_once)));
    let mut left = count;
    while left > 0 {
        let bytes = match usize::try_from(left) {
            Ok(few) if few < at_once => chunk.get(..few * packet.len()).unwrap_or_default(),
            _ => &chunk,
        };
        connection.send(bytes)?;
        left = left.saturating_sub(at_once as u64);
    }
    Ok(())
}

/// The payload that was given, or else stdin.
fn payload(given: Option<OsString>) -> Result<Vec<u8>, Failure> {
    match given {
        Some(payload) if payload != "-" => Ok(payload.into_vec()),
        _ => {
            let mut payload = Vec::new();
            std::io::stdin()
                .take(STDIN_BYTES_MAX)
                .read_to_end(&mut payload)
                .map_err(|error| Failure::on_the_way(format!("stdin cannot be read: {error}")))?;
            Ok(payload)
        }
    }
}

/// Returns a name that no other queue has: the number of the process and a random number.
fn unused_queue() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("pinpriq-push-fence-{}-{random:016x}", std::process::id())
}

/// The push was not confirmed.
fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::on_the_way(format!(
        "the push was not confirmed: {why}. A server closes the connection to refuse a push, for \
         example because the payload is too large for it; its log says why"
    ))
}
