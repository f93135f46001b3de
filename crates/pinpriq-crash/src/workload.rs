//! A fixed workload: one client that makes the same requests each time, a few of them together.
//!
//! It is for scenarios that go through every system call one by one. So it is short, and what it
//! does depends only on its seed and the answers.

use std::net::SocketAddr;

use pinpriq_history::Outcome;

use crate::client::{Client, Heard};
use crate::clock::wall_us;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use crate::request::{
    PutOptions, ReleaseOptions, Request, ack, bury, dig, put, release, take, touch,
};
use pinpriq_dice::Dice;

/// The queue of the workload.
pub(crate) const QUEUE: &str = "fixed";
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
    let mut receipts: Vec<(String, String)> = Vec::new();
    while sent < size.operations {
        let mut group: Vec<Request> = Vec::new();
        while group.len() < TOGETHER {
            let last = match receipts.pop() {
                Some((id, receipt)) => use_up(&id, &receipt, &mut dice, &mut group),
                None if dice.chance(65) => {
                    let priority = i64::try_from(dice.below(3)).unwrap_or(0);
                    let options = PutOptions { priority, ..PutOptions::default() };
                    put(QUEUE, &payloads.sized(size.payload_bytes), options)
                }
                None => take(QUEUE, 2, [None, Some(400)][dice.index(2)], 0),
            };
            group.push(last);
        }
        sent += group.len();
        let asked_us = wall_us();
        let heard = client.ask(&group)?;
        let (outcomes, is_cut) = match heard {
            Heard::All(outcomes) => (outcomes, false),
            Heard::Cut(outcomes) => (outcomes, true),
        };
        for outcome in outcomes {
            match outcome {
                Outcome::Tasks(tasks) => receipts
                    .extend(tasks.into_iter().filter_map(|task| Some((task.id, task.receipt?)))),
                Outcome::Refused(word) => played.disk_refusals += usize::from(word == "STORE"),
                Outcome::Unknown => {}
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

/// Chooses what to do with a task that was taken. Returns the last step, and adds those before it
/// to `group`.
fn use_up(id: &str, receipt: &str, dice: &mut Dice, group: &mut Vec<Request>) -> Request {
    match dice.below(10) {
        0..6 => ack(QUEUE, receipt),
        6 => {
            let options =
                ReleaseOptions { priority: dice.chance(50).then_some(1), ..Default::default() };
            release(QUEUE, receipt, options)
        }
        7 => {
            group.push(bury(QUEUE, receipt));
            dig(QUEUE, id)
        }
        8 => bury(QUEUE, receipt),
        _ => {
            group.push(touch(QUEUE, receipt));
            ack(QUEUE, receipt)
        }
    }
}
