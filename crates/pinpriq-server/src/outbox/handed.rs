//! What an outbox hands to the shard that has the client's connection, which stands for a socket.
//!
//! That shard puts the answers of several shards in order, so it has to know where each begins and
//! ends. Bytes count as accepted once it says so.

use std::collections::VecDeque;

use pinpriq_engine::reply::{Output, Reply};

use super::{Answer, Encode, Outbox};
use crate::mailbox::{Part, Piece};

/// What was encoded and what was handed over of it.
#[derive(Default)]
pub(super) struct Handed {
    /// Complete answers that were not handed over, each with the place in `encoded` behind it.
    complete: VecDeque<(u64, Complete)>,
    /// Up to where bytes were handed over.
    to: u64,
}

enum Complete {
    Reply,
    Delivery,
    Part(Part),
}

impl Outbox {
    /// An outbox whose answers go to another shard.
    pub(crate) fn handing_over() -> Self {
        Self { handed: Some(Box::default()), ..Self::default() }
    }

    /// Adds a part of an answer that another shard joins.
    pub(crate) fn push_part(&mut self, part: Part) {
        self.push_answer(Answer::Part(part), 0);
    }

    /// Notes that an answer has just been encoded whole, and takes out of it what is handed over
    /// as it is.
    #[inline(never)]
    pub(super) fn note_complete(&mut self, encoder: &impl Encode, answer: &mut Answer) {
        let Some(handed) = &mut self.handed else { return };
        let last = handed.complete.back().map_or(handed.to, |(end, _)| *end).max(handed.to);
        let complete = match answer {
            Answer::Output(output) if encoder.is_part(output) => match output {
                Output::Reply { reply, .. } => {
                    Complete::Part(Part::Reply(std::mem::replace(reply, Reply::Done)))
                }
                Output::Delivery { .. } => return,
            },
            Answer::Part(_) => match std::mem::replace(answer, Answer::Lost) {
                Answer::Part(part) => Complete::Part(part),
                _ => return,
            },
            // What has no bytes answers nothing, such as a push.
            _ if self.encoded == last => return,
            Answer::Output(Output::Delivery { .. }) => Complete::Delivery,
            _ => Complete::Reply,
        };
        handed.complete.push_back((self.encoded, complete));
    }

    /// Everything that was encoded since it was asked for last.
    pub(crate) fn hand_over(&mut self) -> (Vec<Piece>, Vec<u8>) {
        let unfinished = match self.waiting.front().map(|waiting| &waiting.answer) {
            Some(Answer::Output(Output::Delivery { .. })) => Complete::Delivery,
            _ => Complete::Reply,
        };
        let accepted = self.encoded - self.encoded_bytes() as u64;
        let Some(handed) = &mut self.handed else { return (Vec::new(), Vec::new()) };
        let mut at = handed.to;
        let mut pieces = Vec::with_capacity(handed.complete.len());
        let length_to = |at: &mut u64, end: u64| {
            usize::try_from(end - std::mem::replace(at, end)).unwrap_or(usize::MAX)
        };
        for (end, complete) in handed.complete.drain(..) {
            pieces.push(match complete {
                Complete::Reply => Piece::Reply { length: length_to(&mut at, end), last: true },
                Complete::Delivery => {
                    Piece::Delivery { length: length_to(&mut at, end), last: true }
                }
                Complete::Part(part) => Piece::Part(part),
            });
        }
        if at < self.encoded {
            let length = length_to(&mut at, self.encoded);
            pieces.push(match unfinished {
                Complete::Delivery => Piece::Delivery { length, last: false },
                _ => Piece::Reply { length, last: false },
            });
        }
        let from = usize::try_from(handed.to - accepted).unwrap_or(usize::MAX);
        handed.to = self.encoded;
        (pieces, self.unwritten()[from..].to_vec())
    }
}
