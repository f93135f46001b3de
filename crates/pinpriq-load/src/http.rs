//! pinpriq over HTTP/1.1: put, take under a lease, ack and pop.
//!
//! A take asks for the payload as it is, so that its answer is read without JSON. Answers are
//! compared with what was put, so a run in a queue with other tasks ends with an error.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::dialect::{Answer, Dialect, Outcome, Slot};
use crate::plan::Step;

/// What ends the first line, and the header fields of every request but those that sign in.
const FIELDS: &str = " HTTP/1.1\r\nHost: localhost\r\n";

/// The most header fields of an answer.
const FIELDS_MAX: usize = 32;

/// The HTTP door.
#[derive(Clone, Debug)]
pub struct Http {
    queues: Vec<Requests>,
    payload: Vec<u8>,
    /// What follows the path of each request: see [`FIELDS`].
    fields: String,
}

/// The requests of one queue.
#[derive(Clone, Debug)]
struct Requests {
    /// A put up to its priority.
    put: Vec<u8>,
    /// What follows the priority, up to the payload.
    put_rest: Vec<u8>,
    take: Vec<u8>,
    pop: Vec<u8>,
    /// An ack up to the receipt.
    ack: Vec<u8>,
}

impl Http {
    /// Returns a dialect for these queues that puts tasks with this payload.
    #[must_use]
    pub fn new(queues: &[String], payload: &[u8]) -> Self {
        Self::with_fields(queues, payload, FIELDS.to_owned())
    }

    /// Returns a dialect like [`Http::new`] whose requests are those of this user, with this
    /// password or token.
    #[must_use]
    pub fn signing_in(queues: &[String], payload: &[u8], user: &str, secret: &str) -> Self {
        let pair = STANDARD.encode(format!("{user}:{secret}"));
        Self::with_fields(queues, payload, format!("{FIELDS}Authorization: Basic {pair}\r\n"))
    }

    fn with_fields(queues: &[String], payload: &[u8], fields: String) -> Self {
        let queues = queues.iter().map(|queue| Requests::new(queue, payload, &fields)).collect();
        Self { queues, payload: payload.to_vec(), fields }
    }

    /// Reads the answer to a request, of which nothing is missing.
    fn outcome<'a>(
        &self,
        step: Step,
        slot: &mut Slot,
        head: &httparse::Response<'_, 'a>,
        body: &'a [u8],
    ) -> Result<Outcome<'a>, String> {
        match (step, head.code.unwrap_or_default()) {
            (Step::Take | Step::Pop, 204) => Ok(Outcome::Empty),
            (Step::Take | Step::Pop, 200) if body != self.payload => {
                let sentence = "a task with another payload: the queue is used by others, or by a \
                                run before";
                Err(sentence.to_owned())
            }
            (Step::Put, 201) | (Step::Ack, 204) | (Step::Pop, 200) => Ok(Outcome::Done),
            (Step::Take, 200) => {
                let receipt = field(head, "pinpriq-receipt").ok_or("a task without a receipt")?;
                slot.token.set(receipt)?;
                slot.token_queue = slot.queue;
                Ok(Outcome::Done)
            }
            (_, 400..) => Ok(Outcome::Refused(body)),
            (step, status) => Err(format!("status {status} in answer to a {}", step.word())),
        }
    }
}

impl Dialect for Http {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        let Some(requests) = self.queues.get(slot.queue as usize) else { return };
        match step {
            Step::Put => {
                out.extend_from_slice(&requests.put);
                // Writing to memory cannot fail.
                let _ = write!(out, "{}", slot.priority);
                out.extend_from_slice(&requests.put_rest);
                out.extend_from_slice(&self.payload);
            }
            Step::Take => out.extend_from_slice(&requests.take),
            Step::Pop => out.extend_from_slice(&requests.pop),
            Step::Ack => {
                out.extend_from_slice(&requests.ack);
                out.extend_from_slice(slot.token.bytes());
                let _ = write!(out, ":ack{}\r\n", self.fields);
            }
            // What cannot be measured was refused before the run began.
            Step::DoneTake | Step::Publish | Step::Join | Step::Leave => {}
        }
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head.parse(bytes).map_err(|wrong| format!("no answer of HTTP: {wrong}"))?;
        let httparse::Status::Complete(start) = parsed else { return Ok(Answer::Incomplete) };
        let length = match field(&head, "content-length") {
            None => 0,
            Some(text) => std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<usize>().ok())
                .ok_or("a length that is no number")?,
        };
        let Some(body) = bytes.get(start..start + length) else { return Ok(Answer::Incomplete) };
        let outcome = self.outcome(step, slot, &head, body)?;
        Ok(Answer::Whole { outcome, length: start + length })
    }
}

/// Returns the value of a header field.
fn field<'a>(head: &httparse::Response<'_, 'a>, name: &str) -> Option<&'a [u8]> {
    let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    found.map(|field| field.value)
}

impl Requests {
    fn new(queue: &str, payload: &[u8], fields: &str) -> Self {
        let queue = escaped(queue);
        let octets = "Accept: application/octet-stream\r\n\r\n";
        let put_rest = format!(
            "{fields}Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            payload.len()
        );
        Self {
            put: format!("POST /v1/queues/{queue}/tasks?priority=").into_bytes(),
            put_rest: put_rest.into_bytes(),
            take: format!("POST /v1/queues/{queue}:take?ttr=60000{fields}{octets}").into_bytes(),
            pop: format!("POST /v1/queues/{queue}:pop{fields}{octets}").into_bytes(),
            ack: format!("POST /v1/queues/{queue}/receipts/").into_bytes(),
        }
    }
}

/// Returns a name as a path has it.
fn escaped(name: &str) -> String {
    let escaped = name.bytes().map(|byte| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
        if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::Http;
    use crate::dialect::{Answer, Dialect as _, Outcome, Slot, Token};
    use crate::plan::Step;

    fn http() -> (Http, Slot) {
        let slot = Slot { queue: 0, priority: 4, member: 0, token: Token::empty(), token_queue: 0 };
        (Http::new(&["a:b".to_owned()], b"hello"), slot)
    }

    #[test]
    fn requests_are_those_of_the_api() {
        let (mut dialect, mut slot) = http();
        slot.token.set(b"1-2-3").unwrap();
        for (step, lines) in [
            (
                Step::Put,
                "POST /v1/queues/a%3Ab/tasks?priority=4 HTTP/1.1\r\nHost: localhost\r\n\
                 Content-Type: application/octet-stream\r\nContent-Length: 5\r\n\r\nhello",
            ),
            (
                Step::Take,
                "POST /v1/queues/a%3Ab:take?ttr=60000 HTTP/1.1\r\nHost: localhost\r\n\
                 Accept: application/octet-stream\r\n\r\n",
            ),
            (
                Step::Ack,
                "POST /v1/queues/a%3Ab/receipts/1-2-3:ack HTTP/1.1\r\nHost: localhost\r\n\r\n",
            ),
        ] {
            let mut out = Vec::new();
            dialect.request(step, &slot, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), lines);
        }
    }

    #[test]
    fn each_request_signs_in() {
        let (_, mut slot) = http();
        slot.token.set(b"1-2-3").unwrap();
        let mut dialect = Http::signing_in(&["q".to_owned()], b"hello", "ana", "secret");
        for step in [Step::Put, Step::Take, Step::Ack, Step::Pop] {
            let mut out = Vec::new();
            dialect.request(step, &slot, &mut out);
            let request = String::from_utf8(out).unwrap();
            let field = "\r\nHost: localhost\r\nAuthorization: Basic YW5hOnNlY3JldA==\r\n";
            assert!(request.contains(field), "{request}");
        }
    }

    #[test]
    fn answers_are_understood_whole_and_in_pieces() {
        let (mut dialect, mut slot) = http();
        let put = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}";
        let none = b"HTTP/1.1 204 No Content\r\n\r\n";
        let task = b"HTTP/1.1 200 OK\r\nPinpriq-Receipt: 7-8-9\r\nContent-Length: 5\r\n\r\nhello";
        let stale = b"HTTP/1.1 409 Conflict\r\ncontent-length: 1\r\n\r\nx";
        for (step, bytes, outcome) in [
            (Step::Put, &put[..], Outcome::Done),
            (Step::Take, none, Outcome::Empty),
            (Step::Take, task, Outcome::Done),
            (Step::Pop, task, Outcome::Done),
            (Step::Ack, none, Outcome::Done),
            (Step::Ack, stale, Outcome::Refused(b"x")),
        ] {
            for end in 0..bytes.len() {
                let answer = dialect.answer(step, &mut slot, &bytes[..end]);
                assert_eq!(answer, Ok(Answer::Incomplete), "{end}");
            }
            let more = [bytes, put].concat();
            let answer = dialect.answer(step, &mut slot, &more).unwrap();
            assert_eq!(answer, Answer::Whole { outcome, length: bytes.len() });
        }
        assert_eq!(slot.token.bytes(), b"7-8-9");
        let other = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother";
        for (step, bytes) in [(Step::Take, &other[..]), (Step::Put, task), (Step::Put, b"nonsense")]
        {
            assert!(dialect.answer(step, &mut slot, bytes).is_err());
        }
    }
}
