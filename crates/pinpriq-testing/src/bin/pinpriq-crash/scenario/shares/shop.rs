//! Workers and producers of five queues that use one named limit. Workers are killed: to kill one
//! is to close its connection, and the server sees no more of it. What it had taken for a time
//! stays taken, and another worker tries to finish it.
//!
//! Who is killed besides, and how the history is judged, is for `named` and `failover`.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::Outcome;
use pinpriq_testing::history::request::{Limits, PutOptions, ack, fail, put, take, touch};
use pinpriq_testing::shares::Figure;

use super::at_least;
use crate::client::Client;
use crate::clock::let_pass;
use crate::cluster::board::locked;
use crate::cluster::load::Running;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;

pub(super) const LIMIT: &str = "{gpu}";
pub(super) const QUEUES: [&str; 5] = ["{gpu}-a", "{gpu}-b", "{gpu}-c", "{gpu}-d", "{gpu}-e"];
const WORKERS: usize = 64;
const PRODUCERS: usize = 2;
/// How long a worker waits for a task, in milliseconds.
const WAIT_MS: u64 = 300;
/// The longest time for which a job lasts, in microseconds.
const JOB_US: u64 = 40_000;
/// Above this number of tasks nothing is put.
const BACKLOG_MAX: u64 = 400;
/// The most receipts of workers that were killed.
const LEFT_MAX: usize = 100;
const AGAIN: Duration = Duration::from_millis(5);

/// What lets each of the queues use the limit.
pub(super) const USES: [Limits; 5] = {
    let mut uses = [Limits { uses: Some(LIMIT), ..Limits::NONE }; 5];
    let mut place = 0;
    while place < QUEUES.len() {
        uses[place].queue = QUEUES[place];
        place += 1;
    }
    uses
};

/// Returns where a server listens, if one does.
pub(super) type Door<'a> = &'a (dyn Fn(&mut Dice) -> Option<SocketAddr> + Sync);

/// What workers and producers share.
pub(super) struct Shop<'a> {
    ledger: &'a Ledger,
    payloads: &'a Payloads,
    /// Where a server listens, if one does.
    door: Door<'a>,
    conditions: Conditions,
    /// What workers had taken that were killed.
    left: Mutex<Vec<(&'static str, String)>>,
    killed: AtomicU64,
    backlog: AtomicU64,
    is_over: AtomicBool,
}

/// What differs between a server and a cluster.
#[derive(Clone, Copy)]
pub(super) struct Conditions {
    /// How long leases last, in milliseconds. Without a time it is as long as the connection.
    pub(super) ttrs_ms: &'static [Option<u64>],
    /// Whether the order of what they wait for is judged.
    pub(super) is_ordered: bool,
}

impl<'a> Shop<'a> {
    pub(super) const fn new(
        ledger: &'a Ledger,
        payloads: &'a Payloads,
        door: Door<'a>,
        conditions: Conditions,
    ) -> Self {
        Self {
            ledger,
            payloads,
            door,
            conditions,
            left: Mutex::new(Vec::new()),
            killed: AtomicU64::new(0),
            backlog: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Starts workers and producers.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        dice: &mut Dice,
    ) -> Vec<Running<'scope>> {
        let start = |number| {
            let mut dice = dice.fork();
            scope.spawn(move || self.visit(number < WORKERS, &mut dice))
        };
        (0..WORKERS + PRODUCERS).map(start).collect()
    }

    /// Makes them end.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// How many workers were killed.
    pub(super) fn killed(&self) -> Figure {
        at_least("kills of workers that had a task", self.killed.load(Ordering::Relaxed), 1)
    }

    /// Works or puts, over one connection after the other.
    fn visit(&self, works: bool, dice: &mut Dice) -> Fallible<()> {
        while !self.is_over.load(Ordering::SeqCst) {
            let door = (self.door)(dice);
            match door.and_then(|door| Client::connect(door, self.ledger)) {
                Some(client) if works => self.work(client, dice)?,
                Some(client) => self.put(client, dice)?,
                None => let_pass(AGAIN),
            }
        }
        Ok(())
    }

    fn put(&self, mut client: Client<'_>, dice: &mut Dice) -> Fallible<()> {
        while !self.is_over.load(Ordering::SeqCst) {
            if self.backlog.load(Ordering::Relaxed) > BACKLOG_MAX {
                let_pass(AGAIN);
                continue;
            }
            let priority = i64::try_from(dice.below(3)).unwrap_or_default();
            let options = PutOptions { priority, ..PutOptions::default() };
            let request = put(dice.pick(&QUEUES), &self.payloads.next(), options);
            match client.ask_one(request)? {
                Some(Outcome::Put { .. }) => _ = self.backlog.fetch_add(1, Ordering::Relaxed),
                Some(_) => let_pass(AGAIN),
                None => return Ok(()),
            }
        }
        client.close()
    }

    /// Takes tasks and finishes them, until the connection ends or the worker is killed.
    fn work(&self, mut client: Client<'_>, dice: &mut Dice) -> Fallible<()> {
        while !self.is_over.load(Ordering::SeqCst) {
            let Conditions { ttrs_ms, is_ordered } = self.conditions;
            let (queue, ttr_ms) = (dice.pick(&QUEUES), dice.pick(ttrs_ms));
            let request = match self.left(dice) {
                Some((queue, receipt)) => ack(queue, &receipt),
                None => take(queue, 1, ttr_ms, WAIT_MS).ordered_otherwise(!is_ordered),
            };
            let Some(outcome) = client.ask_one(request)? else { return Ok(()) };
            self.note(&outcome);
            let tasks = match outcome {
                Outcome::Tasks(tasks) => tasks,
                // The queue has no owner for the moment.
                Outcome::Refused(_) => {
                    let_pass(AGAIN);
                    continue;
                }
                _ => continue,
            };
            let Some(receipt) = tasks.into_iter().find_map(|it| it.receipt) else { continue };
            // A touch makes it last beyond a kill of the server.
            if ttr_ms.is_some()
                && dice.chance(60)
                && client.ask_one(touch(queue, &receipt))?.is_none()
            {
                return Ok(());
            }
            let_pass(Duration::from_micros(dice.below(JOB_US)));
            let last = match dice.below(100) {
                0..6 => {
                    self.leave(queue, receipt);
                    self.killed.fetch_add(1, Ordering::Relaxed);
                    return client.close();
                }
                // It runs out, if someone else does not finish it before.
                6..9 if ttr_ms.is_some() => {
                    self.leave(queue, receipt);
                    continue;
                }
                9..14 => fail(queue, &receipt, None),
                _ => ack(queue, &receipt),
            };
            let Some(outcome) = client.ask_one(last)? else { return Ok(()) };
            self.note(&outcome);
        }
        client.close()
    }

    /// Notes that a task is finished.
    fn note(&self, outcome: &Outcome) {
        if *outcome == Outcome::Done {
            let less = |backlog: u64| Some(backlog.saturating_sub(1));
            // The closure never declines, so this cannot fail.
            let _ = self.backlog.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    fn leave(&self, queue: &'static str, receipt: String) {
        let mut left = locked(&self.left);
        if left.len() < LEFT_MAX {
            left.push((queue, receipt));
        }
    }

    /// Now and then, what another worker had taken.
    fn left(&self, dice: &mut Dice) -> Option<(&'static str, String)> {
        let mut left = locked(&self.left);
        if left.is_empty() || !dice.chance(5) {
            return None;
        }
        let place = dice.index(left.len());
        Some(left.swap_remove(place))
    }
}
