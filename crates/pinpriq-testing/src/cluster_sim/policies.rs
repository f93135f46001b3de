//! What queues do by themselves: a client asks for it while there is trouble, and remembers what it
//! was told. After the trouble the queues are looked at, and compared with that.
//!
//! The histories of the visitors know nothing of these.

mod fan_out;
mod given;
mod paced;
mod slots;
mod subscribed;
mod transactions;
mod unique;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::config::DoorName;

use crate::cluster_sim::line::{Line, Request};

/// The most tasks that a look shows. None of these queues may have more.
const LOOK_MAX: usize = 1_000;

/// Something that queues do by themselves. Its methods panic if anything is wrong.
pub(crate) trait Policy {
    /// The door of its client.
    fn door(&self) -> DoorName {
        DoorName::Resp
    }

    /// What to ask next.
    fn ask(&mut self, dice: &mut Dice) -> Request;

    /// Whether it ends its connection now.
    fn leaves(&self, _: &mut Dice) -> bool {
        false
    }

    /// Takes what came without being asked for.
    fn delivered(&mut self, delivery: &Value) {
        panic!("{delivery:?} came to who has no subscription");
    }

    /// Notes that the connection is gone, after the replies.
    fn disconnected(&mut self) {}

    /// Takes the replies to what it has asked last. Some are missing if the connection has ended.
    fn take_replies(&mut self, replies: &[Value]);

    /// What to look at after the trouble.
    fn looks(&self) -> Vec<Words>;

    /// Judges the replies to [`Policy::looks`].
    fn judge(&self, shown: &[Value]);
}

/// A client that asks for one policy.
pub(crate) struct Patron {
    pub(crate) line: Line,
    pub(crate) policy: Box<dyn Policy>,
    /// How many deliveries have come.
    pub(crate) deliveries: usize,
}

impl Patron {
    /// One for each policy.
    pub(crate) fn all() -> Vec<Self> {
        let [one, other] = subscribed::Subscribed::pair();
        let policies: [Box<dyn Policy>; 9] = [
            Box::new(fan_out::FanOut::default()),
            Box::new(given::Given::default()),
            Box::new(paced::Paced::default()),
            Box::new(slots::Slots::default()),
            Box::new(transactions::Transactions::default()),
            Box::new(unique::Unique::default()),
            Box::new(wire::Wire::default()),
            Box::new(one),
            Box::new(other),
        ];
        let patron = |policy: Box<dyn Policy>| Self {
            line: Line::new(policy.door()),
            policy,
            deliveries: 0,
        };
        policies.into_iter().map(patron).collect()
    }

    /// Passes deliveries and replies on, if there are.
    pub(crate) fn listen(&mut self) {
        let pushed = std::mem::take(&mut self.line.pushed);
        self.deliveries += pushed.len();
        let replies = self.line.take_replies();
        let before = if replies.is_some() { self.line.pushed_before } else { pushed.len() };
        let (earlier, later) = pushed.split_at(before.min(pushed.len()));
        for delivery in earlier {
            self.policy.delivered(delivery);
        }
        if let Some(replies) = replies {
            self.policy.take_replies(&replies);
        }
        for delivery in later {
            self.policy.delivered(delivery);
        }
        self.line.pushed_before = 0;
    }

    /// Notes that the connection is gone.
    pub(crate) fn disconnected(&mut self) {
        self.line.disconnected();
        self.listen();
        self.policy.disconnected();
    }
}

/// What a client knows of something that it has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    /// It has happened.
    Done,
    /// It has not happened.
    Refused,
    /// It has happened or not.
    Unknown,
}

/// Returns the last of this many replies, or what is known without it.
fn outcome(replies: &[Value], wanted: usize) -> Result<&Value, Told> {
    match replies.get(wanted - 1) {
        None => Err(Told::Unknown),
        Some(Value::Error(error)) => match error.split(' ').next().unwrap_or_default() {
            "UNKNOWN" => Err(Told::Unknown),
            "TRYAGAIN" | "CLUSTERDOWN" | "BUSY" | "EXISTS" | "EXECABORT" => Err(Told::Refused),
            _ => panic!("a request was answered {error}"),
        },
        Some(reply) => Ok(reply),
    }
}

/// Notes what is known of a number after another try.
fn note(known: &mut BTreeMap<u64, Told>, number: u64, told: Told) {
    let entry = known.entry(number).or_insert(told);
    if told == Told::Done || (*entry == Told::Refused && told == Told::Unknown) {
        *entry = told;
    }
}

/// A number of which it is not known that it is done, most of the time, or else a new one.
fn next_number(known: &BTreeMap<u64, Told>, dice: &mut Dice) -> u64 {
    let open: Vec<u64> =
        known.iter().filter(|(_, told)| **told != Told::Done).map(|(it, _)| *it).collect();
    if open.is_empty() || dice.chance(20) { known.len() as u64 } else { dice.pick(&open) }
}

/// The tasks of a reply.
fn tasks(reply: &Value) -> &[Value] {
    let tasks = reply.elements().unwrap_or_else(|| panic!("no tasks: {reply:?}"));
    assert!(tasks.len() < LOOK_MAX, "more than can be looked at");
    tasks
}

fn text(value: Option<&Value>) -> String {
    let bytes = value.and_then(Value::as_bytes).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number in the payload of a task.
fn number_of(task: &Value) -> u64 {
    let payload = text(task.elements().and_then(|task| task.get(3)));
    payload.parse().unwrap_or_else(|_| panic!("a payload is {payload:?}"))
}

/// How often each number is there.
fn counts(reply: &Value) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for task in tasks(reply) {
        *counts.entry(number_of(task)).or_default() += 1;
    }
    counts
}

/// Panics unless everything that is done is there once, and the rest as is known of it.
fn compare(what: &str, known: &BTreeMap<u64, Told>, there: &BTreeMap<u64, usize>) {
    for (number, told) in known {
        let count = there.get(number).copied().unwrap_or(0);
        let is_right = match told {
            Told::Done => count == 1,
            Told::Refused => count == 0,
            Told::Unknown => count <= 1,
        };
        assert!(is_right, "{what} {number}, {told:?}, is there {count} times");
    }
    let stranger = there.keys().find(|number| !known.contains_key(number));
    assert_eq!(stranger, None, "{what} that was not asked for");
}

/// What is known of tasks that are popped too.
#[derive(Default)]
struct Popping {
    known: BTreeMap<u64, Told>,
    popped: BTreeSet<u64>,
    /// How many pops of one task were not answered.
    lost: usize,
}

impl Popping {
    fn pop(&mut self, what: &str, number: u64) {
        assert!(self.popped.insert(number), "{what} {number} was popped twice");
    }

    /// Panics unless everything that is done was popped or is there, once.
    fn judge(&self, what: &str, left: &BTreeMap<u64, usize>) {
        let mut missing = 0;
        for (number, told) in &self.known {
            let left = left.get(number).copied().unwrap_or(0);
            let count = left + usize::from(self.popped.contains(number));
            assert!(count <= 1, "{what} {number} is there {count} times");
            match told {
                Told::Done => missing += usize::from(count == 0),
                Told::Refused => assert_eq!(count, 0, "{what} {number} was refused"),
                Told::Unknown => {}
            }
        }
        let lost = self.lost;
        assert!(missing <= lost, "{missing} of {what} are missing, with {lost} lost pops");
        let stranger = left.keys().chain(&self.popped).find(|it| !self.known.contains_key(it));
        assert_eq!(stranger, None, "{what} that was not asked for");
    }
}

fn peek(queue: &str) -> Words {
    Words::new("PEEK").bytes(queue).option("COUNT", Some(LOOK_MAX))
}
