//! A client: one request at a time over RESP, and what it knows.

use pinpriq_dice::Dice;
use pinpriq_history::{Delivery, Operation, Outcome, Recorder, digest};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value, Words};

/// The queues, spread over the shards.
pub(crate) const QUEUES: [&str; 6] = ["a", "jobs", "mail", "x1", "{t}1", "orders"];

/// Those that are used after a roll-back of the engine.
pub(crate) const LATER_QUEUES: [&str; 6] = ["b", "tasks", "post", "y2", "{t}2", "bills"];

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
        let closed = pinpriq_history::Event::ConnectionClosed { client: self.number };
        written(history.event(now_us, closed));
    }

    /// Whether it waits for a reply.
    pub(crate) const fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// Makes a request. Returns its bytes.
    pub(crate) fn ask(&mut self, now_us: u64, dice: &mut Dice, history: &History) -> Vec<u8> {
        let queue = dice.pick(&self.queues);
        let (operation, words) = match dice.below(100) {
            0..45 => self.put(queue, dice),
            45..70 => self.take(queue, dice),
            70..75 => self.pop(queue, 1 + dice.below(2)),
            _ => match self.end_lease(dice) {
                Some(ended) => ended,
                None => self.take(queue, dice),
            },
        };
        self.send(now_us, operation, &words, history)
    }

    /// Empties a queue: acknowledges what it holds, then pops.
    pub(crate) fn empty(&mut self, now_us: u64, queue: &str, history: &History) -> Vec<u8> {
        let (operation, words) = self.pop(queue, 8);
        self.send(now_us, operation, &words, history)
    }

    fn send(
        &mut self,
        now_us: u64,
        operation: Operation,
        words: &Words,
        history: &History,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        words.put(&mut bytes);
        self.last_count = None;
        let call = history.invoke(now_us, self.number, operation.clone());
        self.asked = Some((written(call), operation));
        bytes
    }

    fn put(&mut self, queue: &str, dice: &mut Dice) -> (Operation, Words) {
        self.serial += 1;
        let payload = format!("{}-{}-{}", self.number, self.serial, dice.below(1 << 30));
        let priority = i64::try_from(dice.below(3)).unwrap_or_default();
        let ttr_ms = dice.pick(&TTRS_MS);
        let delay_ms = if dice.chance(10) { 1 + dice.below(3_000) } else { 0 };
        let words = Words::new(&format!("PUT {queue}"))
            .bytes(&payload)
            .option("PRIORITY", Some(priority))
            .option("TTR", Some(ttr_ms))
            .option("DELAY", (delay_ms > 0).then_some(delay_ms));
        let operation = Operation::Put {
            queue: queue.to_owned(),
            payload: digest(payload.as_bytes()),
            id: None,
            priority: Some(priority),
            delay_ms,
            ttl_ms: None,
            ttr_ms: Some(ttr_ms),
        };
        (operation, words)
    }

    fn take(&self, queue: &str, dice: &mut Dice) -> (Operation, Words) {
        let count = 1 + dice.below(3);
        let ttr_ms = Some(dice.pick(&TTRS_MS));
        let wait_ms = (self.blocks && dice.chance(40)).then(|| 1 + dice.below(8_000));
        let words = Words::new(&format!("TAKE {queue} COUNT {count}"))
            .option("TTR", ttr_ms)
            .option("WAIT", wait_ms);
        let (queue, otherwise_ordered) = (queue.to_owned(), self.blocks);
        (Operation::Take { queue, count, ttr_ms, otherwise_ordered }, words)
    }

    fn pop(&self, queue: &str, count: u64) -> (Operation, Words) {
        let words = Words::new(&format!("POP {queue} COUNT {count}"));
        let (queue, otherwise_ordered) = (queue.to_owned(), self.blocks);
        (Operation::Pop { queue, count, otherwise_ordered }, words)
    }

    fn end_lease(&mut self, dice: &mut Dice) -> Option<(Operation, Words)> {
        if self.held.is_empty() {
            return None;
        }
        let at = dice.index(self.held.len());
        let (queue, receipt) = self.held.swap_remove(at);
        Some(match dice.below(10) {
            0 => {
                let words = Words::new(&format!("RELEASE {queue} {receipt}"));
                let (delay_ms, ttl_ms, priority, tail) = (0, None, None, false);
                (Operation::Release { receipt, delay_ms, ttl_ms, priority, tail }, words)
            }
            1 => {
                let words = Words::new(&format!("TOUCH {queue} {receipt}"));
                self.held.push((queue, receipt.clone()));
                (Operation::Touch { receipt, by_ms: None }, words)
            }
            _ => {
                let words = Words::new(&format!("ACK {queue} {receipt}"));
                (Operation::Ack { receipt }, words)
            }
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

/// What a reply means for the history.
fn outcome(operation: &Operation, reply: &Value) -> Outcome {
    let text = |value: &Value| {
        value
            .as_bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default()
    };
    match (operation, reply) {
        (_, Value::Error(error)) => match error.split(' ').next().unwrap_or_default() {
            "UNKNOWN" => Outcome::Unknown,
            word @ ("TRYAGAIN" | "CLUSTERDOWN" | "STALE" | "NOTFOUND" | "BUSY" | "STORE"
            | "EXISTS" | "NOQUEUE" | "MOVED") => Outcome::Refused(word.to_owned()),
            _ => panic!("{operation:?} was answered {error}"),
        },
        (Operation::Put { .. }, reply) => Outcome::Put { id: text(reply) },
        (Operation::Take { .. } | Operation::Pop { .. }, Value::Array(tasks)) => {
            let delivery = |task: &Value| match task.elements() {
                Some([_, id, receipt, payload]) => Delivery {
                    id: text(id),
                    receipt: receipt.as_bytes().map(|it| String::from_utf8_lossy(it).into_owned()),
                    payload: digest(payload.as_bytes().unwrap_or_default()),
                },
                _ => panic!("a task was written as {task:?}"),
            };
            Outcome::Tasks(tasks.iter().map(delivery).collect())
        }
        (Operation::Release { .. }, reply) => Outcome::Turned(text(reply)),
        (Operation::Ack { .. } | Operation::Touch { .. }, _) => Outcome::Done,
        (operation, reply) => panic!("{operation:?} was answered {reply:?}"),
    }
}

/// A history in memory is always written.
pub(crate) fn written<T>(result: std::io::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the history cannot be written: {error}"),
    }
}
