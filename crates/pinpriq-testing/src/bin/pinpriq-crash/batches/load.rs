//! The load: clients that make batches and work on their tasks until the server is gone. Now and
//! then a client drops its connection, with tasks in its hands and requests under way.
//!
//! What a client does next is the same in a cluster, where it goes on after a crash.

use std::net::SocketAddr;

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::Dice;

use super::asks::Ask;
use super::book::{Book, Pages};
use super::chores::{Held, chores, plowed};
use super::stories::story;
use super::talk::{Talk, delivered};
use super::{Kind, Plan, Queue};
use crate::fault::Fallible;
use crate::load::until_crash;

/// The number of clients. Each makes batches and works.
const CLIENTS: u64 = 6;
/// The most tasks that are taken together.
const TASKS_MAX: u64 = 100;
/// A client drops its connection once in so many steps.
const DROP_IN: u64 = 80;
/// Buried tasks are brought back once in so many steps.
const PLOW_IN: u64 = 20;
/// How long a take waits at most.
const WAIT_MS: u64 = 5;
/// How long a lease with a TTR lasts at most on one server.
const TTR_MS: u64 = 300;
/// How long leases last in a cluster, in milliseconds.
const CLUSTER_TTRS_MS: [u64; 3] = [400, 1_500, 4_000];

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
        let mut talk = Talk::connect(address, book)?;
        let mut kept = Vec::new();
        while step(&mut talk, &mut kept, dice)? {}
        book.note_dropped();
    }
}

/// Makes some requests. Returns whether the client keeps its connection. Fails if that has ended.
pub(crate) fn step(talk: &mut Talk<'_>, kept: &mut Vec<Held>, dice: &mut Dice) -> Fallible<bool> {
    let (book, plan) = (talk.book, talk.plan);
    let has_room = book.with(|pages| pages.open()) < plan.backlog_max;
    let drops = dice.once_in(DROP_IN);
    let mut asks = if has_room && dice.chance(45) {
        let count = 1 + dice.below(plan.stories_max);
        book.with(|pages| (0..count).flat_map(|_| story(pages, dice)).collect::<Vec<Ask>>())
    } else {
        let kind = dice.pick(&[Kind::Work, Kind::Work, Kind::Odd, Kind::Then, Kind::Then]);
        let queue = Queue { family: dice.pick(plan.families), kind };
        let take = some_take(plan, queue, dice);
        if drops && dice.chance(30) {
            // Whatever it would have got goes back.
            talk.send(&take)?;
            return Ok(false);
        }
        let sent_at = book.with(Pages::moment);
        let reply = talk.take(&take)?;
        work_on(book, (queue, sent_at), &reply, kept, dice)
    };
    if dice.once_in(PLOW_IN) {
        let kind = dice.pick(&[Kind::Work, Kind::Odd, Kind::Then]);
        asks.push(plowed(Queue { family: dice.pick(plan.families), kind }));
    }
    // In a cluster nothing says when the requests under way are over.
    let waits_for_all = !drops || plan.is_cluster;
    let answers = if waits_for_all { asks.len() } else { dice.index(asks.len() + 1) };
    talk.exchange(&asks, answers)?;
    Ok(!drops)
}

fn some_take(plan: Plan, queue: Queue, dice: &mut Dice) -> Words {
    let ttr_ms = if plan.is_cluster {
        // Without a time, it would end with the owner of the shard.
        Some(dice.pick(&CLUSTER_TTRS_MS))
    } else {
        dice.chance(30).then(|| 20 + dice.below(TTR_MS))
    };
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
    book.with(|pages| {
        let Some(tasks) = delivered(reply) else {
            if pages.excuse(reply).is_none() {
                pages.fail(format!("a take from {} was answered {reply:?}", taken.0.name()));
            }
            return Vec::new();
        };
        let came = Held::all(pages, taken, tasks);
        chores(pages, came, kept, dice)
    })
}
