//! beanstalkd: `put`, `reserve-with-timeout 0`, `delete`.
//!
//! A job is reserved by a connection and deleted by its number. Its time to run equals the leases
//! of the other servers.

use pinpriq_load::{Answer, Dialect, Outcome, Slot, Step};

/// How long a reservation lasts.
const LEASE_SECONDS: u32 = 60;

/// The words of beanstalkd.
pub(crate) struct Beanstalkd {
    payload: Vec<u8>,
    /// What follows the priority in the line of a put, with the payload.
    put_tail: Vec<u8>,
}

impl Beanstalkd {
    pub(crate) fn new(payload: &[u8]) -> Self {
        let mut put_tail = format!(" 0 {LEASE_SECONDS} {}\r\n", payload.len()).into_bytes();
        put_tail.extend_from_slice(payload);
        put_tail.extend_from_slice(b"\r\n");
        Self { payload: payload.to_vec(), put_tail }
    }

    /// Reads `<id> <bytes>`, the line end and the payload that follow `RESERVED`.
    fn reserved<'a>(
        &self,
        slot: &mut Slot,
        line: &[u8],
        after: &'a [u8],
        line_length: usize,
    ) -> Result<Answer<'a>, String> {
        let mut words = line.split(|byte| *byte == b' ').skip(1);
        let id = words.next().unwrap_or_default();
        let length = line_length + self.payload.len() + 2;
        if words.next() != Some(self.payload.len().to_string().as_bytes()) {
            return Err("a job with another payload".to_owned());
        }
        let Some(body) = after.get(..self.payload.len() + 2) else { return Ok(Answer::Incomplete) };
        if !body.starts_with(&self.payload) {
            return Err("a job with another payload".to_owned());
        }
        slot.token.set(id)?;
        Ok(Answer::Whole { outcome: Outcome::Done, length })
    }
}

impl Dialect for Beanstalkd {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        match step {
            Step::Put => {
                out.extend_from_slice(b"put ");
                put_number(out, slot.priority);
                out.extend_from_slice(&self.put_tail);
            }
            Step::Take => out.extend_from_slice(b"reserve-with-timeout 0\r\n"),
            _ => {
                out.extend_from_slice(b"delete ");
                out.extend_from_slice(slot.token.bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(Answer::Incomplete);
        };
        let (line, after) = bytes.split_at(end + 1);
        let line_length = line.len();
        let line = line.trim_ascii_end();
        let outcome = match step {
            Step::Put if line.starts_with(b"INSERTED ") => Outcome::Done,
            Step::Take if line.starts_with(b"RESERVED ") => {
                return self.reserved(slot, line, after, line_length);
            }
            Step::Take if line == b"TIMED_OUT" => Outcome::Empty,
            Step::Ack if line == b"DELETED" => Outcome::Done,
            _ => Outcome::Refused(&bytes[..end]),
        };
        Ok(Answer::Whole { outcome, length: line_length })
    }
}

/// Appends a number in decimal.
fn put_number(out: &mut Vec<u8>, number: u32) {
    if number >= 10 {
        put_number(out, number / 10);
    }
    out.push(b'0' + u8::try_from(number % 10).unwrap_or(0));
}
