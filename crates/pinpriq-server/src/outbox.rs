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
use std::sync::Arc;

use pinpriq_engine::reply::{Output, Refusal, Reply};
use pinpriq_engine::task::{Bytes, Receipt, TaskRecord};
use pinpriq_store::durable::{Holds, Wanted};
use pinpriq_store::{Position, Volume};

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
    /// Appends the next piece of `output` to `out`, about `room` bytes at most. `progress` counts
    /// the tasks that are written, or whatever else the output is made of, and is 0 at first. Only
    /// the first `known` tasks can be written yet; up to there, at least something is. Returns
    /// whether the output is complete.
    fn encode(
        &self,
        output: &Output,
        dialect: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
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
    in_flight: VecDeque<(u64, Answer, Holds)>,
    /// Whether the first answer cannot go on before payloads were read back.
    lacks_payload: bool,
    /// The task of the first answer from which on payloads are being read back, and how many.
    reading: Option<(usize, usize)>,
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
    /// What keeps its payloads readable that are not in memory.
    holds: Holds,
}

impl Waiting {
    /// One that waits for nothing but its turn, and knows no dialects.
    fn for_its_turn(answer: Answer, bytes: usize) -> Self {
        let (after, dialect) = (Position::default(), Dialect::default());
        Self { after, answer, dialect, bytes, holds: Holds::default() }
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
#[derive(Default)]
pub(crate) struct Unsent {
    /// Popped tasks, which would be lost.
    pub(crate) popped: Vec<TaskRecord>,
    /// Such tasks whose payloads have to be read back first.
    pub(crate) popped_away: Vec<(TaskRecord, Arc<dyn Volume>)>,
    /// Leases of which the client knows nothing, with their queues.
    pub(crate) leases: Vec<Receipt>,
}

impl Outbox {
    /// Adds an answer of the engine.
    #[inline]
    pub(crate) fn push(
        &mut self,
        after: Position,
        (output, holds): (Output, Holds),
        dialect: Dialect,
    ) {
        let bytes = answer_bytes(&output);
        self.waiting_bytes += bytes;
        let answer = Answer::Output(output);
        self.waiting.push_back(Waiting { after, answer, dialect, bytes, holds });
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
    /// store has failed, and nobody knows what became of the changes. Payloads that were left in
    /// the store are not read any more; where no refusal can take the place of an answer with such
    /// payloads, nothing is sent from there on.
    pub(crate) fn give_up(&mut self, reached: Position, refusal: &Refusal, can_tell: bool) {
        (self.lacks_payload, self.reading) = (false, None);
        let has_begun = self.progress > 0;
        for (at, waiting) in self.waiting.iter_mut().enumerate() {
            let is_unread = !waiting.holds.is_empty();
            if waiting.after <= reached && !is_unread {
                continue;
            }
            waiting.after = Position::default();
            waiting.holds = Holds::default();
            let is_lost = is_unread && (!can_tell || (at == 0 && has_begun));
            match &mut waiting.answer {
                Answer::Output(Output::Reply { reply, .. }) if !is_lost => {
                    *reply = Reply::Refused(refusal.clone());
                }
                // Every answer keeps its place, so a delivery is emptied and not taken out.
                delivery @ Answer::Output(Output::Delivery { .. }) if !is_unread => {
                    (*delivery, waiting.bytes) = (Answer::Bytes(Vec::new()), 0);
                }
                output @ Answer::Output(_) => (*output, waiting.bytes) = (Answer::Lost, 0),
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
                    let dialect = first.dialect;
                    if first.holds.is_empty() {
                        encoder.encode(output, dialect, progress, out, room, usize::MAX)
                    } else {
                        let from = *progress;
                        let known = known_tasks(output, from);
                        let complete = encoder.encode(output, dialect, progress, out, room, known);
                        forget_payloads(output, from..*progress);
                        self.lacks_payload = !complete && *progress == known;
                        complete
                    }
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
                if self.lacks_payload || self.awaits_more() {
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
                self.in_flight.push_back((self.encoded, done.answer, done.holds));
            }
        }
    }

    /// Whether the first answer cannot go on before payloads were read back.
    pub(crate) const fn lacks_payload(&self) -> bool {
        self.lacks_payload && self.reading.is_none()
    }

    /// The payloads to be read back next, of about `most` bytes together and at least one, for
    /// [`Outbox::supply`]. None if nothing waits for any.
    pub(crate) fn wanted(&mut self, most: u64) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        if !self.lacks_payload() {
            return wanted;
        }
        let Some(Waiting { answer: Answer::Output(output), holds, .. }) = self.waiting.front_mut()
        else {
            return wanted;
        };
        let from = known_tasks(output, self.progress);
        let mut bytes = 0;
        for task in output.tasks_mut().iter().skip(from) {
            let Some(away) = task.away.filter(|_| is_away(task)) else { break };
            let Some(volume) = holds.volume(away.place) else { break };
            if !wanted.is_empty() && bytes + u64::from(away.bytes) > most {
                break;
            }
            bytes += u64::from(away.bytes);
            let volume = Arc::clone(volume);
            wanted.push(Wanted { number: task.number, away, volume });
        }
        self.reading = Some((from, wanted.len()));
        wanted
    }

    /// Takes the payloads that were wanted. They may come too late, when nobody waits for them any
    /// more.
    pub(crate) fn supply(&mut self, payloads: Vec<Bytes>) {
        let Some((from, count)) = self.reading.take() else { return };
        let front = self.waiting.front_mut();
        let Some(Waiting { answer: Answer::Output(output), .. }) = front else { return };
        let tasks = output.tasks_mut().iter_mut().skip(from).take(count);
        for (task, payload) in tasks.zip(payloads) {
            task.payload = payload;
        }
        self.lacks_payload = false;
    }

    /// The oldest volume of the store that an answer keeps readable.
    pub(crate) fn oldest_volume(&self) -> Option<u32> {
        let waiting = self.waiting.iter().filter_map(|it| it.holds.oldest());
        let in_flight = self.in_flight.iter().filter_map(|(_, _, holds)| holds.oldest());
        waiting.chain(in_flight).min()
    }

    /// The encoded bytes that the socket has not taken.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Notes that the kernel accepted this many bytes. Hands out the buffer once nothing waits any
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
        while self.in_flight.front().is_some_and(|(end, ..)| *end <= sent) {
            self.in_flight.pop_front();
        }
        let is_idle = self.waiting.is_empty() && self.bytes.is_empty();
        is_idle.then(|| std::mem::take(&mut self.bytes))
    }

    /// What was in frames that were not accepted whole. Empties the outbox.
    pub(crate) fn unsent(&mut self) -> Unsent {
        let encoded = self.in_flight.drain(..).map(|(_, answer, holds)| (answer, holds));
        let waiting = self.waiting.drain(..).map(|waiting| (waiting.answer, waiting.holds));
        let mut unsent = Unsent::default();
        for (answer, holds) in encoded.chain(waiting) {
            if let Answer::Output(output) = answer {
                unsent.add(output, &holds);
            }
        }
        *self = Self::default();
        unsent
    }
}

impl Unsent {
    /// How many popped tasks there are.
    pub(crate) fn popped_count(&self) -> usize {
        self.popped.len() + self.popped_away.len()
    }

    /// Forgets the popped tasks: they are not to go back.
    pub(crate) fn forget_popped(&mut self) {
        self.popped.clear();
        self.popped_away.clear();
    }

    fn add(&mut self, output: Output, holds: &Holds) {
        let (Output::Delivery { tasks, popped, .. }
        | Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }) = output
        else {
            return;
        };
        if popped && !planted!(UnsentPopsLost) {
            for mut task in tasks {
                let away = task.away.filter(|_| is_away(&task));
                if let Some(volume) = away.and_then(|away| holds.volume(away.place)) {
                    self.popped_away.push((task, Arc::clone(volume)));
                } else {
                    task.away = None;
                    self.popped.push(task);
                }
            }
            return;
        }
        if !planted!(UnsentLeasesKept) {
            self.leases.extend(tasks.iter().filter_map(TaskRecord::receipt));
        }
    }
}

/// Whether the payload of a task was left in the store and was not read back.
fn is_away(task: &TaskRecord) -> bool {
    task.away.is_some_and(|away| away.bytes > 0) && task.payload.is_empty()
}

/// How many tasks of an output can be written, of which so many are written already.
fn known_tasks(output: &mut Output, from: usize) -> usize {
    let tasks = output.tasks_mut();
    let away = tasks.iter().skip(from).position(is_away);
    away.map_or(tasks.len(), |ahead| from + ahead)
}

/// Forgets payloads that were read back and are written now.
fn forget_payloads(output: &mut Output, written: std::ops::Range<usize>) {
    for task in output.tasks_mut().get_mut(written).unwrap_or_default() {
        if task.away.is_some() {
            task.payload = Bytes::default();
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
