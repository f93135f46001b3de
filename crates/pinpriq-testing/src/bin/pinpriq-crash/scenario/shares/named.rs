//! A named limit that five queues use, 64 workers, and kills of workers and of the server: never
//! more leases than the limit allows, by what clients saw.
//!
//! To kill a worker is to close its connection: the server sees no more of it. What it had taken
//! for a time stays taken, and another worker tries to finish it. Kills of owners are in
//! `failover`.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{
    Limits, PutOptions, Request, ack, fail, put, set_limits, set_named_limit, take, touch,
};
use pinpriq_testing::history::{Event, Outcome};
use pinpriq_testing::shares::Figure;

use super::{at_least, of_history};
use crate::args::Wanted;
use crate::client::{Client, Heard};
use crate::clock::{Clock, let_pass};
use crate::cluster::board::locked;
use crate::drain::drain;
use crate::fault::Fallible;
use crate::files;
use crate::ledger::Ledger;
use crate::payload::Payloads;

pub(super) const WHAT: &str =
    "a named MAX 8 over 5 queues and 64 workers; workers and the server are killed";

const LIMIT: &str = "{gpu}";
const MAX: u64 = 8;
const QUEUES: [&str; 5] = ["{gpu}-a", "{gpu}-b", "{gpu}-c", "{gpu}-d", "{gpu}-e"];
const WORKERS: usize = 64;
const PRODUCERS: usize = 2;
/// How long leases last, in milliseconds. Without a time it is as long as the connection.
const TTRS_MS: [Option<u64>; 4] = [None, Some(150), Some(500), Some(3_000)];
/// How long a worker waits for a task, in milliseconds.
const WAIT_MS: u64 = 300;
/// The longest time for which a job lasts, in microseconds.
const JOB_US: u64 = 40_000;
/// Above this number of tasks nothing is put.
const BACKLOG_MAX: u64 = 400;
/// The most receipts of workers that were killed.
const LEFT_MAX: usize = 100;
/// How long the server runs before it is killed, in milliseconds, and how much longer at most.
const LIFE_MS: u64 = 500;
const LONGER_MS: u64 = 2_000;
const AGAIN: Duration = Duration::from_millis(5);

/// What workers and producers share.
struct Shop<'a> {
    ledger: &'a Ledger,
    payloads: Payloads,
    door: Mutex<Option<SocketAddr>>,
    /// What workers had taken that were killed.
    left: Mutex<Vec<(&'static str, String)>>,
    killed: AtomicU64,
    backlog: AtomicU64,
    is_over: AtomicBool,
}

/// Plays it. Returns the figures.
pub(super) fn play(wanted: &Wanted, lasts: Duration) -> Fallible<Vec<Figure>> {
    let scratch = files::scratch(&wanted.scratch)?;
    let data = scratch.path().join("data");
    let ledger = Ledger::new(scratch.path(), "history.jsonl", wanted.tolerance)?;
    let shop = Shop {
        ledger: &ledger,
        payloads: Payloads::default(),
        door: Mutex::new(None),
        left: Mutex::new(Vec::new()),
        killed: AtomicU64::new(0),
        backlog: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let mut dice = Dice::new(wanted.seed);
    let mut server = wanted.program.start(&data)?;
    ledger.event(Event::ServerStarted)?;
    prepare(server.address, &ledger)?;
    let mut kills = 0;
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for number in 0..WORKERS + PRODUCERS {
            let mut dice = dice.fork();
            let shop = &shop;
            clients.push(scope.spawn(move || shop.visit(number < WORKERS, &mut dice)));
        }
        let mut kill_all = || {
            let clock = Clock::starting();
            loop {
                *locked(&shop.door) = Some(server.address);
                let_pass(Duration::from_millis(LIFE_MS + dice.below(LONGER_MS)));
                if clock.elapsed() >= lasts {
                    return Ok(());
                }
                *locked(&shop.door) = None;
                ledger.event(Event::ServerKilled)?;
                server.kill()?;
                kills += 1;
                server = wanted.program.start(&data)?;
                ledger.event(Event::ServerStarted)?;
            }
        };
        let killed: Fallible<()> = kill_all();
        shop.is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        killed
    })?;
    drain(&server, &ledger, &QUEUES)?;
    server.stop()?;
    let mut figures = of_history(wanted, &ledger, WHAT, MAX)?;
    let workers = shop.killed.load(Ordering::Relaxed);
    figures.push(at_least("kills of the server", kills, 1));
    figures.push(at_least("kills of workers that had a task", workers, 1));
    Ok(figures)
}

/// Makes the limit, and lets all queues use it.
fn prepare(address: SocketAddr, ledger: &Ledger) -> Fallible<()> {
    let mut client = Client::connect(address, ledger).ok_or("no server listens")?;
    let uses = |queue| set_limits(Limits { queue, uses: Some(LIMIT), ..Limits::NONE });
    let mut requests = vec![set_named_limit(LIMIT, Some(MAX))];
    requests.extend(QUEUES.map(uses));
    match client.ask(&requests)? {
        Heard::All(outcomes) if outcomes.iter().all(|it| *it == Outcome::Done) => client.close(),
        Heard::All(outcomes) | Heard::Cut(outcomes) => {
            Err(format!("the limits were answered {outcomes:?}").into())
        }
    }
}

impl Shop<'_> {
    /// Works or puts, over one connection after the other.
    fn visit(&self, works: bool, dice: &mut Dice) -> Fallible<()> {
        while !self.is_over.load(Ordering::SeqCst) {
            let door = *locked(&self.door);
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
                Some(Outcome::Put { .. }) => self.backlog.fetch_add(1, Ordering::Relaxed),
                Some(_) => continue,
                None => return Ok(()),
            };
        }
        client.close()
    }

    /// Takes tasks and finishes them, until the connection ends or the worker is killed.
    fn work(&self, mut client: Client<'_>, dice: &mut Dice) -> Fallible<()> {
        while !self.is_over.load(Ordering::SeqCst) {
            let (queue, ttr_ms) = (dice.pick(&QUEUES), dice.pick(&TTRS_MS));
            let request = match self.left(dice) {
                Some((queue, receipt)) => ack(queue, &receipt),
                None => take(queue, 1, ttr_ms, WAIT_MS),
            };
            let Some(outcome) = client.ask_one(request)? else { return Ok(()) };
            self.note(&outcome);
            let Outcome::Tasks(tasks) = outcome else { continue };
            let Some(receipt) = tasks.into_iter().find_map(|it| it.receipt) else { continue };
            // A touch makes it last beyond a kill of the server.
            if ttr_ms.is_some()
                && dice.chance(60)
                && client.ask_one(touch(queue, &receipt))?.is_none()
            {
                return Ok(());
            }
            let_pass(Duration::from_micros(dice.below(JOB_US)));
            let last: Request = match dice.below(100) {
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
