//! What waits to be sent to one client: answers in order, each until its change is durable.
//!
//! Answers are turned into bytes only as the socket takes them, so that a slow reader costs what
//! the tasks cost anyway and a buffer of bounded size. Popped tasks are kept until the last byte of
//! their frame was accepted by the kernel; those that were not come back through
//! [`Outbox::unsent`].
//!
//! With several shards, answers of others have their place in the order as well: see `abroad`.
//! Where the client has its connection to another shard, that shard stands for the socket: see
//! `handed`.

mod abroad;
mod handed;

use std::collections::VecDeque;

use pinpriq_engine::reply::{Output, Refusal, Reply};
use pinpriq_engine::task::{Receipt, TaskRecord};
use pinpriq_store::Position;

pub(crate) use self::abroad::Join;
use self::abroad::{Abroad, Gathered};
use self::handed::Handed;
use crate::config::Limits;
use crate::mailbox::Part;

/// Which of the dialects of a door's protocol an answer is written in. The doors know what it
/// means; a change takes effect in its place among the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dialect(pub(crate) u8);

/// Turns answers into the bytes of one protocol.
pub(crate) trait Encode {
    /// Appends the next piece of `output` to `out`: at least something, and about `room` bytes at
    /// most. `progress` is 0 at first and the encoder's own from then on. Answers whether the
    /// output is complete.
    fn encode(
        &self,
        output: &Output,
        dialect: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
    ) -> bool;

    /// Whether `output` is but one shard's part of a reply, to be joined with others before it is
    /// encoded.
    fn is_part(&self, _output: &Output) -> bool {
        false
    }
}

/// The answers of one client that were not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// The bytes that they occupy, about.
    waiting_bytes: usize,
    /// How much of the first of `waiting` is encoded already, in the encoder's own terms.
    progress: usize,
    /// Encoded bytes of which those before `head` were accepted.
    bytes: Vec<u8>,
    head: usize,
    /// How many bytes were ever encoded.
    encoded: u64,
    /// Tasks in frames that are encoded, with the end of their frame in `encoded`.
    in_flight: VecDeque<(u64, Answer)>,
    /// How many answers have left `waiting`.
    passed: u64,
    /// What is to come from other shards, if anything ever was.
    abroad: Option<Box<Abroad>>,
    /// What the shard that has the connection was handed, if it is another.
    handed: Option<Box<Handed>>,
}

struct Waiting {
    after: Position,
    answer: Answer,
    dialect: Dialect,
    /// The bytes that it occupies, about.
    bytes: usize,
}

impl Waiting {
    /// One that waits for nothing but its turn, and knows no dialects.
    fn for_its_turn(answer: Answer, bytes: usize) -> Self {
        Self { after: Position::default(), answer, dialect: Dialect::default(), bytes }
    }
}

enum Answer {
    /// An answer of the engine.
    Output(Output),
    /// An answer of the door, encoded already.
    Bytes(Vec<u8>),
    /// An answer of another shard, as far as it has come and was not sent, and whether that is
    /// all.
    Abroad { from: usize, bytes: Vec<u8>, whole: bool },
    /// An answer of which every shard gives a part.
    Gathered(Gathered),
    /// An answer that will never come. Nothing behind it is sent, or it would be taken for it.
    Lost,
    /// A part of an answer that another shard joins.
    Part(Part),
}

impl Answer {
    /// Whether the client holds something once it has got this answer.
    fn hands_over(&self) -> bool {
        match self {
            Self::Output(Output::Delivery { .. }) => true,
            Self::Output(Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }) => {
                !tasks.is_empty()
            }
            Self::Output(Output::Reply { .. })
            | Self::Bytes(_)
            | Self::Abroad { .. }
            | Self::Gathered(_)
            | Self::Lost
            | Self::Part(_) => false,
        }
    }
}

/// What was handed to a client that never got it.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    /// Popped tasks, which would be lost.
    pub(crate) popped: Vec<TaskRecord>,
    /// Leases of which the client knows nothing, with their queues.
    pub(crate) leases: Vec<Receipt>,
}

impl Outbox {
    /// Adds an answer of the engine.
    #[inline]
    pub(crate) fn push(&mut self, after: Position, output: Output, dialect: Dialect) {
        let bytes = answer_bytes(&output);
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { after, answer: Answer::Output(output), dialect, bytes });
    }

    /// Adds an answer of the door itself, which waits for nothing but its turn.
    pub(crate) fn push_bytes(&mut self, encoded: Vec<u8>) {
        let bytes = encoded.len();
        self.waiting_bytes += bytes;
        self.push_answer(Answer::Bytes(encoded), bytes);
    }

    /// Adds an answer that waits for nothing and knows no dialects.
    fn push_answer(&mut self, answer: Answer, bytes: usize) {
        self.waiting.push_back(Waiting::for_its_turn(answer, bytes));
    }

    /// Turns the replies that would wait for ever into refusals, and drops such deliveries: the
    /// store has failed, and nobody knows what became of the changes.
    pub(crate) fn give_up(&mut self, reached: Position, refusal: &Refusal) {
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.after > reached) {
            waiting.after = Position::default();
            match &mut waiting.answer {
                Answer::Output(Output::Reply { reply, .. }) => {
                    *reply = Reply::Refused(refusal.clone());
                }
                // Every answer keeps its place, so a delivery is emptied and not taken out.
                delivery @ Answer::Output(Output::Delivery { .. }) => {
                    (*delivery, waiting.bytes) = (Answer::Bytes(Vec::new()), 0);
                }
                _ => {}
            }
        }
        self.waiting_bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
    }

    /// How many answers wait, complete or in part.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether so much waits that the client should be given nothing more to wait for.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.waiting.len() >= limits.in_flight_max
            || self.waiting_bytes + self.encoded_bytes() >= limits.out_bytes_max
    }

    /// Whether no answer waits to be encoded.
    pub(crate) fn is_all_encoded(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many encoded bytes wait for the socket.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.bytes.len() - self.head
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.encoded_bytes() == 0
    }

    /// Encodes answers that need not wait any more, as far as `most` bytes ahead of the socket.
    /// `fresh` gives a buffer where there is none.
    pub(crate) fn encode(
        &mut self,
        encoder: &impl Encode,
        reached: Position,
        most: usize,
        fresh: impl Fn() -> Vec<u8>,
    ) {
        while let Some(first) = self.waiting.front_mut() {
            let most = if planted!(OutBufferUnbounded) { usize::MAX / 2 } else { most };
            let room = most.saturating_sub(self.bytes.len() - self.head);
            if first.after > reached || room == 0 {
                return;
            }
            if self.bytes.capacity() == 0 {
                self.bytes = fresh();
            }
            let before = self.bytes.len();
            let complete = match &mut first.answer {
                Answer::Output(output) if self.handed.is_some() && encoder.is_part(output) => true,
                Answer::Output(output) => {
                    let (out, progress) = (&mut self.bytes, &mut self.progress);
                    encoder.encode(output, first.dialect, progress, out, room)
                }
                Answer::Bytes(bytes) => {
                    self.bytes.extend_from_slice(bytes);
                    true
                }
                Answer::Abroad { .. } => self.encode_abroad(room),
                Answer::Gathered(_) | Answer::Lost => return,
                Answer::Part(_) => true,
            };
            self.encoded += (self.bytes.len() - before) as u64;
            if !complete {
                if self.awaits_more() {
                    return;
                }
                continue;
            }
            self.progress = 0;
            let Some(mut done) = self.waiting.pop_front() else { return };
            self.passed += 1;
            self.waiting_bytes -= done.bytes;
            if self.handed.is_some() {
                self.note_complete(encoder, &mut done.answer);
            }
            if done.answer.hands_over() && !planted!(EncodedTakenForSent) {
                self.in_flight.push_back((self.encoded, done.answer));
            }
        }
    }

    /// The encoded bytes that the socket has not taken.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Notes that the kernel accepted so many bytes. Hands out the buffer once nothing waits any
    /// more: an idle connection keeps none.
    pub(crate) fn written(&mut self, count: usize) -> Option<Vec<u8>> {
        self.head += count;
        // A slow reader may never take all there is. What is left moves when as much was taken.
        let makes_room = self.head >= self.encoded_bytes() && !planted!(SentBytesKept);
        if makes_room || self.head == self.bytes.len() {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        let sent = self.encoded - self.encoded_bytes() as u64;
        self.note_accepted_abroad(sent);
        while self.in_flight.front().is_some_and(|(end, _)| *end <= sent) {
            self.in_flight.pop_front();
        }
        let is_idle = self.waiting.is_empty() && self.bytes.is_empty();
        is_idle.then(|| std::mem::take(&mut self.bytes))
    }

    /// What was in frames that were not accepted whole. Empties the outbox.
    pub(crate) fn unsent(&mut self) -> Unsent {
        let encoded = self.in_flight.drain(..).map(|(_, answer)| answer);
        let waiting = self.waiting.drain(..).map(|waiting| waiting.answer);
        let mut unsent = Unsent::default();
        for answer in encoded.chain(waiting) {
            if let Answer::Output(output) = answer {
                unsent.add(output);
            }
        }
        *self = Self::default();
        unsent
    }
}

impl Unsent {
    fn add(&mut self, output: Output) {
        let (Output::Delivery { tasks, popped, .. }
        | Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }) = output
        else {
            return;
        };
        if popped && !planted!(UnsentPopsLost) {
            self.popped.extend(tasks);
            return;
        }
        if !planted!(UnsentLeasesKept) {
            self.leases.extend(tasks.iter().filter_map(TaskRecord::receipt));
        }
    }
}

/// How many bytes an output occupies, about. Those of one that is always small do not count.
fn answer_bytes(output: &Output) -> usize {
    match output {
        Output::Delivery { tasks, .. }
        | Output::Reply { reply: Reply::Tasks { tasks, .. } | Reply::Shown(tasks), .. } => {
            tasks.iter().map(task_bytes).sum()
        }
        Output::Reply { reply: Reply::Names { names, .. }, .. } => {
            names.iter().map(|name| size_of_val(name) + name.len()).sum()
        }
        Output::Reply { reply: Reply::Acks(answers), .. } => {
            let refusals = answers.iter().filter_map(|answer| answer.as_ref().err());
            size_of_val(&answers[..]) + refusals.map(|it| it.sentence.len()).sum::<usize>()
        }
        Output::Reply { .. } => 0,
    }
}

/// The bytes of a key and a payload, and those of the record.
fn task_bytes(task: &TaskRecord) -> usize {
    size_of::<TaskRecord>() + task.payload.len() + task.key.as_ref().map_or(0, |key| key.len())
}

#[cfg(test)]
mod tests;
