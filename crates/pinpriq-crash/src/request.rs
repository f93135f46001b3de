//! Requests: their words on the wire and their entries in the history; and the meaning of replies.

use pinpriq_history::{Delivery, Operation, Outcome, digest};
use pinpriq_proto::wire::resp::{Value, Words};

use crate::fault::{Fallible, Fault};

/// A request to pinpriq.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) operation: Operation,
    pub(crate) words: Words,
    /// What is sent before it, and answered before it: the parts of a transaction.
    pub(crate) parts: Vec<Words>,
}

impl Request {
    const fn of(operation: Operation, words: Words) -> Self {
        Self { operation, words, parts: Vec::new() }
    }

    /// Everything that is sent, in its order.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Words> {
        self.parts.iter().chain([&self.words])
    }
}

/// The options of a put, besides queue and payload.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PutOptions {
    pub(crate) priority: i64,
    pub(crate) delay_ms: u64,
    pub(crate) ttl_ms: Option<u64>,
}

/// The options of a release, besides the receipt.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ReleaseOptions {
    pub(crate) delay_ms: u64,
    pub(crate) priority: Option<i64>,
    pub(crate) tail: bool,
}

pub(crate) fn put(queue: &str, payload: &[u8], options: PutOptions) -> Request {
    let PutOptions { priority, delay_ms, ttl_ms } = options;
    let words = Words::new(&format!("PUT {queue}"))
        .bytes(payload)
        .option("PRIORITY", Some(priority))
        .option("DELAY", (delay_ms > 0).then_some(delay_ms))
        .option("TTL", ttl_ms);
    let operation = Operation::Put {
        queue: queue.to_owned(),
        payload: digest(payload),
        id: None,
        priority: Some(priority),
        delay_ms,
        ttl_ms,
        ttr_ms: None,
    };
    Request::of(operation, words)
}

pub(crate) fn take(queue: &str, count: u64, ttr_ms: Option<u64>, wait_ms: u64) -> Request {
    let words = Words::new(&format!("TAKE {queue} COUNT {count}"))
        .option("TTR", ttr_ms)
        .option("WAIT", (wait_ms > 0).then_some(wait_ms));
    let queue = queue.to_owned();
    Request::of(Operation::Take { queue, count, ttr_ms, otherwise_ordered: false }, words)
}

pub(crate) fn pop(queue: &str, count: u64) -> Request {
    let words = Words::new(&format!("POP {queue} COUNT {count}"));
    let queue = queue.to_owned();
    Request::of(Operation::Pop { queue, count, otherwise_ordered: false }, words)
}

pub(crate) fn ack(queue: &str, receipt: &str) -> Request {
    let words = Words::new(&format!("ACK {queue} {receipt}"));
    Request::of(Operation::Ack { receipt: receipt.to_owned() }, words)
}

pub(crate) fn bury(queue: &str, receipt: &str) -> Request {
    let words = Words::new(&format!("BURY {queue} {receipt} REASON tired"));
    Request::of(Operation::Bury { receipt: receipt.to_owned() }, words)
}

pub(crate) fn touch(queue: &str, receipt: &str) -> Request {
    let words = Words::new(&format!("TOUCH {queue} {receipt}"));
    Request::of(Operation::Touch { receipt: receipt.to_owned(), by_ms: None }, words)
}

pub(crate) fn release(queue: &str, receipt: &str, options: ReleaseOptions) -> Request {
    let ReleaseOptions { delay_ms, priority, tail } = options;
    let words = Words::new(&format!("RELEASE {queue} {receipt}"))
        .option("DELAY", (delay_ms > 0).then_some(delay_ms))
        .option("PRIORITY", priority)
        .flag("TAIL", tail);
    let receipt = receipt.to_owned();
    Request::of(Operation::Release { receipt, delay_ms, ttl_ms: None, priority, tail }, words)
}

pub(crate) fn kill(queue: &str, id: &str) -> Request {
    let words = Words::new(&format!("KILL {queue} {id}"));
    Request::of(Operation::Kill { queue: queue.to_owned(), id: id.to_owned() }, words)
}

pub(crate) fn dig(queue: &str, id: &str) -> Request {
    let words = Words::new(&format!("DIG {queue} {id}"));
    let (queue, id) = (queue.to_owned(), id.to_owned());
    Request::of(Operation::Dig { queue, id, changed: false }, words)
}

pub(crate) fn plow(queue: &str) -> Request {
    let words = Words::new(&format!("PLOW {queue}"));
    Request::of(Operation::Plow { queue: queue.to_owned() }, words)
}

pub(crate) fn fail(queue: &str, receipt: &str, delay_ms: Option<u64>) -> Request {
    let words = Words::new(&format!("FAIL {queue} {receipt} REASON no")).option("DELAY", delay_ms);
    Request::of(Operation::Fail { receipt: receipt.to_owned(), delay_ms }, words)
}

pub(crate) fn move_tasks(from: &str, to: &str, count: u64) -> Request {
    let words = Words::new(&format!("MOVE {from} {to} COUNT {count}"));
    let (from, to) = (from.to_owned(), to.to_owned());
    Request::of(Operation::Move { from, to, count }, words)
}

/// Brings dead letters back that all come from one queue.
pub(crate) fn redrive(letters: &str, home: &str, count: u64) -> Request {
    let words = Words::new(&format!("REDRIVE {letters} COUNT {count}"));
    let (from, to) = (letters.to_owned(), home.to_owned());
    Request::of(Operation::Move { from, to, count }, words)
}

/// What becomes of tasks of a queue that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) queue: &'static str,
    pub(crate) attempts: Option<u64>,
    /// The first wait, and the longest.
    pub(crate) backoff_ms: Option<(u64, u64)>,
    pub(crate) dead_letter: Option<&'static str>,
}

pub(crate) fn set_policy(policy: Policy) -> Request {
    let Policy { queue, attempts, backoff_ms, dead_letter } = policy;
    let words = Words::new(&format!("QUEUE SET {queue}"))
        .option("ATTEMPTS", attempts)
        .option("BACKOFF", backoff_ms.map(|it| it.0))
        .option("BACKOFFMAX", backoff_ms.map(|it| it.1))
        .option("DEADLETTER", dead_letter);
    let (first_ms, most_ms) = backoff_ms.unwrap_or((0, 3_600_000));
    let operation = Operation::Policy {
        queue: queue.to_owned(),
        attempts,
        backoff_ms: first_ms,
        backoff_max_ms: most_ms,
        dead_letter: dead_letter.map(str::to_owned),
    };
    Request::of(operation, words)
}

/// Several requests that are carried out together or not at all.
pub(crate) fn transaction(requests: Vec<Request>) -> Request {
    let mut parts = vec![Words::new("MULTI")];
    let mut operations = Vec::new();
    for request in requests {
        parts.push(request.words);
        operations.push(request.operation);
    }
    let operation = Operation::Transaction { operations };
    Request { operation, words: Words::new("EXEC"), parts }
}

/// Checks the reply to a part of a transaction. `EXEC` reports what is refused later.
pub(crate) fn check_kept(request: &Request, reply: &Value) -> Fallible<()> {
    match reply {
        Value::Simple(word) if word == "OK" || word == "QUEUED" => Ok(()),
        Value::Error(text) if text.starts_with("BUSY") || text.starts_with("STORE") => Ok(()),
        _ => Err(format!("a part of {:?} was answered {reply:?}", request.operation).into()),
    }
}

/// What a reply means for the history.
pub(crate) fn outcome(operation: &Operation, reply: &Value) -> Fallible<Outcome> {
    let strange = || Fault::from(format!("{operation:?} was answered {reply:?}"));
    if let Value::Error(text) = reply {
        let mut words = text.split(' ').map(str::to_owned);
        let word = words.next().unwrap_or_default();
        // Behind the position of the part is its own refusal.
        let own = if word == "EXECABORT" { words.nth(1) } else { None };
        if own.as_deref() == Some("STORE") {
            return Ok(Outcome::Refused("STORE".to_owned()));
        }
        return match own.as_deref().unwrap_or(&word) {
            "UNKNOWN" => Ok(Outcome::Unknown),
            // The harness never makes an invalid request.
            "BADARG" | "ERR" | "IDREQUIRED" | "NOPROTO" => Err(strange()),
            _ => Ok(Outcome::Refused(word)),
        };
    }
    match operation {
        Operation::Put { .. } => Ok(Outcome::Put { id: text(reply).ok_or_else(strange)? }),
        Operation::Take { .. } | Operation::Pop { .. } => {
            let Value::Array(tasks) = reply else { return Err(strange()) };
            let tasks: Option<Vec<Delivery>> = tasks.iter().map(delivery).collect();
            Ok(Outcome::Tasks(tasks.ok_or_else(strange)?))
        }
        Operation::Ack { .. } | Operation::Bury { .. } | Operation::Policy { .. } => match reply {
            Value::Simple(word) if word == "OK" => Ok(Outcome::Done),
            _ => Err(strange()),
        },
        Operation::Touch { .. } | Operation::Disturb { .. } => Ok(Outcome::Done),
        Operation::Release { .. } | Operation::Fail { .. } | Operation::Dig { .. } => {
            Ok(Outcome::Turned(text(reply).ok_or_else(strange)?))
        }
        Operation::Kill { .. } | Operation::Plow { .. } | Operation::Move { .. } => match reply {
            Value::Integer(count) => Ok(Outcome::Count(u64::try_from(*count)?)),
            _ => Err(strange()),
        },
        Operation::Transaction { operations } => {
            let Value::Array(replies) = reply else { return Err(strange()) };
            if replies.len() != operations.len() {
                return Err(strange());
            }
            let parts = operations.iter().zip(replies).map(|(part, reply)| outcome(part, reply));
            Ok(Outcome::Transaction(parts.collect::<Fallible<Vec<Outcome>>>()?))
        }
    }
}

fn text(value: &Value) -> Option<String> {
    Some(String::from_utf8_lossy(value.as_bytes()?).into_owned())
}

fn delivery(task: &Value) -> Option<Delivery> {
    let Value::Array(parts) = task else { return None };
    let [_, id, receipt, payload] = parts.as_slice() else { return None };
    Some(Delivery { id: text(id)?, receipt: text(receipt), payload: digest(payload.as_bytes()?) })
}

#[cfg(test)]
mod tests {
    use pinpriq_history::{Delivery, Outcome, digest};
    use pinpriq_proto::wire::resp::Value;

    use super::{PutOptions, ack, fail, outcome, put, take, transaction};

    #[test]
    fn words_and_the_history_say_the_same() {
        let options = PutOptions { priority: -2, delay_ms: 5, ttl_ms: None };
        let words = put("q", b"a b", options).words;
        assert_eq!(words.as_slice().join(&b"|"[..]), b"PUT|q|a b|PRIORITY|-2|DELAY|5");
    }

    #[test]
    fn replies_become_outcomes() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let task = Value::Array(vec![bulk("q"), bulk("1"), bulk("1-1-1"), bulk("p")]);
        let operation = take("q", 1, None, 0).operation;
        let (id, receipt) = ("1".to_owned(), Some("1-1-1".to_owned()));
        let delivery = Delivery { id, receipt, payload: digest(b"p") };
        let came = outcome(&operation, &Value::Array(vec![task])).unwrap();
        assert_eq!(came, Outcome::Tasks(vec![delivery]));
        let stale = Value::Error("STALE that lease has ended".to_owned());
        let unknown = Value::Error("UNKNOWN the owner has changed".to_owned());
        assert_eq!(outcome(&operation, &unknown).unwrap(), Outcome::Unknown);
        let refused = outcome(&ack("q", "1-1-1").operation, &stale).unwrap();
        assert_eq!(refused, Outcome::Refused("STALE".to_owned()));
        assert!(outcome(&operation, &Value::Integer(1)).is_err());
        assert!(outcome(&operation, &Value::Error("ERR what".to_owned())).is_err());
    }

    #[test]
    fn transactions_have_an_outcome_for_each_part_or_for_all() {
        let parts = vec![put("q", b"p", PutOptions::default()), fail("q", "1-1-1", Some(5))];
        let request = transaction(parts);
        let sent: Vec<Vec<u8>> =
            request.parts.iter().map(|words| words.as_slice().join(&b" "[..])).collect();
        assert_eq!(sent, [&b"MULTI"[..], b"PUT q p PRIORITY 0", b"FAIL q 1-1-1 REASON no DELAY 5"]);
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let all = outcome(&request.operation, &Value::Array(vec![bulk("7"), bulk("W")])).unwrap();
        let (put, failed) = (Outcome::Put { id: "7".to_owned() }, Outcome::Turned("W".to_owned()));
        assert_eq!(all, Outcome::Transaction(vec![put, failed]));
        let refusal = |text: &str| {
            outcome(&request.operation, &Value::Error(format!("EXECABORT 2 {text} …")))
        };
        assert_eq!(refusal("STALE").unwrap(), Outcome::Refused("EXECABORT".to_owned()));
        assert_eq!(refusal("STORE").unwrap(), Outcome::Refused("STORE".to_owned()));
        assert!(refusal("BADARG").is_err());
        assert!(outcome(&request.operation, &Value::Array(vec![bulk("7")])).is_err());
    }
}
