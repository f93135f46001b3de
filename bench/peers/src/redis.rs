//! Redis as a priority queue, in two ways, and each of them with a wait for a replica.
//!
//! [`Popping`] is the usual one: a sorted set, `ZADD` and `ZPOPMIN`. What is popped is gone,
//! whatever becomes of the worker.
//!
//! [`Leasing`] gives what pinpriq gives, and as cheaply as can be: a put is the same `ZADD`. A take
//! is a script of two calls that moves the task from the set of ready ones to the set of leases,
//! scored by a deadline, under a token of the client's own that is new with each lease. An ack is a
//! `ZREM` of that token, which removes nothing if the task has been leased to another one since.
//! What such a queue needs besides, above all the return of tasks whose lease is over, would run
//! beside this and is not measured.
//!
//! [`Waiting`] sends `WAIT 1 0` behind each request, whose answer counts when a replica has the
//! change. `WAIT` holds up what comes behind it on its connection.

use std::net::SocketAddr;
use std::time::Duration;

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_load::reply::{Missing, Part, Parts, unexpected};
use pinpriq_load::{Answer, Dialect, Outcome, Slot, Step};
use pinpriq_proto::wire::resp::{Value, Words, put_command, put_word};

/// Takes a task. Its deadline and its token come from the client.
const TAKE: &str = "\
local popped = redis.call('ZPOPMIN', 'jobs')
if not popped[1] then return false end
local leased = ARGV[2] .. popped[1]
redis.call('ZADD', 'leases', ARGV[1], leased)
return leased";

/// A deadline by the clock of the client, in Unix milliseconds. Nothing waits for it here.
const DEADLINE_MS: &[u8] = b"4102444800000";

/// How many digits the number of a task has, and the token of a lease.
const ID_BYTES: usize = 12;

/// How long loading a script may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A sorted set whose members are a number and the payload.
pub(crate) struct Popping {
    payload: Vec<u8>,
    last_id: u64,
}

impl Popping {
    pub(crate) fn new(payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), last_id: 0 }
    }

    fn put(&mut self, priority: u32, out: &mut Vec<u8>) {
        self.last_id += 1;
        out.extend_from_slice(b"*4\r\n$4\r\nZADD\r\n$4\r\njobs\r\n");
        let mut score = [b'0'; 6];
        put_digits(&mut score, u64::from(priority));
        put_word(out, &[&score]);
        let mut id = [b'0'; ID_BYTES];
        put_digits(&mut id, self.last_id);
        put_word(out, &[&id, &self.payload]);
    }

    fn outcome<'a>(&self, step: Step, parts: &mut Parts<'a>) -> Result<Outcome<'a>, Missing> {
        Ok(match (step, parts.part()?) {
            (_, Part::Error(sentence)) => Outcome::Refused(sentence),
            (Step::Put, Part::Integer(1)) => Outcome::Done,
            (Step::Pop, Part::Array(0)) => Outcome::Empty,
            (Step::Pop, Part::Array(2)) => {
                let member = parts.bulk()?;
                parts.bulk()?;
                if member.get(ID_BYTES..) != Some(&self.payload) {
                    return Err(unexpected("another payload"));
                }
                Outcome::Done
            }
            (_, other) => return Err(unexpected(&format!("{other:?}"))),
        })
    }
}

impl Dialect for Popping {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        match step {
            Step::Put => self.put(slot.priority, out),
            _ => put_command(out, &[b"ZPOPMIN", b"jobs"]),
        }
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        _slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let mut parts = Parts::new(bytes);
        let outcome = self.outcome(step, &mut parts);
        parts.answer(outcome)
    }
}

/// The same with leases. Its script is loaded.
pub(crate) struct Leasing {
    tasks: Popping,
    /// The part of a take before the token.
    take: Vec<u8>,
    last_token: u64,
}

impl Leasing {
    /// Loads the script into the server at `address`.
    pub(crate) fn open(address: SocketAddr, payload: &[u8]) -> Result<Self, String> {
        let digest = load(address).map_err(|error| error.to_string())?;
        let mut take = b"*5\r\n".to_vec();
        for word in [b"EVALSHA", digest.as_slice(), b"0", DEADLINE_MS] {
            put_word(&mut take, &[word]);
        }
        Ok(Self { tasks: Popping::new(payload), take, last_token: 0 })
    }

    fn outcome<'a>(
        &self,
        step: Step,
        slot: &mut Slot,
        parts: &mut Parts<'a>,
    ) -> Result<Outcome<'a>, Missing> {
        Ok(match (step, parts.part()?) {
            (_, Part::Error(sentence)) => Outcome::Refused(sentence),
            (Step::Put | Step::Ack, Part::Integer(1)) => Outcome::Done,
            (Step::Take, Part::Null) => Outcome::Empty,
            (Step::Take, Part::Bulk(leased)) => {
                let Some((token, payload)) = leased.split_at_checked(2 * ID_BYTES) else {
                    return Err(unexpected("a task without its number"));
                };
                if payload != self.tasks.payload {
                    return Err(unexpected("another payload"));
                }
                slot.token.set(token).map_err(Missing::Sense)?;
                Outcome::Done
            }
            (_, other) => return Err(unexpected(&format!("{other:?}"))),
        })
    }
}

impl Dialect for Leasing {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        match step {
            Step::Put => self.tasks.put(slot.priority, out),
            Step::Take => {
                self.last_token += 1;
                out.extend_from_slice(&self.take);
                let mut token = [b'0'; ID_BYTES];
                put_digits(&mut token, self.last_token);
                put_word(out, &[&token]);
            }
            _ => {
                out.extend_from_slice(b"*3\r\n$4\r\nZREM\r\n$6\r\nleases\r\n");
                put_word(out, &[slot.token.bytes(), &self.tasks.payload]);
            }
        }
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let mut parts = Parts::new(bytes);
        let outcome = self.outcome(step, slot, &mut parts);
        parts.answer(outcome)
    }
}

/// Waits after each request until a replica has what it changed.
pub(crate) struct Waiting<D>(pub(crate) D);

impl<D: Dialect> Dialect for Waiting<D> {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        self.0.request(step, slot, out);
        put_command(out, &[b"WAIT", b"1", b"0"]);
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let Answer::Whole { outcome, length } = self.0.answer(step, slot, bytes)? else {
            return Ok(Answer::Incomplete);
        };
        let mut parts = Parts::new(bytes.get(length..).unwrap_or_default());
        let replicas = parts.part().and_then(|part| match part {
            Part::Integer(1..) => Ok(outcome),
            other => Err(unexpected(&format!("{other:?} instead of a replica"))),
        });
        Ok(match parts.answer(replicas)? {
            Answer::Whole { outcome, length: more } => {
                Answer::Whole { outcome, length: length + more }
            }
            Answer::Incomplete => Answer::Incomplete,
        })
    }
}

/// Loads the script, and returns its digest.
fn load(address: SocketAddr) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut line = Line::connect(address)?;
    line.limit_waiting(Some(PATIENCE));
    match Resp::over(line).ask(&Words::new("SCRIPT LOAD").bytes(TAKE))? {
        Value::Bulk(digest) => Ok(digest),
        other => Err(format!("{other:?}").into()),
    }
}

/// Fills all of `digits` with a number in decimal, padded with zeros.
fn put_digits(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}
