//! Requests: their words on the wire and their entries in the history; and the meaning of replies.
//! Who sends them, and whether an answer comes, is up to the clients.

use pinpriq_proto::command::{
    Ack, Amendment, Bury, Command, Delay, Fail, Held, HeldBy, Put, QueueCommand, Release,
    Selection, Take, TakeMode, TimeToLive, Touch, Transfer, Wait,
};
use pinpriq_proto::named_limits::{LimitChange, LimitCommand, OrNone};
use pinpriq_proto::request::parts;
use pinpriq_proto::settings::{
    ATTEMPTS, BACKOFF, BACKOFFMAX, DEADLETTER, KEYHOLD, KEYLIMIT, LIMIT, RANKING, SHARELIMIT, USES,
    Value,
};
use pinpriq_proto::task::{COST_USUAL, StateKind, Terms};
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::resp::{Value as Reply, Words};

use crate::history::{Delivery, Operation, Outcome, digest};

/// Why a reply makes no sense.
type Strange = String;

/// A request to pinpriq.
#[must_use]
#[derive(Clone, Debug)]
pub struct Request {
    /// What the history says of it.
    pub operation: Operation,
    /// Its words.
    pub words: Words,
    /// What is sent before it, and answered before it: the parts of a transaction.
    pub parts: Vec<Words>,
}

impl Request {
    fn of(operation: Operation, command: &Command<'_>) -> Self {
        let Some(words) = command.words() else { unreachable!("{command:?} is a request") };
        Self { operation, words, parts: Vec::new() }
    }

    /// Notes whether something else may have changed the order in which tasks are delivered.
    pub fn ordered_otherwise(mut self, is_so: bool) -> Self {
        if let Operation::Take { otherwise_ordered, .. }
        | Operation::Pop { otherwise_ordered, .. } = &mut self.operation
        {
            *otherwise_ordered = is_so;
        }
        self
    }

    /// Everything that is sent, in its order.
    pub fn words(&self) -> impl Iterator<Item = &Words> {
        self.parts.iter().chain([&self.words])
    }
}

/// The options of a put, besides queue and payload.
#[derive(Clone, Copy, Default, Debug)]
pub struct PutOptions {
    /// The priority.
    pub priority: i64,
    /// How long it waits.
    pub delay_ms: u64,
    /// Its time to live.
    pub ttl_ms: Option<u64>,
    /// How long leases last.
    pub ttr_ms: Option<u64>,
    /// Its key.
    pub key: Option<&'static str>,
    /// Its share, if that is not its key.
    pub share: Option<&'static str>,
}

/// The options of a release, besides the receipt.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReleaseOptions {
    /// How long it waits.
    pub delay_ms: u64,
    /// A new priority.
    pub priority: Option<i64>,
    /// Whether it goes behind tasks of equal priority.
    pub tail: bool,
}

/// Puts a task.
pub fn put(queue: &str, payload: &[u8], options: PutOptions) -> Request {
    let PutOptions { priority, delay_ms, ttl_ms, ttr_ms, key, share } = options;
    let ttl = ttl_ms.map(Span::from_ms).map_or(TimeToLive::Default, TimeToLive::For);
    let command = Command::Put(Put {
        terms: Terms::of(key.map(str::as_bytes), ttr_ms.map(Span::from_ms))
            .with(share.map(str::as_bytes), COST_USUAL),
        priority: Some(priority),
        delay: Delay::For(Span::from_ms(delay_ms)),
        ttl,
        ..Put::new(queue.as_bytes(), payload)
    });
    let operation = Operation::Put {
        queue: queue.to_owned(),
        payload: digest(payload),
        id: None,
        priority: Some(priority),
        delay_ms,
        ttl_ms,
        ttr_ms,
        key: key.map(str::to_owned),
        share: share.map(str::to_owned),
    };
    Request::of(operation, &command)
}

/// Takes tasks under leases, in the usual order.
pub fn take(queue: &str, count: u64, ttr_ms: Option<u64>, wait_ms: u64) -> Request {
    let mode = TakeMode::Lease { ttr: ttr_ms.map(Span::from_ms) };
    let queues = [queue.as_bytes()];
    let command = taking(&queues, count, wait_ms, mode);
    let queue = queue.to_owned();
    Request::of(Operation::Take { queue, count, ttr_ms, otherwise_ordered: false }, &command)
}

/// Takes tasks for good, in the usual order.
pub fn pop(queue: &str, count: u64) -> Request {
    let queues = [queue.as_bytes()];
    let command = taking(&queues, count, 0, TakeMode::Pop);
    let queue = queue.to_owned();
    Request::of(Operation::Pop { queue, count, otherwise_ordered: false }, &command)
}

/// Finishes a task.
pub fn ack(queue: &str, receipt: &str) -> Request {
    let held = held(queue, receipt);
    let command = Command::Ack(Ack::new(held));
    Request::of(Operation::Ack { receipt: receipt.to_owned() }, &command)
}

/// Sets a task aside.
pub fn bury(queue: &str, receipt: &str) -> Request {
    let held = held(queue, receipt);
    let command = Command::Bury(Bury { reason: Some(b"tired"), ..Bury::new(held) });
    Request::of(Operation::Bury { receipt: receipt.to_owned() }, &command)
}

/// Renews a lease.
pub fn touch(queue: &str, receipt: &str) -> Request {
    let command = Command::Touch(Touch::new(held(queue, receipt)));
    Request::of(Operation::Touch { receipt: receipt.to_owned(), by_ms: None }, &command)
}

/// Gives a task back.
pub fn release(queue: &str, receipt: &str, options: ReleaseOptions) -> Request {
    let ReleaseOptions { delay_ms, priority, tail } = options;
    let command = Command::Release(Release {
        delay: Span::from_ms(delay_ms),
        amendment: Amendment { priority: priority.map(Some).into(), ..Amendment::default() },
        tail,
        ..Release::new(held(queue, receipt))
    });
    let receipt = receipt.to_owned();
    let ttl_ms = None;
    Request::of(Operation::Release { receipt, delay_ms, ttl_ms, priority, tail }, &command)
}

/// Removes a task.
pub fn kill(queue: &str, id: &str) -> Request {
    let command = Command::Kill { queue: queue.as_bytes().into(), ids: &[id.as_bytes()] };
    Request::of(Operation::Kill { queue: queue.to_owned(), id: id.to_owned() }, &command)
}

/// Brings a buried task back.
pub fn dig(queue: &str, id: &str) -> Request {
    let command = Command::Dig(Transfer::new(queue.as_bytes(), id.as_bytes()));
    let (queue, id) = (queue.to_owned(), id.to_owned());
    Request::of(Operation::Dig { queue, id, changed: false }, &command)
}

/// Brings all buried tasks back.
pub fn plow(queue: &str) -> Request {
    let name = queue.as_bytes().into();
    let command = Command::Plow { queue: name, count: None, delay: Span::ZERO, ttl: None };
    Request::of(Operation::Plow { queue: queue.to_owned() }, &command)
}

/// Gives a task back because it failed.
pub fn fail(queue: &str, receipt: &str, delay_ms: Option<u64>) -> Request {
    let (held, delay) = (held(queue, receipt), delay_ms.map(Span::from_ms));
    let command = Command::Fail(Fail { reason: Some(b"no"), delay, ..Fail::new(held) });
    Request::of(Operation::Fail { receipt: receipt.to_owned(), delay_ms }, &command)
}

/// Moves ready tasks to another queue.
pub fn move_tasks(from: &str, to: &str, count: u64) -> Request {
    let command = Command::Move {
        from: from.as_bytes().into(),
        to: to.as_bytes(),
        count: small(count),
        state: StateKind::Ready,
    };
    let (from, to) = (from.to_owned(), to.to_owned());
    Request::of(Operation::Move { from, to, count }, &command)
}

/// Brings dead letters back that all come from one queue.
pub fn redrive(letters: &str, home: &str, count: u64) -> Request {
    let command = Command::Redrive { queue: letters.as_bytes().into(), count: small(count) };
    let (from, to) = (letters.to_owned(), home.to_owned());
    Request::of(Operation::Move { from, to, count }, &command)
}

/// What becomes of tasks of a queue that fail.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The queue.
    pub queue: &'static str,
    /// How often they are tried.
    pub attempts: Option<u64>,
    /// The first wait, and the longest.
    pub backoff_ms: Option<(u64, u64)>,
    /// Where they go then.
    pub dead_letter: Option<&'static str>,
}

/// Sets what becomes of tasks that fail.
pub fn set_policy(policy: Policy) -> Request {
    let Policy { queue, attempts, backoff_ms, dead_letter } = policy;
    let mut settings = Vec::new();
    settings.extend(attempts.map(|most| (ATTEMPTS, Value::Number(most))));
    settings.extend(backoff_ms.map(|it| (BACKOFF, Value::Span(Span::from_ms(it.0)))));
    settings.extend(backoff_ms.map(|it| (BACKOFFMAX, Value::Span(Span::from_ms(it.1)))));
    settings.extend(dead_letter.map(|name| (DEADLETTER, Value::Bytes(name.as_bytes()))));
    let command = QueueCommand::Set { queue: queue.as_bytes().into(), settings: &settings };
    let (first_ms, most_ms) = backoff_ms.unwrap_or((0, 3_600_000));
    let operation = Operation::Policy {
        queue: queue.to_owned(),
        attempts,
        backoff_ms: first_ms,
        backoff_max_ms: most_ms,
        dead_letter: dead_letter.map(str::to_owned),
    };
    Request::of(operation, &command.into())
}

/// How many tasks of a queue may be taken at once, and what holds others back.
#[derive(Clone, Copy, Default, Debug)]
pub struct Limits {
    /// The queue.
    pub queue: &'static str,
    /// The most of the queue.
    pub limit: Option<u64>,
    /// The most of one key.
    pub key_limit: Option<u64>,
    /// The most of one share.
    pub share_limit: Option<u64>,
    /// Whether a task that has failed holds back the others of its key.
    pub key_hold: bool,
    /// Whether shares take turns.
    pub fair: bool,
    /// The named limit that its tasks count for.
    pub uses: Option<&'static str>,
}

impl Limits {
    /// Those of a queue without settings.
    pub const NONE: Self = Self {
        queue: "",
        limit: None,
        key_limit: None,
        share_limit: None,
        key_hold: false,
        fair: false,
        uses: None,
    };
}

/// Sets how many tasks may be taken at once.
pub fn set_limits(limits: Limits) -> Request {
    let Limits { queue, limit, key_limit, share_limit, key_hold, fair, uses } = limits;
    let number = |limit: Option<u64>| limit.map_or(Value::None, Value::Number);
    let settings = [
        (LIMIT, number(limit)),
        (KEYLIMIT, number(key_limit)),
        (SHARELIMIT, number(share_limit)),
        (KEYHOLD, Value::Word(key_hold.into())),
        (RANKING, Value::Word(fair.into())),
        (USES, uses.map_or(Value::None, |name| Value::Bytes(name.as_bytes()))),
    ];
    let command = QueueCommand::Set { queue: queue.as_bytes().into(), settings: &settings };
    let queue = queue.to_owned();
    let uses = uses.map(str::to_owned);
    let operation =
        Operation::Limits { queue, limit, key_limit, share_limit, key_hold, fair, uses };
    Request::of(operation, &command.into())
}

/// Says how many tasks of all queues that use a limit may be taken at once.
pub fn set_named_limit(name: &str, max: Option<u64>) -> Request {
    let change = LimitChange { max: Some(OrNone(max)), rate: None };
    let command = Command::Limit(LimitCommand::Set { name: name.as_bytes(), change });
    Request::of(Operation::NamedLimit { name: name.to_owned(), max }, &command)
}

fn taking<'a>(queues: &'a [&'a [u8]], count: u64, wait_ms: u64, mode: TakeMode) -> Command<'a> {
    let wait = if wait_ms > 0 { Wait::For(Span::from_ms(wait_ms)) } else { Wait::No };
    let (member, selection) = (None, Selection::DEFAULT);
    Command::Take(Take { queues, member, count: small(count), wait, selection, mode })
}

fn held<'a>(queue: &'a str, receipt: &str) -> Held<'a> {
    let Ok(receipt) = parts::receipt(receipt.as_bytes()) else {
        unreachable!("{receipt} was given as a receipt")
    };
    Held { queue: queue.as_bytes().into(), by: HeldBy::Receipt(receipt) }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Several requests that are carried out together or not at all.
pub fn transaction(requests: Vec<Request>) -> Request {
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
pub fn check_kept(request: &Request, reply: &Reply) -> Result<(), Strange> {
    match reply {
        Reply::Simple(word) if word == "OK" || word == "QUEUED" => Ok(()),
        Reply::Error(text) if text.starts_with("BUSY") || text.starts_with("STORE") => Ok(()),
        _ => Err(format!("a part of {:?} was answered {reply:?}", request.operation)),
    }
}

/// What a reply means for the history.
pub fn outcome(operation: &Operation, reply: &Reply) -> Result<Outcome, Strange> {
    let strange = || format!("{operation:?} was answered {reply:?}");
    if let Reply::Error(text) = reply {
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
            let Reply::Array(tasks) = reply else { return Err(strange()) };
            let tasks: Option<Vec<Delivery>> = tasks.iter().map(delivery).collect();
            Ok(Outcome::Tasks(tasks.ok_or_else(strange)?))
        }
        Operation::Ack { .. }
        | Operation::Bury { .. }
        | Operation::Policy { .. }
        | Operation::Limits { .. }
        | Operation::NamedLimit { .. } => match reply {
            Reply::Simple(word) if word == "OK" => Ok(Outcome::Done),
            _ => Err(strange()),
        },
        Operation::Touch { .. } | Operation::Disturb { .. } => Ok(Outcome::Done),
        Operation::Release { .. } | Operation::Fail { .. } | Operation::Dig { .. } => {
            Ok(Outcome::Turned(text(reply).ok_or_else(strange)?))
        }
        Operation::Kill { .. } | Operation::Plow { .. } | Operation::Move { .. } => match reply {
            Reply::Integer(count) => {
                u64::try_from(*count).map(Outcome::Count).map_err(|_| strange())
            }
            _ => Err(strange()),
        },
        Operation::Transaction { operations } => {
            let Reply::Array(replies) = reply else { return Err(strange()) };
            if replies.len() != operations.len() {
                return Err(strange());
            }
            let parts = operations.iter().zip(replies).map(|(part, reply)| outcome(part, reply));
            Ok(Outcome::Transaction(parts.collect::<Result<Vec<Outcome>, Strange>>()?))
        }
    }
}

fn text(value: &Reply) -> Option<String> {
    Some(String::from_utf8_lossy(value.as_bytes()?).into_owned())
}

fn delivery(task: &Reply) -> Option<Delivery> {
    let Reply::Array(parts) = task else { return None };
    let [_, id, receipt, payload] = parts.as_slice() else { return None };
    Some(Delivery { id: text(id)?, receipt: text(receipt), payload: digest(payload.as_bytes()?) })
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::Value;

    use super::{PutOptions, ack, fail, outcome, put, take, transaction};
    use crate::history::{Delivery, Outcome, digest};

    #[test]
    fn words_and_the_history_say_the_same() {
        let options = PutOptions { priority: -2, delay_ms: 5, ..PutOptions::default() };
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
        assert_eq!(sent, [&b"MULTI"[..], b"PUT q p", b"FAIL q 1-1-1 REASON no DELAY 5"]);
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
