//! The load: clients that make batches and work on their tasks until the server is gone. Now and
//! then a client drops its connection, with tasks in its hands and requests under way.

use std::net::SocketAddr;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::Dice;

use super::asks::Ask;
use super::book::{Book, Pages};
use super::chores::{Held, chores, plowed};
use super::stories::story;
use super::talk::{delivered, exchange};
use super::{FAMILIES, Kind, Queue};
use crate::fault::Fallible;
use crate::load::until_crash;

/// The number of clients. Each makes batches and works.
const CLIENTS: u64 = 6;
/// The most stories that are told together.
const STORIES_MAX: u64 = 16;
/// The most tasks that are taken together.
const TASKS_MAX: u64 = 100;
/// Above this number of tasks, clients make no more batches.
const BACKLOG_MAX: u64 = 4_000;
/// A client drops its connection once in so many steps.
const DROP_IN: u64 = 80;
/// Buried tasks are brought back once in so many steps.
const PLOW_IN: u64 = 20;
/// How long a take waits at most.
const WAIT_MS: u64 = 5;
/// How long a lease with a TTR lasts at most.
const TTR_MS: u64 = 300;

/// Runs the load until the server is gone, which `crash` brings about.
pub(crate) fn run<T>(
    book: &Book,
    address: SocketAddr,
    dice: &mut Dice,
    crash: impl FnOnce() -> Fallible<T>,
) -> Fallible<T> {
    // The end of a client's work is that of the server.
    let work = |_: u64, dice: &mut Dice| {
        drop(visit(book, address, dice));
        Ok(())
    };
    until_crash(CLIENTS, dice, work, crash)
}

/// Works on one connection after the other, until one ends by itself, which is an error.
fn visit(book: &Book, address: SocketAddr, dice: &mut Dice) -> Fallible<()> {
    loop {
        let mut wire = crate::wire::connect(address)?;
        let mut kept = Vec::new();
        while step(book, &mut wire, &mut kept, dice)? {}
        book.with(|pages| pages.figures.dropped += 1);
    }
}

/// Makes some requests. Returns whether the client keeps its connection.
fn step(book: &Book, wire: &mut Resp, kept: &mut Vec<Held>, dice: &mut Dice) -> Fallible<bool> {
    let has_room = book.with(|pages| pages.open()) < BACKLOG_MAX;
    let drops = dice.once_in(DROP_IN);
    let mut asks = if has_room && dice.chance(45) {
        let count = 1 + dice.below(STORIES_MAX);
        book.with(|pages| (0..count).flat_map(|_| story(pages, dice)).collect::<Vec<Ask>>())
    } else {
        let kind = dice.pick(&[Kind::Work, Kind::Work, Kind::Odd, Kind::Then, Kind::Then]);
        let queue = Queue { family: dice.index(FAMILIES.len()), kind };
        let take = some_take(queue, dice);
        if drops && dice.chance(30) {
            // Whatever it would have got goes back.
            wire.send([&take])?;
            return Ok(false);
        }
        let sent_at = book.with(Pages::moment);
        let reply = wire.ask(&take)?;
        work_on(book, (queue, sent_at), &reply, kept, dice)
    };
    if dice.once_in(PLOW_IN) {
        let kind = dice.pick(&[Kind::Work, Kind::Odd, Kind::Then]);
        asks.push(plowed(Queue { family: dice.index(FAMILIES.len()), kind }));
    }
    let answers = if drops { dice.index(asks.len() + 1) } else { asks.len() };
    exchange(wire, book, &asks, answers)?;
    Ok(!drops)
}

fn some_take(queue: Queue, dice: &mut Dice) -> Words {
    let ttr_ms = dice.chance(30).then(|| 20 + dice.below(TTR_MS));
    let wait_ms = dice.chance(20).then(|| 1 + dice.below(WAIT_MS));
    let words = Words::new("TAKE").bytes(queue.name());
    let words = words.option("COUNT", Some(1 + dice.below(TASKS_MAX)));
    words.option("WAIT", wait_ms).option("TTR", ttr_ms)
}

/// Notes which tasks came, and chooses what to do with them.
fn work_on(
    book: &Book,
    taken: (Queue, u64),
    reply: &Value,
    kept: &mut Vec<Held>,
    dice: &mut Dice,
) -> Vec<Ask> {
    let Some(tasks) = delivered(reply) else {
        book.fail(format!("a take from {} was answered {reply:?}", taken.0.name()));
        return Vec::new();
    };
    book.with(|pages| {
        let came = Held::all(pages, taken, tasks);
        chores(pages, came, kept, dice)
    })
}
