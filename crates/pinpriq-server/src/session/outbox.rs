//! What waits to be sent to one client: answers in order, each until its change is durable.
//!
//! Answers are only turned into bytes as the socket takes them. So a slow reader costs the memory
//! of its tasks, which they occupy anyway, and a buffer of bounded size. Outputs that hand tasks
//! over are kept until the kernel has accepted the last byte of their frame. Those that were not
//! sent are returned by [`Outbox::unsent`].
//!
//! With several shards, answers of others have gaps kept for them: see `gaps`. If
//! another shard has the client's connection, its outbox is handed over instead of encoded.

mod gaps;
mod recalls;
mod several;

use std::collections::VecDeque;
use std::sync::Arc;

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply, TubeShown};
use pinpriq_proto::task::{Bytes, ClientId, Receipt, RequestId, TaskId, TaskRecord};
use pinpriq_store::Position;
use pinpriq_store::durable::{Holds, Wanted};

use self::gaps::{Abroad, Gathered};
pub(crate) use self::gaps::{Join, Joined};
use self::several::{FORMER, From};
use crate::clients::about::{Dialect, PART, SILENT};
use crate::clients::unsent::{Unsent, is_away, leases_in};
use crate::config::Limits;
use crate::letters::letter::{Part, Piece};

/// A longer list of members or tubes is handed over in parts of about this many bytes, so that no
/// letter to another node is longer than what may be under way to a client.
const PART_BYTES: usize = 64 << 10;

/// Turns answers into the bytes of one protocol.
pub(crate) trait Encode {
    /// Appends the next piece of `output` to `out`, at most about `room` bytes.
    ///
    /// `progress` counts the tasks already written, or other parts of the output, and is 0 at
    /// first. Only the first `known` tasks can be written yet; until these are written, at least
    /// something is written. Returns whether the output is complete.
    fn encode(
        &self,
        output: &Output,
        dialect: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        known: usize,
    ) -> bool;
}

/// Whether a reply says that nothing has come of waiting.
fn is_empty_handed(reply: &Reply) -> bool {
    match reply.bare() {
        Reply::Tasks { tasks, .. } => tasks.is_empty(),
        Reply::Outcome(outcome, _) => *outcome == Outcome::Timeout,
        _ => false,
    }
}

/// The answers to one client that were not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Approximately the bytes that they occupy.
    waiting_bytes: usize,
    /// How much of the first answer in `waiting` is encoded, in the encoder's own units.
    progress: usize,
    /// Encoded bytes. Those before `head` were accepted.
    bytes: Vec<u8>,
    head: usize,
    /// The total number of bytes encoded.
    encoded: u64,
    /// Tasks in encoded frames, with the end of their frame in terms of `encoded`.
    in_flight: VecDeque<InFlight>,
    /// Whether the first answer needs payloads to be read back before it can continue.
    lacks_payload: bool,
    /// The first task of the first answer whose payload is being read back, and the number of
    /// payloads.
    reading: Option<(usize, usize)>,
    /// The number of answers that have left `waiting`.
    passed: u64,
    /// The gap that [`Outbox::keep_place`] has kept last.
    kept: u64,
    /// What is still to come from other shards, if anything ever was.
    abroad: Option<Box<Abroad>>,
}

/// An output whose frame is encoded and was not accepted completely.
struct InFlight {
    /// The end of the frame, counted in total bytes encoded.
    end: u64,
    output: Output,
    holds: Holds,
    from: From,
}

struct Waiting {
    after: Position,
    answer: Answer,
    dialect: Dialect,
    from: From,
    /// Approximately the bytes that it occupies.
    bytes: usize,
    /// Keeps those of its payloads readable that are not in memory.
    holds: Holds,
}

impl Waiting {
    /// Returns an answer that waits for nothing but its turn.
    fn for_its_turn(answer: Answer, bytes: usize) -> Self {
        let (after, dialect) = (Position::default(), Dialect::default());
        Self { after, answer, dialect, from: From::Here, bytes, holds: Holds::default() }
    }

    /// Whether it is an output of this shard that owns nothing.
    #[inline]
    const fn owns_nothing(&self) -> bool {
        matches!(&self.answer, Answer::Output(output) if is_plain(output))
            && self.from.is_here()
            && self.holds.is_empty()
    }

    /// Returns the next part of a list that is too long to be handed over at once: its number of
    /// items, their bytes, and the piece. The first `told` items are handed over already.
    fn part(&self, told: usize) -> Option<(usize, usize, Piece)> {
        match &self.answer {
            Answer::Output(Output::Reply { request: SILENT, .. }) => None,
            Answer::Output(Output::Reply { reply: Reply::Members(members), .. }) => {
                part_of(members, told, member_bytes, Piece::Members)
            }
            Answer::Output(Output::Reply { reply: Reply::Tubes(shown), .. }) => {
                part_of(&shown.tubes, told, tube_bytes, Piece::Tubes)
            }
            _ => None,
        }
    }
}

/// See [`Waiting::part`].
fn part_of<T: Clone>(
    items: &[T],
    told: usize,
    bytes_of: fn(&T) -> usize,
    piece: fn(Vec<T>) -> Piece,
) -> Option<(usize, usize, Piece)> {
    let left = items.get(told..)?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(item) = left.get(count).filter(|_| bytes < PART_BYTES) {
        count += 1;
        bytes += bytes_of(item);
    }
    (count < left.len()).then(|| (count, bytes, piece(left[..count].to_vec())))
}

/// Appends the next piece of an answer, at most about this many bytes. The number counts what is
/// written already, in units of its own, and is 0 at first. Returns whether the answer is complete.
pub(crate) type Write = Box<dyn Fn(&mut usize, &mut Vec<u8>, usize) -> bool>;

enum Answer {
    /// An output of an engine.
    Output(Output),
    /// A long answer of the door, encoded as it is sent.
    Written(Write),
    /// An answer of the door, encoded already.
    Bytes(Vec<u8>),
    /// A reply that another shard owes.
    Owed,
    /// The first members of a reply that another shard owes.
    Begun(Vec<MemberFigures>),
    /// An answer of which every shard gives a part.
    Gathered(Gathered),
    /// A reply with tasks, to which further shards add theirs.
    Growing(Box<Output>),
    /// An answer that will never come. Nothing after it is sent, since it would be mistaken for it.
    Lost,
    /// A part of an answer that another shard joins.
    Part(Part),
}

/// Another shard owes an answer.
#[derive(Debug)]
pub(crate) struct Owed;

impl Answer {
    /// Whether the client holds something after it has received this answer.
    #[inline]
    fn hands_over(&self) -> bool {
        match self {
            Self::Output(Output::Delivery { .. }) => true,
            Self::Output(Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }) => {
                !tasks.is_empty()
            }
            _ => false,
        }
    }

    /// Calls `refused` for each refusal in it that is reported to the client.
    #[inline]
    fn each_refusal(&self, refused: impl Fn(RefusalKind)) {
        let Self::Output(Output::Reply { request, reply, .. }) = self else { return };
        match reply {
            Reply::Refused(refusal) if *request != SILENT => refused(refusal.kind),
            Reply::Acks(answers) => {
                let refusals = answers.iter().filter_map(|answer| answer.as_ref().err());
                refusals.for_each(|refusal| refused(refusal.kind));
            }
            _ => {}
        }
    }
}

impl Outbox {
    /// Adds an answer of the engine.
    pub(crate) fn push(
        &mut self,
        after: Position,
        (output, holds): (Output, Holds),
        dialect: Dialect,
    ) {
        let bytes = output_bytes(&output);
        self.push_weighed(after, output, holds, (dialect, bytes));
    }

    /// Adds an answer of the engine that occupies this many bytes: see [`output_bytes`].
    #[inline]
    pub(crate) fn push_weighed(
        &mut self,
        after: Position,
        output: Output,
        holds: Holds,
        (dialect, bytes): (Dialect, usize),
    ) {
        self.waiting_bytes += bytes;
        let answer = Answer::Output(output);
        self.waiting.push_back(Waiting { after, answer, dialect, from: From::Here, bytes, holds });
    }

    /// Adds a refusal that waits for this position.
    pub(crate) fn push_refusal(
        &mut self,
        (client, request): (ClientId, RequestId),
        (after, refusal): (Position, Refusal),
        dialect: Dialect,
    ) {
        let output = Output::Reply { client, request, reply: Reply::Refused(refusal) };
        self.push(after, (output, Holds::default()), dialect);
    }

    /// Notes that the next answer will never come.
    pub(crate) fn push_lost(&mut self) {
        self.push_answer(Answer::Lost, 0);
    }

    /// Adds a part of an answer that another shard joins.
    pub(crate) fn push_part(&mut self, part: Part) {
        self.push_answer(Answer::Part(part), 0);
    }

    /// Adds an answer of the door itself, which waits for nothing but its turn.
    pub(crate) fn push_bytes(&mut self, encoded: Vec<u8>) {
        let bytes = encoded.len();
        self.waiting_bytes += bytes;
        self.push_answer(Answer::Bytes(encoded), bytes);
    }

    /// Adds a long answer of the door, which keeps this many bytes until it is sent.
    pub(crate) fn push_written(&mut self, write: Write, bytes: usize) {
        self.waiting_bytes += bytes;
        self.push_answer(Answer::Written(write), bytes);
    }

    /// Adds an answer that waits for nothing and knows no dialects.
    fn push_answer(&mut self, answer: Answer, bytes: usize) {
        self.waiting.push_back(Waiting::for_its_turn(answer, bytes));
    }

    /// Gives up what would wait forever after the store has failed.
    ///
    /// Such replies become refusals, and such deliveries are dropped: the fate of their changes is
    /// unknown. Payloads that were left in the store are no longer read. If an answer with such
    /// payloads cannot be replaced by a refusal, nothing is sent from there on. `reads` is false
    /// for an outbox that is handed over, since another shard has its payloads read.
    pub(crate) fn give_up(
        &mut self,
        reached: Position,
        refusal: &Refusal,
        (can_tell, reads): (bool, bool),
    ) {
        if self.reads_from().is_none() {
            (self.lacks_payload, self.reading) = (false, None);
        }
        let has_begun = self.progress > 0;
        for (at, waiting) in self.waiting.iter_mut().enumerate() {
            // Another shard reads the payloads of its answers.
            let is_unread = reads && waiting.from.is_here() && !waiting.holds.is_empty();
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
                // Every answer keeps its place, so a delivery is emptied instead of removed.
                delivery @ Answer::Output(Output::Delivery { .. } | Output::Notice(_))
                    if !is_unread =>
                {
                    (*delivery, waiting.bytes) = (Answer::Bytes(Vec::new()), 0);
                }
                output @ Answer::Output(_) => (*output, waiting.bytes) = (Answer::Lost, 0),
                _ => {}
            }
        }
        self.waiting_bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
    }

    /// Refuses the last request, if its answer hands nothing over: its wait was cut short because
    /// its user may no longer do what it asks for.
    pub(crate) fn deny_last(&mut self, refusal: &Refusal) {
        if let Some(last) = self.waiting.back_mut()
            && let Answer::Output(Output::Reply { reply, .. }) = &mut last.answer
            && is_empty_handed(reply)
        {
            *reply = Reply::Refused(refusal.clone());
        }
    }

    /// Returns the count that the answer at this place tells, if it tells one. Places are counted
    /// from the first answer of the connection.
    pub(crate) fn count_at(&self, place: u64) -> Result<Option<u64>, Owed> {
        let at = place.checked_sub(self.passed).and_then(|at| usize::try_from(at).ok());
        let waiting = at.and_then(|at| self.waiting.get(at));
        match waiting.map(|waiting| &waiting.answer) {
            Some(Answer::Owed | Answer::Begun(_) | Answer::Gathered(_) | Answer::Growing(_)) => {
                Err(Owed)
            }
            Some(Answer::Output(Output::Reply {
                reply: Reply::Count(count) | Reply::Bulked { changed: count, .. },
                ..
            })) => Ok(Some(*count)),
            _ => Ok(None),
        }
    }

    /// Returns the number of answers that wait, completely or in part.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of answers that have left it, completely.
    pub(crate) const fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether so much waits that nothing more should be added for the client.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.waiting.len() >= limits.in_flight_max || self.bytes_waiting() >= limits.out_bytes_max
    }

    /// Returns the number of bytes that wait, encoded or not.
    pub(crate) fn bytes_waiting(&self) -> usize {
        self.waiting_bytes + self.encoded_bytes()
    }

    /// Returns the number of encoded bytes that wait for the socket.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// Whether all answers are encoded.
    pub(crate) fn awaits_nothing(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether encoded bytes that were not accepted hand tasks over.
    pub(crate) fn hands_over(&self) -> bool {
        !self.in_flight.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.encoded_bytes() == 0
    }

    /// Encodes answers that need no longer wait, up to `most` bytes ahead of the socket. `fresh`
    /// returns a buffer if there is none, and `refused` is called for each refusal.
    pub(crate) fn encode(
        &mut self,
        encoder: &(impl Encode + ?Sized),
        reached: Position,
        most: usize,
        fresh: impl Fn() -> Vec<u8>,
        refused: impl Fn(RefusalKind),
    ) {
        while let Some(first) = self.waiting.front_mut() {
            let room = most.saturating_sub(self.bytes.len() - self.head);
            if first.after > reached || room == 0 {
                return;
            }
            if self.bytes.capacity() == 0 {
                self.bytes = fresh();
            }
            let before = self.bytes.len();
            let complete = match &mut first.answer {
                Answer::Output(Output::Reply { request: SILENT, .. }) => true,
                Answer::Output(output) => {
                    let (out, progress) = (&mut self.bytes, &mut self.progress);
                    let dialect = first.dialect;
                    if first.holds.is_empty() {
                        encoder.encode(output, dialect, progress, out, room, usize::MAX)
                    } else {
                        let from = *progress;
                        let known = known_tasks(output, from);
                        let complete = encoder.encode(output, dialect, progress, out, room, known);
                        forget_payloads(output, from..known.min(*progress));
                        let lacks_any = known < output.tasks_mut().len();
                        self.lacks_payload = !complete && *progress == known && lacks_any;
                        complete
                    }
                }
                Answer::Bytes(bytes) => {
                    let end = bytes.len().min(self.progress.saturating_add(room));
                    self.bytes.extend_from_slice(&bytes[self.progress..end]);
                    self.progress = end;
                    end == bytes.len()
                }
                Answer::Written(write) => write(&mut self.progress, &mut self.bytes, room),
                Answer::Owed
                | Answer::Begun(_)
                | Answer::Gathered(_)
                | Answer::Growing(_)
                | Answer::Lost => return,
                Answer::Part(_) => unreachable!("parts are handed over"),
            };
            self.encoded += (self.bytes.len() - before) as u64;
            if !complete {
                if self.lacks_payload {
                    return;
                }
                continue;
            }
            self.progress = 0;
            self.passed += 1;
            self.waiting_bytes -= first.bytes;
            if first.owns_nothing() {
                // The most frequent ones take a short way. They are not moved out, and not dropped
                // either, since the compiler's own drop checks every kind of answer first.
                std::mem::forget(self.waiting.pop_front());
            } else if let Some(done) = self.waiting.pop_front() {
                self.finish(done, &refused);
            }
        }
    }

    /// Keeps an answer that is completely encoded if it hands something over, until the kernel has
    /// accepted it.
    #[inline(never)]
    fn finish(&mut self, done: Waiting, refused: &impl Fn(RefusalKind)) {
        if let Some(from) = done.from.teller() {
            self.note_encoded(from, done.bytes);
        }
        if done.answer.hands_over() {
            if let Answer::Output(output) = done.answer {
                let (end, holds, from) = (self.encoded, done.holds, done.from);
                self.in_flight.push_back(InFlight { end, output, holds, from });
            }
        } else {
            done.answer.each_refusal(refused);
        }
    }

    /// Whether the first answer needs payloads to be read back before it can continue.
    pub(crate) const fn lacks_payload(&self) -> bool {
        self.lacks_payload && self.reading.is_none()
    }

    /// Returns the other shard that reads the payloads of the first answer, if any does. Former
    /// owners of a shard leave none on a disk, and each that is wanted names its volume.
    pub(crate) fn reads_from(&self) -> Option<usize> {
        let from = self.waiting.front().and_then(|first| first.from.teller());
        from.filter(|from| *from != FORMER).map(usize::from)
    }

    /// Gives up the payloads that were requested from another shard, whose store has failed.
    pub(crate) fn lose_payloads(&mut self, refusal: &Refusal, can_tell: bool) {
        (self.lacks_payload, self.reading) = (false, None);
        let can_tell = can_tell && self.progress == 0;
        let Some(first) = self.waiting.front_mut() else { return };
        first.holds = Holds::default();
        match &mut first.answer {
            Answer::Output(Output::Reply { reply, .. }) if can_tell => {
                *reply = Reply::Refused(refusal.clone());
            }
            answer => *answer = Answer::Lost,
        }
        self.waiting_bytes -= std::mem::take(&mut first.bytes);
    }

    /// Returns the payloads to be read back next for [`Outbox::supply`]: about `most` bytes
    /// together, and at least one payload. Empty if nothing waits for any.
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

    /// Takes the payloads that were wanted. Ignores them if they come too late and nothing waits
    /// for them.
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

    /// Returns the oldest volume of this shard's store that an answer keeps readable.
    pub(crate) fn oldest_volume(&self) -> Option<u32> {
        let waiting = self.waiting.iter().filter(|it| it.from.is_here());
        let waiting = waiting.filter_map(|it| it.holds.oldest());
        let in_flight = self.in_flight.iter().filter(|it| it.from.is_here());
        let in_flight = in_flight.filter_map(|it| it.holds.oldest());
        waiting.chain(in_flight).min()
    }

    /// Returns the encoded bytes that the socket has not taken.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Notes that the kernel accepted this many bytes. Returns the buffer once nothing waits any
    /// more: an idle connection keeps none.
    pub(crate) fn written(&mut self, count: usize) -> Option<Vec<u8>> {
        self.head += count;
        // A slow reader may never take everything. The rest moves when as many bytes were taken.
        let makes_room = self.head >= self.encoded_bytes();
        if makes_room || self.head == self.bytes.len() {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        let sent = self.encoded - self.encoded_bytes() as u64;
        self.note_accepted(sent);
        while self.in_flight.pop_front_if(|it| it.end <= sent).is_some() {}
        let is_idle = self.waiting.is_empty() && self.bytes.is_empty();
        is_idle.then(|| std::mem::take(&mut self.bytes))
    }

    /// Removes the outputs and parts whose changes are durable, for the shard that has the client's
    /// connection, as long as `wants` accepts their bytes. Silent outputs are left out, and of a
    /// long list there may be a part alone.
    pub(crate) fn hand_over(
        &mut self,
        reached: Position,
        mut wants: impl FnMut(usize, &Holds) -> bool,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while let Some(first) = self.waiting.front_mut() {
            if first.after <= reached
                && let Some((count, bytes, piece)) = first.part(self.progress)
            {
                if !wants(bytes, &first.holds) {
                    return pieces;
                }
                self.progress += count;
                pieces.push(piece);
                first.bytes -= bytes;
                self.waiting_bytes -= bytes;
                continue;
            }
            let is_silent = match &first.answer {
                Answer::Output(Output::Reply { request, .. }) => *request == SILENT,
                // An answer that was emptied after the store failed.
                Answer::Bytes(_) => true,
                _ => false,
            };
            let is_part = match &first.answer {
                Answer::Output(Output::Reply { request, reply, .. }) => {
                    *request == PART && !hands_over(reply)
                }
                _ => false,
            };
            let is_output = matches!(first.answer, Answer::Output(_)) && !is_silent && !is_part;
            if first.after > reached || (is_output && !wants(first.bytes, &first.holds)) {
                return pieces;
            }
            let Some(mut done) = self.waiting.pop_front() else { return pieces };
            self.passed += 1;
            self.waiting_bytes -= done.bytes;
            let told = std::mem::take(&mut self.progress);
            match &mut done.answer {
                Answer::Output(Output::Reply { reply: Reply::Members(members), .. }) => {
                    members.drain(..told);
                }
                Answer::Output(Output::Reply { reply: Reply::Tubes(shown), .. }) => {
                    shown.tubes.drain(..told);
                }
                _ => {}
            }
            match done.answer {
                Answer::Output(Output::Reply { reply, .. }) if is_part => {
                    pieces.push(Piece::Part(Part::Reply(reply)));
                }
                Answer::Output(output) if !is_silent => {
                    pieces.push(Piece::Output(output, done.holds));
                }
                Answer::Part(part) => pieces.push(Piece::Part(part)),
                Answer::Lost => pieces.push(Piece::Lost),
                _ => {}
            }
        }
        pieces
    }

    /// Returns the leases that the client does not know about yet, each with the shard that granted
    /// it, unless that is the client's own.
    pub(crate) fn leases(&self) -> Vec<(Option<usize>, Receipt)> {
        let in_flight = self.in_flight.iter().map(|it| (&it.output, &it.from));
        let waiting = self.waiting.iter().filter_map(|it| match &it.answer {
            Answer::Output(output) => Some((output, &it.from)),
            Answer::Growing(output) => Some((&**output, &it.from)),
            _ => None,
        });
        let mut leases = Vec::new();
        for (output, from) in in_flight.chain(waiting) {
            let mut receipts = leases_in(output);
            for (shard, tasks) in from.parts() {
                leases.extend(receipts.by_ref().take(tasks).map(|receipt| (shard, receipt)));
            }
        }
        leases
    }

    /// Returns what was in frames that were not accepted completely, for each shard that has made
    /// some. `None` is this shard. Empties the outbox.
    pub(crate) fn unsent(&mut self) -> Vec<(Option<usize>, Unsent)> {
        let mut unsent: Vec<(Option<usize>, Unsent)> = vec![(None, Unsent::default())];
        let Self { in_flight, waiting, .. } = std::mem::take(self);
        let mut add = |output: Output, holds: &Holds, from: &From| {
            from.split(output, |from, output| {
                let at = unsent.iter().position(|(shard, _)| *shard == from).unwrap_or_else(|| {
                    unsent.push((from, Unsent::default()));
                    unsent.len() - 1
                });
                unsent[at].1.add(output, holds);
            });
        };
        for InFlight { output, holds, from, .. } in in_flight {
            add(output, &holds, &from);
        }
        for Waiting { answer, holds, from, .. } in waiting {
            match answer {
                Answer::Output(output) => add(output, &holds, &from),
                Answer::Growing(output) => {
                    add(*output, &holds, &from);
                }
                _ => {}
            }
        }
        unsent
    }
}

/// Returns how many tasks of an output can be written. The first `from` are written already.
fn known_tasks(output: &mut Output, from: usize) -> usize {
    let tasks = output.tasks_mut();
    let away = tasks.iter().skip(from).position(is_away);
    away.map_or(tasks.len(), |ahead| from + ahead)
}

/// Forgets payloads that were read back and have been written.
fn forget_payloads(output: &mut Output, written: std::ops::Range<usize>) {
    for task in output.tasks_mut().get_mut(written).unwrap_or_default() {
        if task.away.is_some() {
            task.payload = Bytes::default();
        }
    }
}

/// Whether one shard's part of a reply has a task for the client, which is the whole reply then.
const fn hands_over(part: &Reply) -> bool {
    match part {
        Reply::Tasks { tasks, .. } => !tasks.is_empty(),
        Reply::Task(task) => task.is_some(),
        _ => false,
    }
}

/// Whether an output owns nothing, as the most frequent ones do.
#[inline]
const fn is_plain(output: &Output) -> bool {
    matches!(output, Output::Reply { reply: Reply::Done | Reply::Put(TaskId::Number(_)), .. })
}

/// Returns the same as [`answer_bytes`], with a short way for the most frequent outputs.
#[inline]
pub(crate) fn output_bytes(output: &Output) -> usize {
    if is_plain(output) { 0 } else { answer_bytes(output) }
}

/// Returns approximately the bytes that an output occupies. Outputs that are always small count as
/// 0.
fn answer_bytes(output: &Output) -> usize {
    match output {
        Output::Delivery { tasks, .. }
        | Output::Reply {
            reply: Reply::Tasks { tasks, .. } | Reply::Scanned { tasks, .. } | Reply::Shown(tasks),
            ..
        } => tasks.iter().map(task_bytes).sum(),
        Output::Reply { reply: Reply::Exported(page), .. } => {
            let tasks = page.tasks.iter().map(task_bytes).sum::<usize>();
            let schedules = page.schedules.iter().map(|it| it.plan.bytes()).sum::<usize>();
            tasks + schedules + size_of_val(&page.windows[..]) + size_of_val(&page.shares[..])
        }
        Output::Reply { reply: Reply::Leases { leases, .. }, .. } => size_of_val(&leases[..]),
        Output::Reply { reply: Reply::Shares { shares, .. }, .. } => {
            shares.iter().map(|it| size_of_val(it) + it.share.len()).sum()
        }
        Output::Reply { reply: Reply::Names { names, .. }, .. } => {
            names.iter().map(|name| size_of_val(name) + name.len()).sum()
        }
        Output::Reply { reply: Reply::Members(members), .. } => {
            members.iter().map(member_bytes).sum()
        }
        Output::Reply { reply: Reply::Tubes(shown), .. } => {
            shown.tubes.iter().map(tube_bytes).sum()
        }
        Output::Reply { reply: Reply::Acks(answers), .. } => {
            let refusals = answers.iter().filter_map(|answer| answer.as_ref().err());
            size_of_val(&answers[..]) + refusals.map(|it| it.sentence.len()).sum::<usize>()
        }
        Output::Reply { reply: Reply::Schedule(shown), .. } => {
            shown.name.len() + shown.plan.bytes()
        }
        Output::Reply { reply: Reply::Transaction(replies), .. } => size_of_val(&replies[..]),
        Output::Reply { reply: Reply::WithResult { result, .. }, .. } => {
            result.as_ref().map_or(0, |result| result.len())
        }
        Output::Notice(notice) => {
            notice.queue.len() + notice.cancelled.as_ref().map_or(0, |reason| reason.len())
        }
        Output::Reply { .. } => 0,
    }
}

fn member_bytes(member: &MemberFigures) -> usize {
    size_of_val(member) + member.member.len()
}

fn tube_bytes(tube: &TubeShown) -> usize {
    size_of_val(tube) + tube.name.len()
}

/// Returns the bytes of a key, a payload, a checkpoint and a result, and those of the record.
fn task_bytes(task: &TaskRecord) -> usize {
    let content = task.payload.len() + task.progress.told_bytes();
    size_of::<TaskRecord>() + content + task.terms.bytes()
}

#[cfg(test)]
mod tests;
