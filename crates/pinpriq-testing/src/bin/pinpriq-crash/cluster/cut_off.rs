//! A node that is cut off from the other nodes, but not from the engine. It must keep its shards
//! and serve who asks it, and the others must answer TRYAGAIN for them.

use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::Outcome;

use super::board::Board;
use super::links::Flow;
use super::load::{Load, QUEUES, Queue};
use super::probe::{PATIENCE, probe};
use super::trouble::{GAP_MAX_MS, Stage};
use super::{NODES, SESSION_MS, SHARDS};
use crate::client::Client;
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;

/// How long it takes until all nodes know: links that are silent for a session are given up.
const KNOWN: Duration = Duration::from_millis(2 * SESSION_MS);

/// How often others are asked until they refuse. What has begun on the link is unknown.
const ASKED_MAX: usize = 3;

/// How long shards may take to be spread evenly, and the time between two looks.
const SPREAD_MAX: Duration = Duration::from_mins(1);
const BETWEEN: Duration = Duration::from_millis(50);

/// The slots of names, as Redis Cluster counts them.
const SLOTS: u32 = 16_384;

impl Stage {
    pub(super) fn cut_from_peers(
        &mut self,
        node: usize,
        others: &[usize],
        load: &Load<'_>,
    ) -> Fallible<()> {
        // Otherwise shards may be on their way from one node to another.
        wait_until_spread(load.board);
        let board = load.board;
        let terms = || (0..SHARDS).map(|shard| board.term(shard)).collect::<Vec<_>>();
        let owners = board.owners();
        let of_node = |queue: &&Queue| owners.get(&shard_of(queue.name)) == Some(&node);
        let queues: Vec<Queue> = QUEUES.iter().filter(of_node).copied().collect();
        let before = terms();
        for other in others {
            self.nodes.links.set_both(node, *other, Flow::Cut);
        }
        let_pass(KNOWN);
        let most_ms = GAP_MAX_MS * self.slack;
        let asked = ask(load, &queues, (node, others), (&mut self.dice, most_ms));
        let after = terms();
        self.nodes.links.set_all(Flow::Open);
        if before != after {
            let what = "shards moved while a node was cut off from its peers only";
            board.fail(format!("{what}: n{} had terms {before:?}, then {after:?}", node + 1));
        }
        asked
    }
}

/// Waits until all nodes have as many shards.
fn wait_until_spread(board: &Board) {
    let clock = Clock::starting();
    let each = usize::from(SHARDS) / NODES;
    loop {
        let owners = board.owners();
        let count = |node| owners.values().filter(|owner| **owner == node).count();
        if (0..NODES).all(|node| count(node) == each) {
            return;
        }
        if clock.elapsed() > SPREAD_MAX {
            return board.fail(format!("shards are never spread evenly: {owners:?}"));
        }
        let_pass(BETWEEN);
    }
}

/// Asks the node for its queues, and the others too, all at the same time.
fn ask(
    load: &Load<'_>,
    queues: &[Queue],
    (node, others): (usize, &[usize]),
    (dice, most_ms): (&mut Dice, u64),
) -> Fallible<()> {
    std::thread::scope(|scope| {
        let mut asked = Vec::new();
        for queue in queues {
            let mut own = dice.fork();
            asked.push(scope.spawn(move || {
                let ms = probe(load, Clock::starting(), (*queue, node), &mut own)?;
                if ms > most_ms {
                    let (name, node) = (queue.name, node + 1);
                    load.board.fail(format!("n{node} did not serve its own {name} for {ms} ms"));
                }
                Ok(())
            }));
            for other in others {
                let mut own = dice.fork();
                asked.push(scope.spawn(move || is_refused(load, *queue, *other, &mut own)));
            }
        }
        asked.into_iter().try_for_each(|it| it.join().map_err(|_| "a probe panicked")?)
    })
}

/// Checks that a node refuses a put, since it does not reach the owner.
fn is_refused(load: &Load<'_>, queue: Queue, node: usize, dice: &mut Dice) -> Fallible<()> {
    let mut heard = Vec::new();
    let clock = Clock::starting();
    while heard.len() < ASKED_MAX && clock.elapsed() < PATIENCE {
        let door = load.board.door(node);
        let Some(mut client) = door.and_then(|door| Client::connect(door, load.ledger)) else {
            let_pass(BETWEEN);
            continue;
        };
        let outcome = client.ask_one(load.some_put(queue, dice))?;
        client.close()?;
        match outcome {
            Some(Outcome::Refused(word)) if word == "TRYAGAIN" => return Ok(()),
            Some(Outcome::Unknown) | None => heard.push(outcome),
            Some(_) => {
                heard.push(outcome);
                break;
            }
        }
    }
    let (name, node) = (queue.name, node + 1);
    load.board
        .fail(format!("n{node} must refuse {name} of a node that it does not reach: {heard:?}"));
    Ok(())
}

/// The shard of a queue whose name has no braces, or these words in braces.
pub(crate) fn shard_of(name: &str) -> u16 {
    let slot = u32::from(crc16(name.as_bytes())) % SLOTS;
    u16::try_from(slot * u32::from(SHARDS) / SLOTS).unwrap_or(u16::MAX)
}

/// The checksum that decides the slot of a name: CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            let shifted = sum << 1;
            if sum & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{QUEUES, SHARDS, crc16, shard_of};

    #[test]
    fn every_shard_has_two_queues() {
        assert_eq!(crc16(b"foo") % 16_384, 12_182);
        let mut counts = BTreeMap::<u16, usize>::new();
        for queue in &QUEUES {
            *counts.entry(shard_of(queue.name)).or_default() += 1;
        }
        assert_eq!(counts.len(), usize::from(SHARDS));
        assert!(counts.values().all(|count| *count == 2), "{counts:?}");
    }
}
