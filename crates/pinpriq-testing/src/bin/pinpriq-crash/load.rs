//! The load: clients that put, take and do everything else to tasks until the server is gone.
//!
//! What each client does follows from the seed; how they interleave does not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pinpriq_testing::history::{Delivery, Outcome};

use crate::client::{Client, Heard};
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{
    Limits, Policy, PutOptions, ReleaseOptions, Request, ack, bury, dig, fail, kill, move_tasks,
    plow, pop, put, redrive, release, set_limits, set_policy, take, touch, transaction,
};

/// Queues that belong together: their names have a common part, so they are in one shard.
#[derive(Clone, Copy)]
struct Family {
    /// Where most tasks are put.
    work: &'static str,
    /// Tasks are moved between this one and `work`.
    aside: &'static str,
    /// Gets the dead letters of `work`.
    letters: &'static str,
    /// Whether tasks are popped too. Where pops are not answered, a lost task is no loss for
    /// certain.
    is_popped: bool,
}

/// The families that the load uses. With up to [`SHARDS_MAX`] shards, each shard has at least one
/// of them; otherwise the run fails.
const FAMILIES: [Family; 4] = [
    Family { work: "left", aside: "{left}-on", letters: "{left}-dead", is_popped: false },
    Family { work: "up", aside: "{up}-on", letters: "{up}-dead", is_popped: true },
    Family { work: "back", aside: "back", letters: "back", is_popped: true },
    Family { work: "front", aside: "front", letters: "front", is_popped: true },
];
/// The queues of all families. Dead letters go to a later one, so that a drain in this order finds
/// them.
pub(crate) const QUEUES: [&str; 8] =
    ["left", "{left}-on", "{left}-dead", "up", "{up}-on", "{up}-dead", "back", "front"];
/// What becomes of tasks that fail there. In the other queues they are ready again.
const POLICIES: [Policy; 4] = [
    Policy {
        queue: "left",
        attempts: Some(3),
        backoff_ms: Some((40, 100)),
        dead_letter: Some("{left}-dead"),
    },
    Policy { queue: "{left}-on", attempts: None, backoff_ms: Some((200, 400)), dead_letter: None },
    Policy { queue: "up", attempts: Some(2), backoff_ms: None, dead_letter: Some("{up}-dead") },
    Policy { queue: "{up}-dead", attempts: Some(2), backoff_ms: None, dead_letter: None },
];
/// What holds tasks back there. In the other queues nothing does.
const LIMITS: [Limits; 2] = [
    Limits {
        queue: "front",
        key_limit: Some(1),
        share_limit: Some(3),
        key_hold: true,
        fair: true,
        ..Limits::NONE
    },
    Limits { queue: "back", limit: Some(8), key_limit: Some(2), ..Limits::NONE },
];
/// The keys and shares of tasks in all queues.
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const SHARES: [&str; 3] = ["x", "y", "z"];
/// The most shards with which each shard has a family.
pub(crate) const SHARDS_MAX: usize = 4;
/// The base-2 logarithm of the number of task numbers that a shard has to itself.
const BLOCK_BITS: u32 = 46;
/// The number of clients that put, and of those that take.
const PRODUCERS: u64 = 3;
const CONSUMERS: u64 = 3;
/// The most requests that are sent together.
const TOGETHER_MAX: u64 = 6;
/// Above this number of tasks, producers take part in taking.
const BACKLOG_MAX: u64 = 500;
/// The most receipts that are kept beyond the end of their connections.
const LEFT_OVER_MAX: usize = 200;

/// The state that the clients of all rounds share.
pub(crate) struct Load<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) payloads: &'a Payloads,
    /// Receipts with their queues that are not used yet.
    left_over: Mutex<Vec<(&'static str, String)>>,
    /// The approximate number of tasks.
    backlog: AtomicU64,
    /// A bit for each shard that has accepted a task.
    reached: AtomicU64,
}

/// Lets this many clients work, each on a thread of its own, until the server is gone, which
/// `crash` brings about.
pub(crate) fn until_crash<T>(
    clients: u64,
    dice: &mut Dice,
    work: impl Fn(u64, &mut Dice) -> Fallible<()> + Sync,
    crash: impl FnOnce() -> Fallible<T>,
) -> Fallible<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..clients {
            let mut dice = dice.fork();
            workers.push(scope.spawn(move || work(number, &mut dice)));
        }
        let crashed = crash();
        for worker in workers {
            worker.join().map_err(|_| "a client panicked")??;
        }
        crashed
    })
}

impl<'a> Load<'a> {
    pub(crate) const fn new(ledger: &'a Ledger, payloads: &'a Payloads) -> Self {
        Self {
            ledger,
            payloads,
            left_over: Mutex::new(Vec::new()),
            backlog: AtomicU64::new(0),
            reached: AtomicU64::new(0),
        }
    }

    /// The number of shards that have accepted tasks.
    pub(crate) fn shards_reached(&self) -> u32 {
        self.reached.load(Ordering::Relaxed).count_ones()
    }

    /// Sets the policies and the limits of the queues.
    pub(crate) fn prepare(&self, address: SocketAddr) -> Fallible<()> {
        let mut client = Client::connect(address, self.ledger).ok_or("no server listens")?;
        let mut policies: Vec<Request> = POLICIES.into_iter().map(set_policy).collect();
        policies.extend(LIMITS.into_iter().map(set_limits));
        match client.ask(&policies)? {
            Heard::All(outcomes) if outcomes.iter().all(|it| *it == Outcome::Done) => {
                client.close()
            }
            Heard::All(outcomes) | Heard::Cut(outcomes) => {
                Err(format!("the policies were answered {outcomes:?}").into())
            }
        }
    }

    /// Runs the load until the server is gone, which `crash` brings about.
    pub(crate) fn run<T>(
        &self,
        address: SocketAddr,
        dice: &mut Dice,
        crash: impl FnOnce() -> Fallible<T>,
    ) -> Fallible<T> {
        let work = |number: u64, dice: &mut Dice| {
            if number < PRODUCERS {
                self.produce(address, dice)
            } else {
                self.consume(address, dice)
            }
        };
        until_crash(PRODUCERS + CONSUMERS, dice, work, crash)
    }

    fn produce(&self, address: SocketAddr, dice: &mut Dice) -> Fallible<()> {
        let Some(mut client) = Client::connect(address, self.ledger) else { return Ok(()) };
        loop {
            if self.backlog.load(Ordering::Relaxed) > BACKLOG_MAX {
                if !self.relieve(&mut client, dice)? {
                    return Ok(());
                }
                continue;
            }
            let count = 1 + dice.below(TOGETHER_MAX);
            let requests: Vec<Request> = if dice.chance(20) {
                vec![self.some_puts(dice)]
            } else {
                (0..count).map(|_| self.some_put(some_family(dice), dice)).collect()
            };
            match client.ask(&requests)? {
                Heard::All(outcomes) => {
                    self.note_shards(&outcomes);
                    self.backlog.fetch_add(count, Ordering::Relaxed)
                }
                Heard::Cut(_) => return Ok(()),
            };
        }
    }

    /// Finishes some tasks. Returns whether the connection lasts.
    fn relieve(&self, client: &mut Client<'_>, dice: &mut Dice) -> Fallible<bool> {
        let family = some_family(dice);
        let queue = some_queue(family, dice);
        let request = if family.is_popped { pop(queue, 20) } else { take(queue, 20, None, 0) };
        let Some(outcome) = client.ask_one(request)? else { return Ok(false) };
        self.came(&outcome);
        let Outcome::Tasks(tasks) = outcome else { return Ok(true) };
        let receipts = tasks.iter().filter_map(|task| task.receipt.as_deref());
        let acks: Vec<Request> = receipts.map(|receipt| ack(queue, receipt)).collect();
        Ok(acks.is_empty() || matches!(client.ask(&acks)?, Heard::All(_)))
    }

    /// Notes which shards have given these tasks their ids, which are task numbers.
    fn note_shards(&self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            if let Outcome::Transaction(parts) = outcome {
                self.note_shards(parts);
            }
            if let Outcome::Put { id } = outcome {
                self.reached.fetch_or(bit_of_shard(id), Ordering::Relaxed);
            }
        }
    }

    /// Puts that happen together. Every tenth time they must not.
    fn some_puts(&self, dice: &mut Dice) -> Request {
        let family = some_family(dice);
        let count = 2 + dice.below(2);
        let mut requests: Vec<Request> = (0..count).map(|_| self.some_put(family, dice)).collect();
        if dice.chance(10) {
            requests.push(ack(family.work, "1-1-1"));
        }
        transaction(requests)
    }

    fn some_put(&self, family: Family, dice: &mut Dice) -> Request {
        let priority = i64::try_from(dice.below(7)).unwrap_or(0) - 3;
        let mut options = PutOptions { priority, ..PutOptions::default() };
        if dice.chance(5) {
            options.delay_ms = 1 + dice.below(200);
        }
        if dice.chance(3) {
            options.ttl_ms = Some(options.delay_ms + 1 + dice.below(3_000));
        }
        options.key = dice.chance(70).then(|| dice.pick(&KEYS));
        options.share = dice.chance(30).then(|| dice.pick(&SHARES));
        let queue = if dice.chance(10) { family.aside } else { family.work };
        put(queue, &self.payloads.next(), options)
    }

    fn came(&self, outcome: &Outcome) {
        if let Outcome::Tasks(tasks) = outcome {
            let count = u64::try_from(tasks.len()).unwrap_or(0);
            let less = |backlog: u64| Some(backlog.saturating_sub(count));
            // The closure never declines, so this cannot fail.
            let _ = self.backlog.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    fn consume(&self, address: SocketAddr, dice: &mut Dice) -> Fallible<()> {
        let Some(mut client) = Client::connect(address, self.ledger) else { return Ok(()) };
        loop {
            let family = some_family(dice);
            let queue = some_queue(family, dice);
            if dice.chance(1) {
                client.close()?;
                let Some(next) = Client::connect(address, self.ledger) else { return Ok(()) };
                client = next;
            }
            let heard = match dice.below(20) {
                0 if family.is_popped => client.ask_one(pop(queue, 1 + dice.below(3)))?,
                1 => client.ask_one(plow(queue))?,
                2 => match self.left_over(dice) {
                    Some((queue, receipt)) => client.ask_one(ack(queue, &receipt))?,
                    None => continue,
                },
                3 if family.aside != family.work => client.ask_one(some_move(family, dice))?,
                _ => {
                    let ttr_ms = [Some(100), Some(400), Some(1_000), None][dice.index(4)];
                    let wait_ms = dice.below(3) * 5;
                    client.ask_one(take(queue, 1 + dice.below(4), ttr_ms, wait_ms))?
                }
            };
            let Some(outcome) = heard else { return Ok(()) };
            self.came(&outcome);
            if let Outcome::Tasks(tasks) = outcome {
                let requests = self.use_all(family, queue, &tasks, dice);
                if !requests.is_empty() && matches!(client.ask(&requests)?, Heard::Cut(_)) {
                    return Ok(());
                }
            }
        }
    }

    /// Chooses what to do with tasks that were taken. A share of them is finished together with
    /// others, and followed by new ones.
    fn use_all(
        &self,
        family: Family,
        queue: &'static str,
        tasks: &[Delivery],
        dice: &mut Dice,
    ) -> Vec<Request> {
        if !dice.chance(20) {
            return tasks.iter().flat_map(|task| self.use_up(queue, task, dice)).collect();
        }
        let receipts = tasks.iter().filter_map(|task| task.receipt.as_deref());
        let mut parts: Vec<Request> = receipts
            .map(|receipt| match dice.below(10) {
                0..6 => ack(queue, receipt),
                6..8 => fail(queue, receipt, None),
                8 => release(queue, receipt, ReleaseOptions::default()),
                _ => bury(queue, receipt),
            })
            .collect();
        if !parts.is_empty() {
            parts.push(self.some_put(family, dice));
        }
        if parts.is_empty() { parts } else { vec![transaction(parts)] }
    }

    /// Chooses what to do with a task that was taken.
    fn use_up(&self, queue: &'static str, task: &Delivery, dice: &mut Dice) -> Vec<Request> {
        let Some(receipt) = task.receipt.as_deref() else { return Vec::new() };
        match dice.below(100) {
            0..40 => vec![ack(queue, receipt)],
            40..50 => {
                let delay_ms = [None, None, Some(0), Some(1 + dice.below(100))][dice.index(4)];
                vec![fail(queue, receipt, delay_ms), touch(queue, receipt)]
            }
            50..55 => vec![ack(queue, receipt), ack(queue, receipt)],
            55..65 => vec![touch(queue, receipt), ack(queue, receipt)],
            65..80 => {
                let options = ReleaseOptions {
                    delay_ms: if dice.chance(30) { 1 + dice.below(100) } else { 0 },
                    priority: dice.chance(20).then_some(5),
                    tail: dice.chance(20),
                };
                vec![release(queue, receipt, options), touch(queue, receipt)]
            }
            80..85 => vec![bury(queue, receipt), dig(queue, &task.id)],
            85..88 => vec![bury(queue, receipt)],
            88..91 => vec![kill(queue, &task.id), ack(queue, receipt)],
            91..96 => {
                self.leave_over(queue, receipt);
                vec![touch(queue, receipt)]
            }
            _ => {
                self.leave_over(queue, receipt);
                Vec::new()
            }
        }
    }

    fn leave_over(&self, queue: &'static str, receipt: &str) {
        let mut left_over = self.left_over.lock().unwrap_or_else(PoisonError::into_inner);
        if left_over.len() < LEFT_OVER_MAX {
            left_over.push((queue, receipt.to_owned()));
        }
    }

    fn left_over(&self, dice: &mut Dice) -> Option<(&'static str, String)> {
        let mut left_over = self.left_over.lock().unwrap_or_else(PoisonError::into_inner);
        let place = dice.index(left_over.len());
        (!left_over.is_empty()).then(|| left_over.swap_remove(place))
    }
}

/// A bit for the shard that has given this id, which is the number of a task.
pub(crate) fn bit_of_shard(id: &str) -> u64 {
    let shard = id.parse::<u64>().map(|number| number.saturating_sub(1) >> BLOCK_BITS);
    shard.map_or(0, |shard| 1 << (shard % 64))
}

fn some_family(dice: &mut Dice) -> Family {
    FAMILIES[dice.index(FAMILIES.len())]
}

fn some_queue(family: Family, dice: &mut Dice) -> &'static str {
    [family.work, family.work, family.aside, family.letters][dice.index(4)]
}

/// Moves tasks between two queues of a family, or dead letters back.
fn some_move(family: Family, dice: &mut Dice) -> Request {
    let Family { work, aside, letters, .. } = family;
    let count = 1 + dice.below(5);
    match dice.below(4) {
        0 | 1 => move_tasks(work, aside, count),
        2 => move_tasks(aside, work, count),
        _ => redrive(letters, work, count),
    }
}
