//! The load on a cluster: clients on all nodes that put, take, pop and finish tasks, and connect
//! again, to any node that runs, when theirs is gone.
//!
//! All leases have a TTR. A client may finish a lease that another connection has taken.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::Dice;
use pinpriq_testing::history::{Event, Outcome};

use super::NODES;
use super::board::Board;
use crate::client::{Client, Heard};
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use crate::process::GUARD;
use pinpriq_testing::history::request::{
    Limits, PutOptions, ReleaseOptions, Request, ack, fail, pop, put, release, set_limits, take,
    touch,
};

/// A queue.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) name: &'static str,
    /// Whether clients wait for its tasks. A blocked take is asked again of the next owner, and a
    /// lease that the former one granted may never arrive. So its order is not judged.
    pub(crate) waits: bool,
}

/// The queues: two in each of the six shards, of which one is waited for.
pub(crate) const QUEUES: [Queue; 12] = [
    Queue { name: "orders", waits: false },
    Queue { name: "photos", waits: true },
    Queue { name: "mail", waits: false },
    Queue { name: "reports", waits: true },
    Queue { name: "bills", waits: false },
    Queue { name: "thumbs", waits: true },
    Queue { name: "notify", waits: false },
    Queue { name: "export", waits: true },
    Queue { name: "letters", waits: false },
    Queue { name: "resize", waits: true },
    Queue { name: "parcels", waits: false },
    Queue { name: "scans", waits: true },
];

/// What holds tasks back in some of them. Clients set it again and again.
const LIMITS: [Limits; 2] = [
    Limits {
        queue: "bills",
        key_limit: Some(1),
        share_limit: Some(3),
        key_hold: true,
        fair: true,
        ..Limits::NONE
    },
    Limits { queue: "letters", limit: Some(8), key_limit: Some(2), ..Limits::NONE },
];
/// The keys and shares of tasks in all queues.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const SHARES: [&str; 3] = ["x", "y", "z"];

/// What a load is made of.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) queues: &'static [Queue],
    /// What holds tasks back in some of them.
    pub(crate) limits: &'static [Limits],
    /// The number of clients.
    pub(crate) clients: usize,
}

/// The load on all shards.
pub(crate) const ON_ALL: Plan = Plan { queues: &QUEUES, limits: &LIMITS, clients: 6 };
/// How long leases last, in milliseconds.
const TTRS_MS: [u64; 3] = [400, 1_500, 4_000];
/// Above this number of tasks, more are taken than put.
const BACKLOG_MAX: u64 = 300;
/// The most leases that a client keeps for later.
const HELD_MAX: usize = 12;
/// The longest pause of a client between two requests, in microseconds.
const PAUSE_US: u64 = 6_000;
/// How long a client waits before it connects again.
const AGAIN: Duration = Duration::from_millis(20);
/// How often a queue may have tasks and give none in a drain.
const EMPTY_MAX: u32 = 300;

/// What all clients of a history share.
pub(crate) struct Load<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) payloads: &'a Payloads,
    pub(crate) board: &'a Board,
    pub(super) plan: Plan,
    backlog: AtomicU64,
    is_over: AtomicBool,
}

/// A client that runs.
pub(crate) type Running<'scope> = ScopedJoinHandle<'scope, Fallible<()>>;

impl<'a> Load<'a> {
    pub(crate) const fn new(
        ledger: &'a Ledger,
        payloads: &'a Payloads,
        board: &'a Board,
        plan: Plan,
    ) -> Self {
        let (backlog, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { ledger, payloads, board, plan, backlog, is_over }
    }

    /// Starts the clients.
    pub(crate) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        dice: &mut Dice,
    ) -> Vec<Running<'scope>> {
        let start = |_| {
            let mut dice = dice.fork();
            scope.spawn(move || self.visit(&mut dice))
        };
        (0..self.plan.clients).map(start).collect()
    }

    /// Makes the clients finish their leases and end.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Whether the clients have to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Makes requests until the load is over.
    fn visit(&self, dice: &mut Dice) -> Fallible<()> {
        let mut held = Vec::new();
        while !self.is_over() {
            let door = self.board.door(dice.index(NODES));
            let Some(mut client) = door.and_then(|door| Client::connect(door, self.ledger)) else {
                let_pass(AGAIN);
                continue;
            };
            while !self.is_over() && !dice.chance(1) {
                let (queue, requests) = self.choose(&mut held, dice);
                if !self.ask(&mut client, (queue, &requests), &mut held, dice)? {
                    break;
                }
                let_pass(Duration::from_micros(dice.below(PAUSE_US)));
            }
            if self.is_over() {
                let acks: Vec<Request> =
                    held.iter().map(|(it, receipt)| ack(it, receipt)).collect();
                self.asked(&mut client, &acks)?;
            }
            client.close()?;
        }
        Ok(())
    }

    /// Makes requests and uses what comes. Returns whether the connection lasts.
    fn ask(
        &self,
        client: &mut Client<'_>,
        (queue, requests): (Queue, &[Request]),
        held: &mut Vec<(&'static str, String)>,
        dice: &mut Dice,
    ) -> Fallible<bool> {
        let (outcomes, lasts) = self.asked(client, requests)?;
        let mut next = Vec::new();
        for outcome in outcomes {
            let Outcome::Tasks(tasks) = outcome else { continue };
            for receipt in tasks.into_iter().filter_map(|task| task.receipt) {
                match dice.below(10) {
                    0..5 if lasts => next.push(ack(queue.name, &receipt)),
                    5 if lasts && dice.chance(50) => next.push(fail(queue.name, &receipt, None)),
                    5 if lasts => next.push(released(queue, &receipt, dice)),
                    // It runs out.
                    6 => {}
                    _ if held.len() < HELD_MAX => held.push((queue.name, receipt)),
                    _ => next.push(ack(queue.name, &receipt)),
                }
            }
        }
        if !lasts || next.is_empty() {
            return Ok(lasts);
        }
        Ok(self.asked(client, &next)?.1)
    }

    /// Makes requests. Returns the outcomes, and whether the connection lasts.
    fn asked(
        &self,
        client: &mut Client<'_>,
        requests: &[Request],
    ) -> Fallible<(Vec<Outcome>, bool)> {
        if requests.is_empty() {
            return Ok((Vec::new(), true));
        }
        let clock = Clock::starting();
        let was_mute = self.board.is_mute();
        let (outcomes, lasts) = match client.ask(requests)? {
            Heard::All(outcomes) => (outcomes, true),
            Heard::Cut(outcomes) => (outcomes, false),
        };
        if !lasts && clock.elapsed() >= GUARD {
            self.board.fail(format!("{:?} was never answered", requests[0].operation));
        }
        let is_mute = was_mute && self.board.is_mute();
        for (request, outcome) in requests.iter().zip(&outcomes) {
            let is_durable = !matches!(outcome, Outcome::Refused(_) | Outcome::Unknown)
                && !matches!(outcome, Outcome::Tasks(tasks) if tasks.is_empty());
            if is_mute && is_durable {
                let operation = &request.operation;
                self.board.fail(format!("{operation:?}: {outcome:?} while nothing is accepted"));
            }
            self.note(outcome);
        }
        Ok((outcomes, lasts))
    }

    fn note(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Put { .. } => {
                self.backlog.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Tasks(tasks) => {
                let count = u64::try_from(tasks.len()).unwrap_or(0);
                let less = |backlog: u64| Some(backlog.saturating_sub(count));
                // The closure never declines, so this cannot fail.
                let _ = self.backlog.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            Outcome::Refused(word) => self.board.refuse(word),
            _ => {}
        }
    }

    /// Chooses what to ask next: of one queue, except for leases that were kept.
    fn choose(
        &self,
        held: &mut Vec<(&'static str, String)>,
        dice: &mut Dice,
    ) -> (Queue, Vec<Request>) {
        let queue = dice.pick(self.plan.queues);
        let is_full = self.backlog.load(Ordering::Relaxed) > BACKLOG_MAX;
        let requests = match dice.below(100) {
            0 => vec![set_limits(dice.pick(self.plan.limits))],
            1..40 if !is_full => (0..=dice.below(3)).map(|_| self.some_put(queue, dice)).collect(),
            1..65 => vec![some_take(queue, 1 + dice.below(4), dice)],
            65..75 => vec![some_pop(queue, 1 + dice.below(3), dice)],
            75..80 => match held.first() {
                Some((queue, receipt)) => vec![touch(queue, receipt)],
                None => vec![some_take(queue, 1, dice)],
            },
            _ if held.is_empty() => vec![some_take(queue, 2, dice)],
            _ => {
                let (queue, receipt) = held.swap_remove(dice.index(held.len()));
                vec![ack(queue, &receipt)]
            }
        };
        (queue, requests)
    }

    pub(crate) fn some_put(&self, queue: Queue, dice: &mut Dice) -> Request {
        let priority = i64::try_from(dice.below(3)).unwrap_or(0);
        let delay_ms = if dice.chance(5) { 1 + dice.below(1_000) } else { 0 };
        put(
            queue.name,
            &self.payloads.next(),
            PutOptions {
                priority,
                delay_ms,
                key: dice.chance(70).then(|| dice.pick(&KEYS)),
                share: dice.chance(30).then(|| dice.pick(&SHARES)),
                ..PutOptions::default()
            },
        )
    }

    /// Empties all queues, and records in the history that they are empty.
    pub(crate) fn drain(&self) -> Fallible<()> {
        for (place, queue) in self.plan.queues.iter().copied().enumerate() {
            let door = self.board.door(place % NODES).ok_or("the node does not run")?;
            let mut client = Client::connect(door, self.ledger).ok_or("no node listens")?;
            let mut empty = 0;
            while present(&mut client, queue)? {
                let (outcomes, lasts) = self.asked(&mut client, &[quick_take(queue, 100)])?;
                let Some(Outcome::Tasks(tasks)) = outcomes.first().filter(|_| lasts) else {
                    let name = queue.name;
                    return Err(format!("the drain of {name} was answered {outcomes:?}").into());
                };
                let receipts = tasks.iter().filter_map(|task| task.receipt.as_deref());
                let acks: Vec<Request> = receipts.map(|it| ack(queue.name, it)).collect();
                self.asked(&mut client, &acks)?;
                if acks.is_empty() {
                    empty += 1;
                    let_pass(Duration::from_millis(100));
                }
                if empty > EMPTY_MAX {
                    let name = queue.name;
                    return Err(format!("queue {name} keeps tasks and hands out none").into());
                }
            }
            let queue = queue.name.to_owned();
            self.ledger.event(Event::Drained { queue, buried_stay: false })?;
            client.close()?;
        }
        Ok(())
    }
}

/// Whether a queue has tasks.
fn present(client: &mut Client<'_>, queue: Queue) -> Fallible<bool> {
    match client.look(&Words::new(&format!("STATS {}", queue.name)))? {
        Value::Error(text) if text.starts_with("NOQUEUE") => Ok(false),
        // A shard may be on its way to another node.
        Value::Error(text) if text.starts_with("TRYAGAIN") => Ok(true),
        stats => match stats.field("present").and_then(Value::integer) {
            Some(count) => Ok(count > 0),
            None => Err(format!("STATS answered {stats:?}").into()),
        },
    }
}

fn some_take(queue: Queue, count: u64, dice: &mut Dice) -> Request {
    let wait_ms = if queue.waits && dice.chance(30) { 1 + dice.below(1_500) } else { 0 };
    take(queue.name, count, Some(dice.pick(&TTRS_MS)), wait_ms).ordered_otherwise(queue.waits)
}

/// A take that never waits.
pub(crate) fn quick_take(queue: Queue, count: u64) -> Request {
    take(queue.name, count, Some(10_000), 0).ordered_otherwise(queue.waits)
}

fn some_pop(queue: Queue, count: u64, dice: &mut Dice) -> Request {
    let mut request = pop(queue.name, count);
    if queue.waits && dice.chance(30) {
        request.words = request.words.option("WAIT", Some(1 + dice.below(1_000)));
    }
    request.ordered_otherwise(queue.waits)
}

fn released(queue: Queue, receipt: &str, dice: &mut Dice) -> Request {
    let options = ReleaseOptions {
        delay_ms: if dice.chance(30) { 1 + dice.below(500) } else { 0 },
        priority: dice.chance(20).then_some(2),
        tail: dice.chance(20),
    };
    release(queue.name, receipt, options)
}
