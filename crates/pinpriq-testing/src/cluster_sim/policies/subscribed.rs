//! Subscriptions over the queues of all shards: no delivery beyond the credit, each task for one
//! holder, and none lost.
//!
//! Two clients share the queues, which nobody else uses.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{LOOK_MAX, Policy, Told, outcome, text};
use crate::cluster_sim::line::Request;

/// Several in each shard.
const QUEUES: [&str; 8] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];

/// Longer than a run.
const LEASE_MS: u64 = 3_600_000;

/// The most tasks that may be there without being done, so that a look shows all of them.
const OPEN_MAX: usize = 200;

/// What both clients know.
#[derive(Default)]
struct Shared {
    known: BTreeMap<u64, Told>,
    /// The tasks that were popped or acknowledged.
    done: BTreeSet<u64>,
    /// Those of which it is not known whether they were acknowledged, once for each request.
    perhaps_done: Vec<u64>,
    /// How many popped tasks may have been lost with connections.
    lost: u64,
    /// The latest incarnation that has delivered something of a queue.
    latest: BTreeMap<String, u64>,
}

impl Shared {
    /// Notes who has delivered something of a queue. Returns whether it owns the queue no longer.
    ///
    /// A node that was paused, or cut from the others, sends what it had granted before it learns
    /// that there is another owner. The receipts of such deliveries are stale.
    fn is_of_former_owner(&mut self, queue: &str, receipt: &str) -> bool {
        let incarnation = receipt.split('-').nth(1).and_then(|it| it.parse().ok());
        let incarnation: u64 = incarnation.unwrap_or_else(|| panic!("{receipt} is no receipt"));
        let latest = self.latest.entry(queue.to_owned()).or_default();
        *latest = incarnation.max(*latest);
        incarnation < *latest
    }
}

/// How deliveries come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Mode {
    #[default]
    Tied,
    Leased,
    Popped,
    /// Leased, and called back until it is started.
    Recalled,
}

impl Mode {
    fn any(dice: &mut Dice) -> Self {
        dice.pick(&[Self::Tied, Self::Leased, Self::Popped, Self::Recalled])
    }
}

#[derive(Clone, Copy, Default)]
enum Asked {
    #[default]
    Hello,
    Subscribe(Mode),
    Unsubscribe,
    Credit(u64),
    Put(u64),
    Ack(u64),
    /// All that it holds of one queue.
    Start,
    Reset,
}

#[derive(Default)]
pub(super) struct Subscribed {
    shared: Rc<RefCell<Shared>>,
    /// Whether deliveries come as pushes of their own.
    greets: bool,
    /// The mode of its subscriptions, if it certainly has them.
    mode: Option<Mode>,
    /// The modes in which something may come.
    possible: Vec<Mode>,
    /// Since it began.
    credits: u64,
    delivered: u64,
    /// The receipts of what it holds, with the queues.
    held: BTreeMap<u64, (String, String)>,
    /// The receipts of what may be called back. That frees a credit, and a pop may use it.
    recallable: BTreeMap<u64, String>,
    /// The receipts of deliveries of tasks that were done before, which must be called back.
    overtaken: BTreeSet<String>,
    asked: Asked,
}

impl Subscribed {
    /// Two of them.
    pub(super) fn pair() -> [Self; 2] {
        let one = Self::default();
        let other = Self { shared: Rc::clone(&one.shared), ..Self::default() };
        [one, other]
    }

    /// Begins again, without subscriptions and credits.
    fn restart(&mut self) {
        if self.possible.contains(&Mode::Popped) {
            let credits = self.credits - self.delivered + self.recallable.len() as u64;
            self.shared.borrow_mut().lost += credits;
        }
        let shared = Rc::clone(&self.shared);
        *self = Self { shared, ..Self::default() };
    }

    fn put(&self) -> Asked {
        Asked::Put(self.shared.borrow().known.len() as u64)
    }

    /// Chooses what to ask.
    fn choose(&self, dice: &mut Dice) -> Asked {
        let shared = self.shared.borrow();
        let open = shared.known.len() - shared.done.len();
        if !self.greets {
            return Asked::Hello;
        }
        match dice.below(100) {
            0 => Asked::Reset,
            1..4 => Asked::Unsubscribe,
            4..10 => Asked::Subscribe(Mode::any(dice)),
            _ if self.mode.is_none() => Asked::Subscribe(Mode::any(dice)),
            10..35 if self.credits < self.delivered + 6 => {
                Asked::Credit(dice.pick(&[1, 1, 1, 2, 3, 9]))
            }
            35..45 if !self.held.is_empty() => Asked::Start,
            45..65 if !self.held.is_empty() => {
                let held: Vec<u64> = self.held.keys().copied().collect();
                Asked::Ack(dice.pick(&held))
            }
            _ if open < OPEN_MAX => self.put(),
            _ => Asked::Credit(1),
        }
    }
}

impl Policy for Subscribed {
    fn leaves(&self, dice: &mut Dice) -> bool {
        dice.once_in(150)
    }

    fn ask(&mut self, dice: &mut Dice) -> Request {
        self.asked = self.choose(dice);
        let words = match self.asked {
            Asked::Hello => Words::new("HELLO").bytes("3"),
            Asked::Reset => Words::new("RESET"),
            Asked::Subscribe(mode) => {
                self.possible.push(mode);
                let words = Words::new("SUBSCRIBE").queue_names(&QUEUES);
                match mode {
                    Mode::Tied => words,
                    Mode::Leased => words.option("TTR", Some(LEASE_MS)),
                    Mode::Popped => words.bytes("POP"),
                    Mode::Recalled => words.option("TTR", Some(LEASE_MS)).bytes("RECALL"),
                }
            }
            Asked::Unsubscribe => {
                self.mode = None;
                Words::new("UNSUBSCRIBE").queue_names(&QUEUES)
            }
            Asked::Credit(credits) => {
                self.credits += credits;
                Words::new("CREDIT").bytes(credits.to_string())
            }
            Asked::Put(number) => {
                let queue = dice.pick(&QUEUES);
                let words = Words::new("PUT").bytes(queue).bytes(number.to_string());
                // Until a reply says more.
                self.shared.borrow_mut().known.insert(number, Told::Unknown);
                words.option("PRIORITY", Some(dice.below(4)))
            }
            Asked::Start => {
                let queues: Vec<&str> = self.held.values().map(|(queue, _)| &**queue).collect();
                let queue = dice.pick(&queues);
                let beside = self.held.values().filter(|(of, _)| of == queue);
                Words::new("START").bytes(queue).all(beside.map(|(_, receipt)| receipt))
            }
            Asked::Ack(number) => {
                let (queue, receipt) = self.held.remove(&number).unwrap_or_default();
                self.shared.borrow_mut().perhaps_done.push(number);
                Words::new("ACK").bytes(queue).bytes(receipt)
            }
        };
        Request::of(&[words])
    }

    fn delivered(&mut self, delivery: &Value) {
        let parts = delivery.elements().unwrap_or_default();
        if text(parts.first()) == "recall" {
            // What is delivered in its place uses its credit, or is to come.
            self.delivered -= 1;
            let receipt = text(parts.get(3));
            self.overtaken.remove(&receipt);
            self.recallable.retain(|_, held| *held != receipt);
            self.held.retain(|_, (_, held)| *held != receipt);
            return;
        }
        self.delivered += 1;
        let (delivered, credits) = (self.delivered, self.credits);
        assert!(delivered <= credits, "{delivered} deliveries came for {credits} credits");
        let number = number_of_push(delivery);
        let is_popped = parts.get(3) == Some(&Value::Null);
        let is_possible = |mode: &Mode| (*mode == Mode::Popped) == is_popped;
        let possible = &self.possible;
        assert!(possible.iter().any(is_possible), "{delivery:?} came to who has {possible:?}");
        let mut shared = self.shared.borrow_mut();
        assert!(shared.known.contains_key(&number), "{number} was not put");
        let (queue, receipt) = (text(parts.get(1)), text(parts.get(3)));
        let is_late = !is_popped && shared.is_of_former_owner(&queue, &receipt);
        if shared.done.contains(&number) && !is_late {
            // It may have been called back on its way, and the other client was faster.
            let was_recalled = !is_popped && possible.contains(&Mode::Recalled);
            assert!(was_recalled, "{number} was delivered after it was done");
            self.overtaken.insert(receipt.clone());
        }
        if is_popped {
            shared.done.insert(number);
        } else {
            if possible.contains(&Mode::Recalled) {
                self.recallable.insert(number, receipt.clone());
            }
            self.held.insert(number, (queue, receipt));
        }
    }

    fn disconnected(&mut self) {
        self.restart();
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let mut shared = self.shared.borrow_mut();
        if let (Asked::Ack(number), Some(Value::Error(error))) = (self.asked, replies.first())
            && error.split(' ').next() != Some("UNKNOWN")
        {
            let refused = shared.perhaps_done.iter().position(|it| *it == number);
            refused.map(|refused| shared.perhaps_done.swap_remove(refused));
            return;
        }
        if matches!(self.asked, Asked::Start) {
            // What was held may have been called back.
            return;
        }
        let outcome = outcome(replies, 1);
        match (self.asked, outcome) {
            (Asked::Hello, outcome) => self.greets = outcome.is_ok(),
            (Asked::Put(number), outcome) => {
                shared.known.insert(number, outcome.map_or_else(|told| told, |_| Told::Done));
            }
            (Asked::Ack(number), Ok(_)) => {
                assert!(shared.done.insert(number), "{number} was done twice");
                self.recallable.remove(&number);
            }
            (Asked::Subscribe(mode), Ok(reply)) => {
                let count = i64::try_from(QUEUES.len()).unwrap_or_default();
                assert_eq!(*reply, Value::Integer(count), "subscriptions");
                // What the former one has popped may be on its way.
                let was_popped = self.mode == Some(Mode::Popped);
                self.possible = vec![mode];
                self.possible.extend(was_popped.then_some(Mode::Popped));
                self.mode = Some(mode);
            }
            (Asked::Subscribe(_), Err(Told::Refused)) => {
                self.possible.pop();
            }
            (Asked::Subscribe(_), Err(_)) => self.mode = None,
            (Asked::Credit(_), Ok(reply)) => {
                let left = self.credits - self.delivered;
                let Value::Integer(told) = reply else { panic!("CREDIT was answered {reply:?}") };
                assert!(told.unsigned_abs() <= left, "{told} credits, not {left}");
            }
            (Asked::Reset, Ok(_)) => {
                drop(shared);
                self.restart();
            }
            (
                Asked::Start | Asked::Credit(_) | Asked::Ack(_) | Asked::Unsubscribe | Asked::Reset,
                _,
            ) => {}
        }
    }

    fn looks(&self) -> Vec<Words> {
        // One look for all states, since tasks go from one state to another meanwhile.
        let scan = |queue| Words::new("SCAN").bytes(queue).option("COUNT", Some(LOOK_MAX));
        QUEUES.iter().map(|queue| scan(*queue).bytes("WITHMETA")).collect()
    }

    fn judge(&self, shown: &[Value]) {
        let shared = self.shared.borrow();
        let (mut ready, mut all) = (Vec::new(), Vec::new());
        for task in shown.iter().flat_map(page) {
            let number = number_of_payload(task.field("payload"));
            all.push(number);
            if text(task.field("state")) == "R" {
                ready.push(number);
            }
        }
        let overtaken = &self.overtaken;
        assert!(overtaken.is_empty(), "{overtaken:?} were not called back from who was too late");
        let left: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(left.len(), all.len(), "a task is there twice");
        let back = left.intersection(&shared.done).next();
        assert_eq!(back, None, "a task is there although it is done");
        let mut missing = 0;
        for (number, told) in &shared.known {
            let is_there = left.contains(number) || shared.done.contains(number);
            match told {
                Told::Done if !is_there && !shared.perhaps_done.contains(number) => missing += 1,
                Told::Refused => assert!(!is_there, "{number} was refused"),
                _ => {}
            }
        }
        let lost = shared.lost;
        assert!(missing <= lost, "{missing} are missing, and {lost} at most were lost");
        let is_starving = self.mode.is_some() && self.credits > self.delivered;
        assert!(
            !is_starving || ready.is_empty(),
            "{ready:?} wait for a subscriber that has {} credits of {} left",
            self.credits - self.delivered,
            self.credits,
        );
    }
}

/// The number in the payload of a delivery.
fn number_of_push(delivery: &Value) -> u64 {
    number_of_payload(delivery.elements().and_then(|parts| parts.get(4)))
}

fn number_of_payload(payload: Option<&Value>) -> u64 {
    let payload = text(payload);
    payload.parse().unwrap_or_else(|_| panic!("a payload is {payload:?}"))
}

/// The tasks of a whole queue.
fn page(reply: &Value) -> &[Value] {
    let Some([cursor, tasks]) = reply.elements() else { panic!("no page: {reply:?}") };
    assert_eq!(text(Some(cursor)), "0", "more than can be looked at");
    tasks.elements().unwrap_or_else(|| panic!("no tasks: {tasks:?}"))
}
