//! A fixed workload: one client that makes the same requests each time, a few of them together.
//!
//! It is for scenarios that go through every system call one by one. So it is short, and what it
//! does depends only on its seed and the answers.

use std::net::SocketAddr;

use pinpriq_testing::history::{Delivery, Operation, Outcome};

use crate::client::{Client, Heard};
use crate::clock::wall_us;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{
    Policy, PutOptions, ReleaseOptions, Request, ack, bury, dig, fail, move_tasks, put, release,
    set_policy, take, touch, transaction,
};

/// The queues of the workload, which are in one shard. Dead letters go to a later one.
pub(crate) const QUEUES: [&str; 3] = [QUEUE, ASIDE, LETTERS];
/// Where tasks are put.
const QUEUE: &str = "fixed";
/// Where some are moved.
const ASIDE: &str = "{fixed}-on";
/// Where those are that have failed twice.
const LETTERS: &str = "{fixed}-dead";
const POLICY: Policy =
    Policy { queue: QUEUE, attempts: Some(2), backoff_ms: None, dead_letter: Some(LETTERS) };
/// The number of requests sent together.
const TOGETHER: usize = 4;

/// The number of operations and the size of payloads.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) operations: usize,
    pub(crate) payload_bytes: usize,
}

/// The result of the workload.
#[derive(Default)]
pub(crate) struct Played {
    /// The number of changes that were acknowledged.
    pub(crate) accepted: usize,
    /// When the last acknowledged change was requested, in microseconds of the wall clock.
    pub(crate) last_accepted_us: Option<u64>,
    /// The number of requests that were refused because the disk had failed.
    pub(crate) disk_refusals: usize,
    /// Whether the connection lasted to the end.
    pub(crate) is_whole: bool,
}

/// Runs the workload until its end or that of the connection.
pub(crate) fn play(
    address: SocketAddr,
    ledger: &Ledger,
    payloads: &Payloads,
    size: Size,
) -> Fallible<Played> {
    let mut played = Played::default();
    let mut dice = Dice::new(7);
    let Some(mut client) = Client::connect(address, ledger) else { return Ok(played) };
    let mut sent = 0;
    let mut group = vec![set_policy(POLICY)];
    let mut taken: Vec<Taken> = Vec::new();
    while sent < size.operations {
        while group.len() < TOGETHER {
            let payload = || payloads.sized(size.payload_bytes);
            let last = match taken.pop() {
                Some(taken) => use_up(&taken, payload, &mut dice, &mut group),
                None => begin(payload, &mut dice),
            };
            group.push(last);
        }
        sent += group.len();
        let asked_us = wall_us();
        let (outcomes, is_cut) = match client.ask(&group)? {
            Heard::All(outcomes) => (outcomes, false),
            Heard::Cut(outcomes) => (outcomes, true),
        };
        for (request, outcome) in group.drain(..).zip(outcomes) {
            match (request.operation, outcome) {
                (Operation::Take { queue, .. }, Outcome::Tasks(tasks)) => {
                    let tasks = tasks.into_iter();
                    taken.extend(tasks.filter_map(|task| Taken::of(&queue, task)));
                }
                (_, Outcome::Refused(word)) => {
                    played.disk_refusals += usize::from(word == "STORE");
                }
                // Nothing was there to be moved.
                (_, Outcome::Unknown | Outcome::Tasks(_) | Outcome::Count(0)) => {}
                _ => {
                    played.accepted += 1;
                    played.last_accepted_us = Some(asked_us);
                }
            }
        }
        if is_cut {
            return Ok(played);
        }
    }
    played.is_whole = true;
    client.close()?;
    Ok(played)
}

/// A task that was taken, and its queue.
struct Taken {
    queue: String,
    id: String,
    receipt: String,
}

impl Taken {
    fn of(queue: &str, task: Delivery) -> Option<Self> {
        Some(Self { queue: queue.to_owned(), id: task.id, receipt: task.receipt? })
    }
}

/// Chooses what to do as long as no task is taken.
fn begin(payload: impl Fn() -> Vec<u8>, dice: &mut Dice) -> Request {
    match dice.below(100) {
        0..60 => some_put(&payload(), dice),
        60..65 => transaction(vec![some_put(&payload(), dice), some_put(&payload(), dice)]),
        65..70 => move_tasks(QUEUE, ASIDE, 2),
        _ => {
            let queue = [QUEUE, QUEUE, QUEUE, ASIDE, LETTERS][dice.index(5)];
            take(queue, 2, [None, Some(400)][dice.index(2)], 0)
        }
    }
}

fn some_put(payload: &[u8], dice: &mut Dice) -> Request {
    let priority = i64::try_from(dice.below(3)).unwrap_or(0);
    put(QUEUE, payload, PutOptions { priority, ..PutOptions::default() })
}

/// Chooses what to do with a task that was taken. Returns the last step, and adds those before it
/// to `group`.
fn use_up(
    taken: &Taken,
    payload: impl Fn() -> Vec<u8>,
    dice: &mut Dice,
    group: &mut Vec<Request>,
) -> Request {
    let Taken { queue, id, receipt } = taken;
    match dice.below(12) {
        0..6 => ack(queue, receipt),
        6 => {
            let options =
                ReleaseOptions { priority: dice.chance(50).then_some(1), ..Default::default() };
            release(queue, receipt, options)
        }
        7 => {
            group.push(bury(queue, receipt));
            dig(queue, id)
        }
        8 => bury(queue, receipt),
        9 => fail(queue, receipt, None),
        10 => transaction(vec![ack(queue, receipt), some_put(&payload(), dice)]),
        _ => {
            group.push(touch(queue, receipt));
            ack(queue, receipt)
        }
    }
}
