//! What waits to be sent to one client: answers in order, each until its change is durable.
//!
//! Answers are turned into bytes only as the socket takes them, so that a slow reader costs what
//! the tasks cost anyway and a buffer of bounded size. Popped tasks are kept until the last byte of
//! their frame was accepted by the kernel; those that were not come back through
//! [`Outbox::unsent`].

use std::collections::VecDeque;

use pinpriq_engine::reply::{Output, Reply};
use pinpriq_engine::task::TaskRecord;
use pinpriq_store::Position;

use crate::config::Limits;

/// Turns answers into the bytes of one protocol.
pub(crate) trait Encode {
    /// Appends the next piece of `output` to `out`: at least something, and about `room` bytes at
    /// most. `progress` is 0 at first and the encoder's own from then on. Answers whether the
    /// output is complete.
    fn encode(&self, output: &Output, progress: &mut usize, out: &mut Vec<u8>, room: usize)
    -> bool;
}

/// The answers of one client that were not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// The bytes of the tasks in them.
    waiting_bytes: usize,
    /// How much of the first of `waiting` is encoded already, in the encoder's own terms.
    progress: usize,
    /// Encoded bytes of which those before `head` were accepted.
    bytes: Vec<u8>,
    head: usize,
    /// How many bytes were ever encoded.
    encoded: u64,
    /// Popped tasks of frames that are encoded, with the end of their frame in `encoded`.
    in_flight: VecDeque<(u64, Vec<TaskRecord>)>,
}

struct Waiting {
    after: Position,
    output: Output,
    /// The bytes of the tasks in it.
    bytes: usize,
}

impl Outbox {
    pub(crate) fn push(&mut self, after: Position, output: Output) {
        let bytes = task_bytes(&output);
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { after, output, bytes });
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

    /// How many encoded bytes wait for the socket.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.bytes.len() - self.head
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.encoded_bytes() == 0
    }

    /// Encodes answers that need not wait any more, as far as `most` bytes ahead of the socket.
    pub(crate) fn encode(&mut self, encoder: &dyn Encode, reached: Position, most: usize) {
        while let Some(first) = self.waiting.front() {
            let room = most.saturating_sub(self.encoded_bytes());
            if first.after > reached || room == 0 {
                return;
            }
            if self.head == self.bytes.len() {
                self.bytes.clear();
                self.head = 0;
            }
            let before = self.bytes.len();
            let complete = encoder.encode(&first.output, &mut self.progress, &mut self.bytes, room);
            self.encoded += (self.bytes.len() - before) as u64;
            if !complete {
                continue;
            }
            self.progress = 0;
            let Some(Waiting { output, bytes, .. }) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= bytes;
            if let Some(tasks) = popped(output) {
                self.in_flight.push_back((self.encoded, tasks));
            }
        }
    }

    /// The encoded bytes that the socket has not taken.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Notes that the kernel accepted so many bytes.
    pub(crate) fn written(&mut self, count: usize) {
        self.head += count;
        if self.head == self.bytes.len() {
            self.bytes.clear();
            self.head = 0;
        }
        let sent = self.encoded - self.encoded_bytes() as u64;
        while self.in_flight.front().is_some_and(|(end, _)| *end <= sent) {
            self.in_flight.pop_front();
        }
        if self.waiting.is_empty() && self.bytes.is_empty() {
            // An idle connection keeps no buffers.
            self.bytes = Vec::new();
        }
    }

    /// The popped tasks whose frames were not accepted whole. Empties the outbox.
    pub(crate) fn unsent(&mut self) -> Vec<TaskRecord> {
        let encoded = self.in_flight.drain(..).flat_map(|(_, tasks)| tasks);
        let waiting = self.waiting.drain(..).filter_map(|waiting| popped(waiting.output));
        let tasks = encoded.chain(waiting.flatten()).collect();
        *self = Self::default();
        tasks
    }
}

/// How many bytes of keys and payloads an output holds.
fn task_bytes(output: &Output) -> usize {
    let (Output::Delivery { tasks, .. } | Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }) =
        output
    else {
        return 0;
    };
    tasks.iter().map(|task| task.payload.len() + task.key.as_ref().map_or(0, |key| key.len())).sum()
}

/// The tasks that an output hands over for good.
fn popped(output: Output) -> Option<Vec<TaskRecord>> {
    let tasks = match output {
        Output::Delivery { tasks, popped: true, .. }
        | Output::Reply { reply: Reply::Tasks { tasks, popped: true }, .. } => tasks,
        _ => return None,
    };
    (!tasks.is_empty()).then_some(tasks)
}
