//! Reading from a server: whatever has come, behind what is there already.
//!
//! What the bytes mean is the business of the two connections that call this.

use std::io::{self, Read};

/// How much is asked of the socket at a time. A larger frame or reply takes more calls.
const READ_BYTES: usize = 64 << 10;

/// Waits for bytes, appends them to `received`, and answers how many came: none at the end of the
/// stream. Goes on after a signal.
pub(crate) fn receive(stream: &mut impl Read, received: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        let start = received.len();
        received.resize(start + READ_BYTES, 0);
        let outcome = match received.get_mut(start..) {
            Some(free) => stream.read(free),
            None => Ok(0),
        };
        received.truncate(start + outcome.as_ref().map_or(0, |count| *count));
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
