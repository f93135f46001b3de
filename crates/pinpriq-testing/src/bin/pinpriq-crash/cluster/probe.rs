//! Measures how long it takes until every queue is served again.

use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::Outcome;

use super::load::{Load, Queue, quick_take};
use crate::client::Client;
use crate::clock::{Clock, let_pass};
use crate::fault::{Fallible, Fault};
use pinpriq_testing::history::request::ack;

/// After this time a queue counts as never served.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The pause before something is asked again.
const AGAIN: Duration = Duration::from_millis(10);

/// Waits until a put and a take of every queue have succeeded, each asked of one of these nodes.
/// Returns how many milliseconds after the start of `since` that was. An error says which queue is
/// not served.
pub(crate) fn gap(
    load: &Load<'_>,
    since: Clock,
    nodes: &[usize],
    dice: &mut Dice,
) -> Fallible<u64> {
    let first = dice.index(nodes.len());
    std::thread::scope(|scope| {
        let mut probes = Vec::new();
        for (place, queue) in load.plan.queues.iter().copied().enumerate() {
            let node = nodes[(first + place) % nodes.len()];
            let mut dice = dice.fork();
            let probe = move || probe(load, since, (queue, node), &mut dice);
            probes.push(scope.spawn(probe));
        }
        let mut longest = 0;
        for probe in probes {
            longest = longest.max(probe.join().map_err(|_| "a probe panicked")??);
        }
        Ok(longest)
    })
}

/// Does so for one queue at one node.
pub(super) fn probe(
    load: &Load<'_>,
    since: Clock,
    (queue, node): (Queue, usize),
    dice: &mut Dice,
) -> Fallible<u64> {
    let (mut put, mut taken) = (false, false);
    let mut last = String::new();
    let clock = Clock::starting();
    while clock.elapsed() < PATIENCE {
        let door = load.board.door(node);
        let Some(mut client) = door.and_then(|door| Client::connect(door, load.ledger)) else {
            let_pass(AGAIN);
            continue;
        };
        loop {
            if put && taken {
                client.close()?;
                return Ok(since.us() / 1_000);
            }
            let request = if put { quick_take(queue, 1) } else { load.some_put(queue, dice) };
            let Some(outcome) = client.ask_one(request)? else { break };
            match &outcome {
                Outcome::Put { .. } => put = true,
                Outcome::Tasks(tasks) => {
                    taken = true;
                    let receipt = tasks.first().and_then(|task| task.receipt.as_deref());
                    if let Some(receipt) = receipt
                        && client.ask_one(ack(queue.name, receipt))?.is_none()
                    {
                        break;
                    }
                }
                _ => let_pass(AGAIN),
            }
            last = format!("{outcome:?}");
            if clock.elapsed() >= PATIENCE {
                break;
            }
        }
    }
    let (name, node) = (queue.name, node + 1);
    let seconds = PATIENCE.as_secs();
    let what = format!("queue {name} is not served at n{node} after {seconds} s, but: {last}");
    Err(Fault::from(what))
}
