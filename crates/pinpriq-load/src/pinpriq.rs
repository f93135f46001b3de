//! The pinpriq protocol: push and pop.
//!
//! A push has no reply. But the server replies to a later pop of the same connection only after
//! every earlier push was accepted and is durable. So a put is a push, and a pop from a queue that
//! is always empty. A server that refuses a push closes the connection, which ends the run.

use pinpriq_proto::wire::{Framing, Piece, ReplyDecoder, Request};

use crate::dialect::{Answer, Dialect, Outcome, Slot};
use crate::plan::Step;

/// The longest that a packet may wait.
const TTL_MS: u16 = u16::MAX;

/// The pinpriq door.
#[derive(Clone, Debug)]
pub struct Pinpriq {
    queues: Vec<String>,
    /// The queue that nothing is ever pushed to.
    empty_queue: String,
    payload: Vec<u8>,
    /// The last key used. Packets with the same key leave together, so each gets its own.
    last_key: u64,
}

impl Pinpriq {
    /// Returns a dialect for these queues that pushes packets with this payload. The keys of the
    /// packets follow this one, so it should differ from run to run.
    #[must_use]
    pub fn new(queues: &[String], payload: &[u8], key: u64) -> Self {
        let empty_queue = format!("{}-fence", queues.first().map_or("q", String::as_str));
        Self { queues: queues.to_vec(), empty_queue, payload: payload.to_vec(), last_key: key }
    }

    fn pop(queue: &str, out: &mut Vec<u8>) {
        // Names that are too long were refused before the run began.
        let _ = Request::Pop { queue: queue.as_bytes() }.put(out);
    }
}

impl Dialect for Pinpriq {
    fn request(&mut self, step: Step, slot: &Slot, out: &mut Vec<u8>) {
        let Some(queue) = self.queues.get(slot.queue as usize) else { return };
        if step != Step::Put {
            Self::pop(queue, out);
            return;
        }
        self.last_key = self.last_key.wrapping_add(1);
        let priority = u8::try_from(slot.priority.saturating_add(1)).unwrap_or(u8::MAX);
        let push = Request::Push {
            queue: queue.as_bytes(),
            ttl_ms: TTL_MS,
            priority,
            key: &self.last_key.to_be_bytes(),
            payload: &self.payload,
        };
        // Payloads that are too long were refused before the run began.
        let _ = push.put(out);
        Self::pop(&self.empty_queue, out);
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        _slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let mut decoder = ReplyDecoder::new(Framing::Counted);
        let Piece::Count { packets, length: used } = decoder.decode(bytes) else {
            return Ok(Answer::Incomplete);
        };
        let rest = bytes.get(used..).unwrap_or_default();
        match (step, packets) {
            (Step::Put, 0) => Ok(Answer::Whole { outcome: Outcome::Done, length: used }),
            (Step::Pop, 0) => Ok(Answer::Whole { outcome: Outcome::Empty, length: used }),
            (Step::Pop, 1) => match decoder.decode(rest) {
                Piece::Packet { packet, length, .. } if packet.payload == self.payload => {
                    Ok(Answer::Whole { outcome: Outcome::Done, length: used + length })
                }
                Piece::Packet { .. } => Err("a packet with another payload: the queue is used \
                                             by others, or by a run before"
                    .to_owned()),
                _ => Ok(Answer::Incomplete),
            },
            (step, packets) => Err(format!("{packets} packets in answer to a {}", step.word())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pinpriq;
    use crate::dialect::{Answer, Dialect as _, Outcome, Slot, Token};
    use crate::plan::Step;

    fn pinpriq() -> (Pinpriq, Slot) {
        let slot = Slot { queue: 0, priority: 4, member: 0, token: Token::empty(), token_queue: 0 };
        (Pinpriq::new(&["q".to_owned()], b"hello", 0), slot)
    }

    #[test]
    fn a_put_is_a_push_and_a_pop_from_an_empty_queue() {
        let (mut dialect, slot) = pinpriq();
        let mut out = Vec::new();
        dialect.request(Step::Put, &slot, &mut out);
        let push = b"\x70\0\x01\xff\xff\x05\0\x08\0\x05\0\0\0\0\0\0\0\x01helloq";
        assert_eq!(out, [&push[..], b"\x50\0\x07q-fence"].concat());
        out.clear();
        dialect.request(Step::Pop, &slot, &mut out);
        assert_eq!(out, b"\x50\0\x01q");
    }

    #[test]
    fn answers_are_understood_whole_and_in_pieces() {
        let (mut dialect, mut slot) = pinpriq();
        let table = [
            (Step::Put, &b"\0\0"[..], Outcome::Done),
            (Step::Pop, b"\0\0", Outcome::Empty),
            (Step::Pop, b"\0\x01\0\x01\0\x05khello", Outcome::Done),
        ];
        for (step, bytes, outcome) in table {
            for end in 0..bytes.len() {
                let answer = dialect.answer(step, &mut slot, &bytes[..end]);
                assert_eq!(answer, Ok(Answer::Incomplete));
            }
            let answer = dialect.answer(step, &mut slot, bytes);
            assert_eq!(answer, Ok(Answer::Whole { outcome, length: bytes.len() }));
        }
        for (step, bytes) in [
            (Step::Put, &b"\0\x01\0\x01\0\x05khello"[..]),
            (Step::Pop, b"\0\x01\0\x01\0\x05kother"),
            (Step::Pop, b"\0\x02"),
        ] {
            assert!(dialect.answer(step, &mut slot, bytes).is_err());
        }
    }
}
