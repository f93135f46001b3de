//! Clients that make batches and work on their tasks beside the other load on a cluster. They go on
//! at any node that runs, when their connection is gone.
//!
//! What they do, and how it is judged, is the same as on one server: see `crate::batches`.

use std::thread::Scope;
use std::time::Duration;

use pinpriq_testing::Dice;

use super::NODES;
use super::board::Board;
use super::load::{Load, Running};
use crate::batches::book::Book;
use crate::batches::check;
use crate::batches::load::step;
use crate::batches::talk::Talk;
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;
use crate::process::GUARD;

/// The number of clients.
const CLIENTS: usize = 3;
/// The longest pause of a client between two steps, in microseconds.
const PAUSE_US: u64 = 20_000;
/// How long a client waits before it connects again.
const AGAIN: Duration = Duration::from_millis(20);

/// Sets the settings of the queues, once for all segments.
pub(crate) fn prepare(board: &Board, book: &Book) -> Fallible<()> {
    check::prepare(board.door(0).ok_or("the node does not run")?, book)
}

/// Starts the clients. They end with those of the load.
pub(crate) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (load, book): (&'scope Load<'_>, &'scope Book),
    dice: &mut Dice,
) -> Vec<Running<'scope>> {
    let start = |_| {
        let mut dice = dice.fork();
        scope.spawn(move || {
            visit(load, book, &mut dice);
            Ok(())
        })
    };
    (0..CLIENTS).map(start).collect()
}

/// Makes requests until the load is over. Leases that are kept run out.
fn visit(load: &Load<'_>, book: &Book, dice: &mut Dice) {
    let board = load.board;
    let is_mute = || board.is_mute();
    let mut kept = Vec::new();
    while !load.is_over() {
        let door = board.door(dice.index(NODES));
        let Some(talk) = door.and_then(|door| Talk::connect(door, book).ok()) else {
            let_pass(AGAIN);
            continue;
        };
        let mut talk = talk.watching(&is_mute);
        while !load.is_over() {
            let clock = Clock::starting();
            match step(&mut talk, &mut kept, dice) {
                Ok(true) => let_pass(Duration::from_micros(dice.below(PAUSE_US))),
                Ok(false) => {
                    book.note_dropped();
                    break;
                }
                Err(lost) => {
                    if clock.elapsed() >= GUARD {
                        board.fail(format!("a client of batches was never answered: {lost}"));
                    }
                    break;
                }
            }
        }
    }
}

/// Finishes all batches and tasks once no client is left, and notes on the board what was wrong.
/// Shards may still be on their way to other nodes.
pub(crate) fn settle(board: &Board, book: &Book, dice: &mut Dice) -> Fallible<()> {
    let door = board.door(dice.index(NODES)).ok_or("the node does not run")?;
    let settled = if book.failures().is_empty() { check::settle(door, book) } else { Ok(()) };
    for failure in book.failures() {
        board.fail(failure);
    }
    settled
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::SHARDS;
    use super::super::cut_off::shard_of;
    use crate::batches::IN_CLUSTER;

    #[test]
    fn every_shard_has_a_family() {
        let shards: BTreeSet<u16> = IN_CLUSTER.families.iter().map(|it| shard_of(it)).collect();
        assert_eq!(shards.len(), usize::from(SHARDS));
        assert_eq!(shards.len(), IN_CLUSTER.families.len());
    }
}
