//! pinpriq over RESP: put, take under a lease, ack and pop; join, publish and leave.
//!
//! Everything that is the same for every request is written once. Replies are compared with what
//! was put, so a run in a queue with other tasks ends with an error.

use pinpriq_proto::wire::resp::{put_command, put_word};

use crate::dialect::{Answer, Dialect, Outcome, Slot, Token};
use crate::plan::Step;
use crate::reply::{Missing, Part, Parts, unexpected};

/// The length of a lease, longer than any request should take.
const LEASE_MS: &[u8] = b"60000";

/// How long a member lives without a take, longer than any run has without one.
const MEMBER_LEASE_MS: &[u8] = b"600000";

/// The requests of one queue or topic.
#[derive(Clone, Debug)]
struct Words {
    /// The part of a put or publish before the payload.
    put: Vec<u8>,
    publish: Vec<u8>,
    /// A complete take, for each member if there are any.
    takes: Vec<Vec<u8>>,
    /// A complete join, for each member.
    joins: Vec<Vec<u8>>,
    pop: Vec<u8>,
    /// The part of a take that finishes a task as well, before that.
    done_take: Vec<u8>,
    /// The part that says which task of this queue is done, before the receipt.
    done: Vec<u8>,
    /// The part of an ack before the receipt.
    ack: Vec<u8>,
}

/// The RESP door.
#[derive(Clone, Debug)]
pub struct Resp {
    words: Vec<Words>,
    /// A complete leave, for each member.
    leaves: Vec<Vec<u8>>,
    /// What follows the payload of a put, for each priority.
    priorities: Vec<Vec<u8>>,
    payload: Vec<u8>,
    members: u32,
    /// What signs a connection in, if anything does.
    sign_in: Vec<u8>,
}

impl Resp {
    /// Returns a dialect for these queues that puts tasks with this payload and priorities from 0.
    #[must_use]
    pub fn new(queues: &[String], payload: &[u8], priorities: u32) -> Self {
        Self::with_members(queues, payload, priorities, &[])
    }

    /// Uses these topics instead. All takes are from their members.
    #[must_use]
    pub fn with_members(
        topics: &[String],
        payload: &[u8],
        priorities: u32,
        members: &[String],
    ) -> Self {
        let priorities = (0..priorities.max(1))
            .map(|priority| {
                let mut tail = b"\r\n".to_vec();
                put_words(&mut tail, &[b"PRIORITY", priority.to_string().as_bytes()]);
                tail
            })
            .collect();
        Self {
            words: topics.iter().map(|topic| Words::new(topic, payload, members)).collect(),
            leaves: members.iter().map(|member| whole(&[b"LEAVE", member.as_bytes()])).collect(),
            priorities,
            payload: payload.to_vec(),
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
            sign_in: Vec::new(),
        }
    }

    /// Signs each connection in, as this user with this password or token.
    #[must_use]
    pub fn signing_in(self, user: &str, secret: &str) -> Self {
        let sign_in = whole(&[b"AUTH", user.as_bytes(), secret.as_bytes()]);
        Self { sign_in, ..self }
    }

    /// Reads a taken task and returns its receipt, or `None` if there is no task.
    fn task<'a>(&self, parts: &mut Parts<'a>) -> Result<Option<Part<'a>>, Missing> {
        match parts.part()? {
            Part::Array(0) => return Ok(None),
            Part::Array(1) => {}
            error @ Part::Error(_) => return Ok(Some(error)),
            other => return Err(unexpected(&format!("{other:?} to a take"))),
        }
        if parts.part()? != Part::Array(4) {
            return Err(unexpected("a task that is no array of four"));
        }
        parts.bulk()?;
        parts.bulk()?;
        let receipt = parts.part()?;
        if parts.bulk()? != self.payload {
            return Err(Missing::Sense(
                "a task with another payload: the queue is used by others, or by a run before"
                    .to_owned(),
            ));
        }
        Ok(Some(receipt))
    }

    /// Reads the reply to `step`, which may be a refusal.
    fn outcome<'a>(
        &self,
        step: Step,
        slot: &mut Slot,
        parts: &mut Parts<'a>,
    ) -> Result<Outcome<'a>, Missing> {
        if matches!(step, Step::Take | Step::DoneTake | Step::Pop) {
            return Ok(match self.task(parts)? {
                None => {
                    if step == Step::DoneTake {
                        slot.token = Token::empty();
                    }
                    Outcome::Empty
                }
                Some(Part::Error(sentence)) => {
                    // A task whose lease is over must not spoil the next requests too.
                    if step == Step::DoneTake && sentence.starts_with(b"STALE ") {
                        slot.token = Token::empty();
                    }
                    Outcome::Refused(sentence)
                }
                Some(Part::Bulk(receipt)) if step != Step::Pop => {
                    slot.token.set(receipt).map_err(Missing::Sense)?;
                    slot.token_queue = slot.queue;
                    Outcome::Done
                }
                Some(Part::Null) if step == Step::Pop => Outcome::Done,
                Some(other) => return Err(unexpected(&format!("{other:?} as a receipt"))),
            });
        }
        Ok(match (step, parts.part()?) {
            (_, Part::Error(sentence)) => Outcome::Refused(sentence),
            (Step::Publish, Part::Integer(lanes)) if lanes != i64::from(self.members) => {
                return Err(Missing::Sense(format!(
                    "a publication to {lanes} lanes instead of {}: the topic is used by others, or \
                     by a run before that did not come to its end",
                    self.members
                )));
            }
            (Step::Put, Part::Bulk(_))
            | (Step::Ack, Part::Simple(b"OK"))
            | (Step::Publish | Step::Join | Step::Leave, Part::Integer(_)) => Outcome::Done,
            (step, other) => return Err(unexpected(&format!("{other:?} to a {}", step.word()))),
        })
    }
}

impl Dialect for Resp {
    fn opening(&self) -> (Vec<u8>, usize) {
        (self.sign_in.clone(), usize::from(!self.sign_in.is_empty()))
    }

    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        let Some(words) = self.words.get(slot.queue as usize) else { return };
        match step {
            Step::Put | Step::Publish => {
                out.extend_from_slice(if step == Step::Put { &words.put } else { &words.publish });
                out.extend_from_slice(&self.payload);
                let priority = self.priorities.get(slot.priority as usize);
                out.extend_from_slice(priority.map_or(b"\r\n", Vec::as_slice));
            }
            Step::Take | Step::Join | Step::Leave => {
                let of_members = match step {
                    Step::Take => &words.takes,
                    Step::Join => &words.joins,
                    _ => &self.leaves,
                };
                let of_member = of_members.get(slot.member as usize);
                out.extend_from_slice(of_member.map(Vec::as_slice).unwrap_or_default());
            }
            Step::DoneTake if slot.token.is_empty() => {
                out.extend_from_slice(words.takes.first().map(Vec::as_slice).unwrap_or_default());
            }
            Step::DoneTake => {
                out.extend_from_slice(&words.done_take);
                let done = self.words.get(slot.token_queue as usize);
                out.extend_from_slice(done.map(|of| of.done.as_slice()).unwrap_or_default());
                put_words(out, &[slot.token.bytes()]);
            }
            Step::Pop => out.extend_from_slice(&words.pop),
            Step::Ack => {
                out.extend_from_slice(&words.ack);
                put_words(out, &[slot.token.bytes()]);
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

impl Words {
    fn new(topic: &str, payload: &[u8], members: &[String]) -> Self {
        let name = topic.as_bytes();
        let before_payload = |command: &[u8]| {
            let mut out = b"*5\r\n".to_vec();
            put_words(&mut out, &[command, name]);
            out.extend_from_slice(format!("${}\r\n", payload.len()).as_bytes());
            out
        };
        let take = [&b"TAKE"[..], name, b"TTR", LEASE_MS];
        let takes = if members.is_empty() {
            vec![whole(&take)]
        } else {
            let of = |member: &String| {
                whole(&[take.as_slice(), &[&b"MEMBER"[..], member.as_bytes()]].concat())
            };
            members.iter().map(of).collect()
        };
        let join =
            |member: &String| whole(&[b"JOIN", name, member.as_bytes(), b"LEASE", MEMBER_LEASE_MS]);
        let mut done_take = b"*7\r\n".to_vec();
        put_words(&mut done_take, &take);
        let mut done = Vec::new();
        put_words(&mut done, &[b"DONE", name]);
        let mut ack = b"*3\r\n".to_vec();
        put_words(&mut ack, &[b"ACK", name]);
        Self {
            put: before_payload(b"PUT"),
            publish: before_payload(b"PUBLISH"),
            takes,
            joins: members.iter().map(join).collect(),
            pop: whole(&[b"POP", name]),
            done_take,
            done,
            ack,
        }
    }
}

/// Returns a command that never changes.
fn whole(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    put_command(&mut out, words);
    out
}

/// Appends words of a command without their number.
fn put_words(out: &mut Vec<u8>, words: &[&[u8]]) {
    for word in words {
        put_word(out, &[word]);
    }
}

#[cfg(test)]
mod tests;
