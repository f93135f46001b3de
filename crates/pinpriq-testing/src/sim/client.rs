//! A virtual client: bytes on their way to the server, bytes on their way back, and how the client
//! interprets them.

use std::collections::VecDeque;

use pinpriq_proto::command::Command;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::shares::COUNTED_PER_LOOK;
use pinpriq_proto::task::{ClientId, Grant, Receipt, TaskId};
use pinpriq_proto::unique::PutUnique;
use pinpriq_proto::wire::beanstalkd::{DecodedAnswer, decode_answer};
use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value};
use pinpriq_server::config::DoorName;

use crate::sim::ask::{Answerer, Ask, ELSEWHERE, Name};
use crate::sim::expect::{self, Reader, Wanted};
use crate::sim::jobs::{ANSWER_BYTES_MAX, Call, JobAsk, Seen, Tubes};
use crate::sim::oracle::{Frame, Needs, Oracle, Request, Sent, SentState};
use crate::sim::packet::{Packet, frame_bytes};

/// A virtual client; see the module documentation.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) door: DoorName,
    /// Bytes to send; those from `sent` on were not sent yet.
    pub(crate) out: Vec<u8>,
    pub(crate) sent: usize,
    /// The ends of the requests in `out`, and the last end before `sent`.
    ends: VecDeque<usize>,
    last_end: usize,
    /// Bytes that arrived and were not interpreted yet.
    wire: Vec<u8>,
    decoder: ReplyDecoder,
    /// The bytes of the expected frame on the pinpriq wire, and how many have arrived.
    frame: Vec<u8>,
    matched: usize,
    /// The RESP version of its latest request, and of its latest reply.
    pub(crate) speaks: u8,
    reads: u8,
    /// Whether it does nothing but subscribe, in RESP2.
    pub(crate) only_subscribes: bool,
    /// Whether it was ever reset.
    pub(crate) was_reset: bool,
    /// Rounds in which it reads nothing, or sends nothing.
    pub(crate) stalled: u64,
    pub(crate) silent: u64,
    pub(crate) ended: bool,
    /// Whether deliveries on the pinpriq wire begin with a count.
    counted: bool,
    credits_asked: u64,
    deliveries: u64,
    /// What it uses and watches at the beanstalkd door, and whether it has quit there.
    tubes: Tubes,
    pub(crate) has_quit: bool,
}

/// What clients have learned and may use.
#[derive(Default)]
pub(crate) struct Knowledge {
    pub(crate) receipts: VecDeque<(Name, Receipt, Vec<u8>)>,
    pub(crate) ids: VecDeque<(Name, Vec<u8>)>,
    /// Numbers of tasks that were put as jobs.
    pub(crate) jobs: VecDeque<u64>,
    /// A running digest of everything that clients received, and its number of bytes.
    pub(crate) digest: u64,
    pub(crate) bytes: usize,
}

/// The number of items that clients remember.
const REMEMBERED: usize = 48;

impl Knowledge {
    fn learn_receipt(&mut self, name: Name, receipt: Receipt, id: Vec<u8>) {
        if self.receipts.len() == REMEMBERED {
            self.receipts.pop_front();
        }
        self.receipts.push_back((name, receipt, id));
    }

    fn learn_id(&mut self, name: Name, id: Vec<u8>) {
        if self.ids.len() == REMEMBERED {
            self.ids.pop_front();
        }
        self.ids.push_back((name, id));
    }

    fn learn_job(&mut self, number: u64) {
        if self.jobs.len() == REMEMBERED {
            self.jobs.pop_front();
        }
        self.jobs.push_back(number);
    }

    /// Adds bytes to the digest.
    pub(crate) fn stir(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
            self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
}

impl Client {
    /// Returns a client that has sent nothing. `counted` says whether deliveries on the pinpriq
    /// wire begin with a count, `tubes_max` how many tubes it may watch.
    pub(crate) fn new(id: ClientId, door: DoorName, counted: bool, tubes_max: usize) -> Self {
        Self {
            id,
            door,
            out: Vec::new(),
            sent: 0,
            ends: VecDeque::new(),
            last_end: 0,
            wire: Vec::new(),
            decoder: ReplyDecoder::default(),
            frame: Vec::new(),
            matched: 0,
            speaks: 2,
            reads: 2,
            only_subscribes: false,
            was_reset: false,
            stalled: 0,
            silent: 0,
            ended: false,
            counted,
            credits_asked: 0,
            deliveries: 0,
            tubes: Tubes::begin(tubes_max),
            has_quit: false,
        }
    }

    /// Makes a request, which is sent later.
    pub(crate) fn ask(&mut self, request: Request, oracle: &mut Oracle) {
        if let Request::Resp(Ask::Exec(steps)) = &request {
            self.ask(Request::Resp(Ask::Multi), oracle);
            for step in steps {
                self.ask(Request::Resp(Ask::Queued(Box::new(step.clone()))), oracle);
            }
        }
        match &request {
            Request::Resp(ask) => {
                ask.put(&mut self.out);
                match ask {
                    Ask::Hello(version) => self.speaks = *version,
                    Ask::Reset => (self.speaks, self.was_reset) = (2, true),
                    _ => {}
                }
            }
            Request::Pinpriq(packet) => packet.put(&mut self.out),
            Request::Beanstalkd(ask) => {
                ask.put(&mut self.out);
                self.has_quit |= ask.call == Call::Quit;
            }
        }
        self.ends.push_back(self.out.len());
        let Some(expecting) = oracle.clients.get_mut(&self.id) else { return };
        if let Request::Beanstalkd(ask) = &request {
            expecting.tubes.extend(ask.names().cloned());
        }
        expecting.credits_asked += match &request {
            Request::Resp(Ask::Credit(credits)) => u64::from(*credits),
            Request::Pinpriq(Packet::Ready) => 1,
            _ => 0,
        };
        if !matches!(request, Request::Pinpriq(Packet::Ready)) {
            expecting.sent.push_back(Sent::new(request));
        }
    }

    /// Asks what a client of beanstalkd asks, which may depend on what it has asked before.
    pub(crate) fn call(&mut self, call: Call, oracle: &mut Oracle) {
        let ask = self.tubes.ask(call);
        self.ask(Request::Beanstalkd(ask), oracle);
    }

    /// Asks for a task of a queue in another shard, which has no tasks, so that the connection
    /// moves to that shard.
    pub(crate) fn ask_elsewhere(&mut self, oracle: &mut Oracle) {
        if self.door == DoorName::Resp {
            self.ask(Request::Resp(Ask::Elsewhere), oracle);
            return;
        }
        Packet::Pop(ELSEWHERE.to_vec()).put(&mut self.out);
        self.ends.push_back(self.out.len());
        let Some(expecting) = oracle.clients.get_mut(&self.id) else { return };
        let needs = Needs::default();
        needs.set(Some(0));
        let (tasks, popped, is_reply, recalled) = (Vec::new(), true, true, None);
        expecting.frames.push_back(Frame { tasks, popped, is_reply, needs, recalled });
    }

    /// Notes that this many bytes have reached the server.
    pub(crate) fn note_sent(&mut self, count: usize) {
        self.sent += count;
        while let Some(end) = self.ends.front().copied().filter(|end| *end <= self.sent) {
            self.last_end = end;
            self.ends.pop_front();
        }
        if self.sent == self.out.len() {
            self.out.clear();
            (self.sent, self.last_end) = (0, 0);
        }
    }

    /// The number of bytes still to be sent.
    pub(crate) const fn unsent_bytes(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Whether the server has received a part of a request and not the rest.
    pub(crate) const fn is_in_request(&self) -> bool {
        self.sent > self.last_end
    }

    /// Whether it has read a part of a reply and not the rest.
    pub(crate) fn is_in_reply(&self) -> bool {
        self.matched > 0 || !self.wire.is_empty() || !self.decoder.is_between_values()
    }

    /// Reads bytes, and compares what is complete with what is expected.
    pub(crate) fn read(&mut self, bytes: &[u8], oracle: &mut Oracle, known: &mut Knowledge) {
        known.stir(bytes);
        match self.door {
            DoorName::Http => unreachable!("no client speaks that here"),
            DoorName::Pinpriq => self.read_frames(bytes, oracle),
            DoorName::Beanstalkd => {
                self.wire.extend_from_slice(bytes);
                self.read_answers(oracle, known);
            }
            DoorName::Resp | DoorName::RespCluster => {
                self.wire.extend_from_slice(bytes);
                self.read_values(oracle, known);
            }
        }
    }

    fn read_frames(&mut self, bytes: &[u8], oracle: &mut Oracle) {
        let mut rest = bytes;
        loop {
            let Some(expecting) = oracle.clients.get_mut(&self.id) else { return };
            let Some(frame) = expecting.frames.front() else {
                assert!(rest.is_empty(), "{:?} is sent {rest:?} for nothing", self.id);
                return;
            };
            if self.matched == 0 {
                self.frame = frame_bytes(&frame.tasks, frame.is_reply || self.counted);
            }
            let part = rest.len().min(self.frame.len() - self.matched);
            assert_eq!(
                rest[..part],
                self.frame[self.matched..self.matched + part],
                "{:?} is sent other bytes than those of {:?}",
                self.id,
                frame.tasks
            );
            self.matched += part;
            rest = &rest[part..];
            if self.matched < self.frame.len() {
                return;
            }
            self.matched = 0;
            let Some(frame) = expecting.frames.pop_front() else { return };
            oracle.note_told(&frame.needs);
        }
    }

    fn read_answers(&mut self, oracle: &mut Oracle, known: &mut Knowledge) {
        let wire = std::mem::take(&mut self.wire);
        let mut done = 0;
        loop {
            match decode_answer(&wire[done..], ANSWER_BYTES_MAX) {
                Ok(DecodedAnswer::Incomplete) => break,
                Ok(DecodedAnswer::Whole { length, .. }) => {
                    self.hear(&wire[done..done + length], oracle, known);
                    done += length;
                }
                Err(malformed) => {
                    let shown = wire[done..].escape_ascii();
                    panic!("{:?} is sent what is no answer: {malformed}: {shown}", self.id)
                }
            }
        }
        self.wire = wire;
        self.wire.drain(..done);
    }

    /// Compares an answer of the beanstalkd door with the one that is expected.
    fn hear(&self, read: &[u8], oracle: &mut Oracle, known: &mut Knowledge) {
        oracle.note_reads();
        let Some(expecting) = oracle.clients.get_mut(&self.id) else { return };
        let Some(Sent { request, state, at, parted, .. }) = expecting.sent.pop_front() else {
            panic!("{:?} has asked for nothing and is sent {}", self.id, read.escape_ascii())
        };
        let Request::Beanstalkd(ask) = request else { return };
        let asked = || format!("{:?} asked {:?}", self.id, ask.call);
        if let Some(said) = &ask.said {
            assert!(said == read, "{} and read {}", asked(), read.escape_ascii());
            return;
        }
        if oracle.failed && read == b"INTERNAL_ERROR\r\n" {
            return;
        }
        let SentState::Replied(reply, needs) = state else {
            panic!("{}, is answered {} and is {state:?}", asked(), read.escape_ascii())
        };
        oracle.note_told(&needs);
        let is_named = |tube: &[u8]| oracle.has_named(tube) || parted.contains(tube);
        let seen = Seen { at, is_same_moment: oracle.shards == 1, is_named: &is_named };
        if let Err(difference) = ask.differ(&reply, read, &seen) {
            panic!("{}: {difference}", asked());
        }
        learn_of_jobs(&ask, &reply, oracle, known);
    }

    fn read_values(&mut self, oracle: &mut Oracle, known: &mut Knowledge) {
        let wire = std::mem::take(&mut self.wire);
        let mut done = 0;
        loop {
            match self.decoder.decode(&wire[done..]) {
                Ok(DecodedReply::Incomplete { length }) => {
                    done += length;
                    break;
                }
                Ok(DecodedReply::Whole { value, length }) => {
                    done += length;
                    self.understand(&value, oracle, known);
                }
                Err(malformed) => {
                    panic!(
                        "{:?} is sent what is no RESP: {malformed}: {:?}",
                        self.id,
                        &wire[done..]
                    )
                }
            }
        }
        self.wire = wire;
        self.wire.drain(..done);
    }

    fn understand(&mut self, value: &Value, oracle: &mut Oracle, known: &mut Knowledge) {
        if is_delivery(value) {
            self.note_delivery(value, oracle, known);
            return;
        }
        oracle.note_reads();
        let Some(expecting) = oracle.clients.get_mut(&self.id) else { return };
        let Some(Sent { request, state, own, .. }) = expecting.sent.pop_front() else {
            panic!("{:?} has asked for nothing and is sent {value:?}", self.id)
        };
        let Request::Resp(ask) = request else { return };
        if let Ask::Hello(version) = &ask {
            self.reads = *version;
        }
        let has_failed =
            |value: &Value| matches!(value, Value::Error(text) if text.starts_with("STORE "));
        if oracle.failed && has_failed(value) {
            return;
        }
        let is_closing = matches!(value, Value::Error(text) if text.starts_with("CLOSING "));
        if oracle.is_stopping && is_closing && matches!(state, SentState::Applied) {
            let waits = |command: &Command<'_>| match command {
                Command::Put(put) => put.wait.is_some(),
                Command::PutInLine { put, .. } => put.wait.is_some(),
                _ => false,
            };
            let is_put = ask.with_command(waits) == Some(true);
            assert!(is_put, "{:?} asked {ask:?} and has changed nothing: {value:?}", self.id);
            return;
        }
        let (wanted, reply) = match state {
            SentState::Replied(reply, needs) => {
                oracle.note_told(&needs);
                if let (Some(own), false) = (own, matches!(reply, Reply::Refused(_))) {
                    oracle.note_told(&own);
                }
                // Of many tasks, which only schedules put, it may not have counted all yet.
                let is_partial = matches!(reply, Reply::Shares { .. })
                    && oracle.model.task_count() >= COUNTED_PER_LOOK;
                let wanted =
                    if is_partial { Wanted::Anything } else { expect::answer(&ask, &reply) };
                (wanted, Some(reply))
            }
            // After a failure, deliveries that were counted are never sent.
            _ if oracle.failed && matches!(ask, Ask::Credit(_)) => (Wanted::Anything, None),
            _ if ask.answerer() == Answerer::Door => (self.answer_of_door(&ask), None),
            state => panic!("{:?} is answered {value:?} to {ask:?}, which is {state:?}", self.id),
        };
        let mut reader = Reader { model: &mut oracle.model, resp3: self.reads == 3 };
        if let Err(difference) = expect::differ(&wanted, value, &mut reader) {
            panic!("{:?} asked {ask:?}: {difference}", self.id);
        }
        if ask == Ask::Reset {
            (self.reads, self.credits_asked, self.deliveries) = (2, 0, 0);
        }
        if let Some(reply) = reply {
            learn(&ask, &reply, oracle, known);
        }
    }

    fn note_delivery(&mut self, value: &Value, oracle: &mut Oracle, known: &mut Knowledge) {
        if is_recall(value) {
            self.deliveries -= 1;
        } else {
            self.deliveries += 1;
        }
        let is_push = matches!(value, Value::Push(_));
        assert_eq!(
            is_push,
            self.reads == 3,
            "a delivery is a push message in RESP3 and only there"
        );
        loop {
            let Some(expecting) = oracle.clients.get_mut(&self.id) else { return };
            let Some(frame) = expecting.frames.front() else {
                panic!("{:?} is delivered {value:?} for nothing", self.id)
            };
            let wanted = match (&frame.recalled, frame.tasks.as_slice()) {
                (Some(recalled), _) => expect::recall(recalled),
                (None, [task]) => expect::delivery(task),
                (None, tasks) => panic!("{tasks:?} is no delivery"),
            };
            let mut reader = Reader { model: &mut oracle.model, resp3: self.reads == 3 };
            match expect::differ(&wanted, value, &mut reader) {
                Ok(()) => {
                    let Some(frame) = expecting.frames.pop_front() else { return };
                    oracle.note_told(&frame.needs);
                    if let Some(task) = frame.tasks.first() {
                        learn_task(task, oracle, known);
                    }
                    return;
                }
                Err(_) if expecting.passes_over_frame() => {}
                // After a failure, what was not durable is not delivered.
                Err(_) if oracle.failed => drop(expecting.frames.pop_front()),
                Err(difference) => panic!("{:?} is delivered: {difference}", self.id),
            }
        }
    }

    /// The replies of the door itself.
    fn answer_of_door(&mut self, ask: &Ask) -> Wanted {
        match ask {
            Ask::Ping(None) => Wanted::Text(b"PONG".to_vec()),
            Ask::Ping(Some(text)) => Wanted::Text(text.clone()),
            Ask::Reset => Wanted::Text(b"RESET".to_vec()),
            Ask::Nonsense(_, word) => Wanted::Word(word),
            Ask::Multi => Wanted::Ok,
            Ask::Queued(_) => Wanted::Text(b"QUEUED".to_vec()),
            Ask::Elsewhere => Wanted::Null,
            Ask::Credit(credits) => {
                self.credits_asked += u64::from(*credits);
                Wanted::Number(self.credits_asked - self.deliveries)
            }
            _ => Wanted::Anything,
        }
    }
}

/// Records what later requests may use.
fn learn(ask: &Ask, reply: &Reply, oracle: &Oracle, known: &mut Knowledge) {
    match (ask, reply.bare()) {
        (_, Reply::Put(id) | Reply::PutOutcome(id, _) | Reply::PutUnique(PutUnique { id, .. })) => {
            let queue = ask.with_command(|command| match command {
                Command::Put(put) => Some(put.queue.to_vec()),
                Command::PutInLine { put, .. } => Some(put.queue.to_vec()),
                _ => None,
            });
            if let (Some(queue), Some(id)) = (queue.flatten(), oracle.model.resolve(id)) {
                known.learn_id(Name::queue(queue), id_text(&id));
            }
        }
        (Ask::Exec(steps), Reply::Transaction(replies)) => {
            for (step, reply) in steps.iter().zip(replies) {
                learn(step, reply, oracle, known);
            }
        }
        (_, Reply::Tasks { tasks, .. } | Reply::Scanned { tasks, .. } | Reply::Shown(tasks)) => {
            for task in tasks.iter().take(8) {
                learn_task(task, oracle, known);
            }
        }
        _ => {}
    }
}

fn learn_of_jobs(ask: &JobAsk, reply: &Reply, oracle: &Oracle, known: &mut Knowledge) {
    match (&ask.call, reply) {
        (Call::Put { .. }, Reply::Count(number)) => known.learn_job(*number),
        (_, Reply::Tasks { tasks, .. } | Reply::Shown(tasks)) => {
            for task in tasks {
                learn_task(task, oracle, known);
                known.learn_job(task.number);
            }
        }
        _ => {}
    }
}

fn learn_task(task: &pinpriq_proto::task::TaskRecord, oracle: &Oracle, known: &mut Knowledge) {
    let Some(id) = oracle.model.resolve(&task.id) else { return };
    let member = task.lane.as_ref().map(|lane| lane.member.to_vec());
    let name = Name { queue: task.queue.to_vec(), member };
    match task.receipt() {
        Some(receipt) => known.learn_receipt(name, receipt, id_text(&id)),
        None => known.learn_id(name, id_text(&id)),
    }
}

/// The bytes that name a task.
pub(crate) fn id_text(id: &TaskId) -> Vec<u8> {
    match id {
        TaskId::Given(bytes) => bytes.to_vec(),
        made => made.to_string().into_bytes(),
    }
}

/// Whether this is a delivery or calls one back, rather than a reply: all begin with an array in
/// RESP2.
fn is_delivery(value: &Value) -> bool {
    match value {
        Value::Push(_) => true,
        Value::Array(values) => {
            let is_task = matches!(values.first(), Some(Value::Bulk(word)) if word == b"task");
            (is_task && values.len() == 5) || is_recall(value)
        }
        _ => false,
    }
}

/// Whether this calls a delivery back.
fn is_recall(value: &Value) -> bool {
    let (Value::Push(values) | Value::Array(values)) = value else { return false };
    matches!(values.first(), Some(Value::Bulk(word)) if word == b"recall") && values.len() == 4
}

/// A receipt that no client ever received.
pub(crate) const fn invented_receipt(number: u64, serial: u64) -> Receipt {
    Receipt { number, grant: Grant { incarnation: 1, serial } }
}
