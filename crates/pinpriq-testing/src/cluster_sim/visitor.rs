//! A client: one request at a time over RESP, and what it knows.

use crate::Dice;
use crate::history::request::{self, Limits, PutOptions, ReleaseOptions, Request};
use crate::history::{Operation, Outcome, Recorder};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value};

/// The queues, spread over the shards.
pub(crate) const QUEUES: [&str; 6] = ["a", "jobs", "mail", "x1", "{t}1", "orders"];

/// Those that are used after a roll-back of the engine.
pub(crate) const LATER_QUEUES: [&str; 6] = ["b", "tasks", "post", "y2", "{t}2", "bills"];

/// What holds tasks back in the last two of them.
const LIMITS: [Limits; 2] = [
    Limits { key_limit: Some(1), key_hold: true, ..Limits::NONE },
    Limits { limit: Some(5), share_limit: Some(2), fair: true, ..Limits::NONE },
];

/// The keys and shares of tasks.
const KEYS: [&str; 4] = ["k", "l", "m", "n"];
const SHARES: [&str; 3] = ["s", "t", "u"];

/// How long leases last, in milliseconds. Long enough that clocks that are off do not matter.
const TTRS_MS: [u64; 3] = [12_000, 20_000, 60_000];

/// Where the history is written.
pub(crate) type History = Recorder<Vec<u8>>;

/// A client.
pub(crate) struct Visitor {
    /// The node and its client there, while it is connected.
    pub(crate) at: Option<(usize, ClientId)>,
    /// Its number in the history.
    number: u64,
    asked: Option<(u64, Operation)>,
    decoder: ReplyDecoder,
    wire: Vec<u8>,
    /// The leases that it holds: the queue and the receipt.
    held: Vec<(String, String)>,
    serial: u64,
    queues: [&'static str; 6],
    /// The ids and receipts that it was given.
    pub(crate) given: Vec<String>,
    /// Whether it waits for tasks. A blocked take is asked again of the next owner, and a lease
    /// that the former one granted may never arrive. So order is not judged then.
    blocks: bool,
    /// Where it was sent, if the node that it has asked is not the right one.
    pub(crate) sent_to: Option<String>,
    /// How many tasks came with the last reply, unless it was a refusal.
    pub(crate) last_count: Option<usize>,
}

impl Visitor {
    pub(crate) fn new(blocks: bool, queues: [&'static str; 6]) -> Self {
        Self {
            queues,
            given: Vec::new(),
            blocks,
            at: None,
            number: 0,
            asked: None,
            decoder: ReplyDecoder::default(),
            wire: Vec::new(),
            held: Vec::new(),
            serial: 0,
            sent_to: None,
            last_count: None,
        }
    }

    /// Whether it waits for tasks.
    pub(crate) const fn blocks(&self) -> bool {
        self.blocks
    }

    /// Notes a new connection.
    pub(crate) fn connected(&mut self, at: (usize, ClientId), history: &History) {
        self.at = Some(at);
        self.number = history.client();
        self.decoder = ReplyDecoder::default();
        self.wire.clear();
    }

    /// Notes that the connection is gone.
    pub(crate) fn disconnected(&mut self, now_us: u64, history: &History) {
        if self.at.take().is_none() {
            return;
        }
        if let Some((call, _)) = self.asked.take() {
            written(history.answer(now_us, call, Outcome::Unknown));
        }
        let closed = crate::history::Event::ConnectionClosed { client: self.number };
        written(history.event(now_us, closed));
    }

    /// Whether it waits for a reply.
    pub(crate) const fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// Makes a request. Returns its bytes.
    pub(crate) fn ask(&mut self, now_us: u64, dice: &mut Dice, history: &History) -> Vec<u8> {
        let queue = dice.pick(&self.queues);
        let request = match dice.below(100) {
            0..2 => self.set_limits(dice),
            2..45 => self.put(queue, dice),
            45..70 => self.take(queue, dice),
            70..75 => self.pop(queue, 1 + dice.below(2)),
            _ => match self.end_lease(dice) {
                Some(ended) => ended,
                None => self.take(queue, dice),
            },
        };
        self.send(now_us, request, history)
    }

    /// Empties a queue: acknowledges what it holds, then pops.
    pub(crate) fn empty(&mut self, now_us: u64, queue: &str, history: &History) -> Vec<u8> {
        let request = self.pop(queue, 8);
        self.send(now_us, request, history)
    }

    fn send(&mut self, now_us: u64, request: Request, history: &History) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.words.put(&mut bytes);
        self.last_count = None;
        let call = history.invoke(now_us, self.number, request.operation.clone());
        self.asked = Some((written(call), request.operation));
        bytes
    }

    /// Sets the limits of a queue, which are the same each time.
    fn set_limits(&self, dice: &mut Dice) -> Request {
        let at = dice.index(LIMITS.len());
        let queue = self.queues[self.queues.len() - LIMITS.len() + at];
        request::set_limits(Limits { queue, ..LIMITS[at] })
    }

    fn put(&mut self, queue: &str, dice: &mut Dice) -> Request {
        self.serial += 1;
        let payload = format!("{}-{}-{}", self.number, self.serial, dice.below(1 << 30));
        let priority = i64::try_from(dice.below(3)).unwrap_or_default();
        let ttr_ms = Some(dice.pick(&TTRS_MS));
        let delay_ms = if dice.chance(10) { 1 + dice.below(3_000) } else { 0 };
        let key = dice.chance(70).then(|| dice.pick(&KEYS));
        let share = dice.chance(30).then(|| dice.pick(&SHARES));
        let options = PutOptions { priority, delay_ms, ttr_ms, key, share, ttl_ms: None };
        request::put(queue, payload.as_bytes(), options)
    }

    fn take(&self, queue: &str, dice: &mut Dice) -> Request {
        let count = 1 + dice.below(3);
        let ttr_ms = Some(dice.pick(&TTRS_MS));
        let waits = self.blocks && dice.chance(40);
        let wait_ms = if waits { 1 + dice.below(8_000) } else { 0 };
        request::take(queue, count, ttr_ms, wait_ms).ordered_otherwise(self.blocks)
    }

    fn pop(&self, queue: &str, count: u64) -> Request {
        request::pop(queue, count).ordered_otherwise(self.blocks)
    }

    fn end_lease(&mut self, dice: &mut Dice) -> Option<Request> {
        if self.held.is_empty() {
            return None;
        }
        let at = dice.index(self.held.len());
        let (queue, receipt) = self.held.swap_remove(at);
        Some(match dice.below(10) {
            0 => request::release(&queue, &receipt, ReleaseOptions::default()),
            1 => {
                let touch = request::touch(&queue, &receipt);
                self.held.push((queue, receipt));
                touch
            }
            2 => request::fail(&queue, &receipt, dice.chance(50).then(|| dice.below(3_000))),
            _ => request::ack(&queue, &receipt),
        })
    }

    fn note_given(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Put { id } => self.given.push(id.clone()),
            Outcome::Tasks(delivered) => {
                self.given.extend(delivered.iter().filter_map(|task| task.receipt.clone()));
            }
            _ => {}
        }
    }

    /// Reads bytes of replies.
    pub(crate) fn hear(&mut self, now_us: u64, bytes: &[u8], history: &History) {
        self.wire.extend_from_slice(bytes);
        loop {
            let decoded = self.decoder.decode(&self.wire);
            let (value, length) = match decoded {
                Ok(DecodedReply::Whole { value, length }) => (value, length),
                Ok(DecodedReply::Incomplete { length }) => {
                    self.wire.drain(..length);
                    return;
                }
                Err(malformed) => panic!("a reply is malformed: {malformed}"),
            };
            self.wire.drain(..length);
            let Some((call, operation)) = self.asked.take() else {
                panic!("a reply came that was not asked for: {value:?}")
            };
            let outcome = outcome(&operation, &value);
            self.sent_to = moved_to(&value);
            self.note_given(&outcome);
            if let (Outcome::Tasks(delivered), Operation::Take { queue, .. }) =
                (&outcome, &operation)
            {
                let receipts = delivered.iter().filter_map(|task| task.receipt.clone());
                self.held.extend(receipts.map(|receipt| (queue.clone(), receipt)));
            }
            self.last_count = match &outcome {
                Outcome::Tasks(delivered) => Some(delivered.len()),
                Outcome::Refused(_) | Outcome::Unknown => None,
                _ => Some(0),
            };
            written(history.answer(now_us, call, outcome));
        }
    }
}

/// The address of the node that is to be asked instead, if the reply names one.
fn moved_to(reply: &Value) -> Option<String> {
    let Value::Error(error) = reply else { return None };
    let (_, address) = error.strip_prefix("MOVED ")?.split_once(' ')?;
    Some(address.to_owned())
}

/// What a reply means for the history. Only some refusals can come here.
fn outcome(operation: &Operation, reply: &Value) -> Outcome {
    const REFUSALS: [&str; 9] = [
        "TRYAGAIN",
        "CLUSTERDOWN",
        "STALE",
        "NOTFOUND",
        "BUSY",
        "STORE",
        "EXISTS",
        "NOQUEUE",
        "MOVED",
    ];
    match request::outcome(operation, reply) {
        Ok(Outcome::Refused(word)) if !REFUSALS.contains(&word.as_str()) => {
            panic!("{operation:?} was answered {reply:?}")
        }
        Ok(outcome) => outcome,
        Err(strange) => panic!("{strange}"),
    }
}

/// A history in memory is always written.
pub(crate) fn written<T>(result: std::io::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the history cannot be written: {error}"),
    }
}
