//! What a client does with the tasks that it has in its hands.

use pinpriq_proto::wire::resp::Words;
use pinpriq_testing::Dice;

use super::asks::{Ask, What};
use super::book::Pages;
use super::stories::joining;
use super::talk::Delivered;
use super::{Kind, Queue};

/// Above this number of tasks that a client keeps for later, it finishes some.
const KEPT_MAX: usize = 20;

/// A task that a client has in its hands.
pub(crate) struct Held {
    pub(super) queue: Queue,
    pub(super) number: u64,
    pub(super) id: String,
    pub(super) receipt: String,
}

/// Chooses what to do with the tasks of one queue that came, and with some that were kept.
pub(super) fn chores(
    pages: &mut Pages,
    came: Vec<Held>,
    kept: &mut Vec<Held>,
    dice: &mut Dice,
) -> Vec<Ask> {
    let count = kept.len().saturating_sub(KEPT_MAX) + usize::from(dice.chance(50));
    let old = kept.drain(..count.min(kept.len()));
    let mut chosen: Vec<Ask> = old.map(|held| held.acknowledged()).collect();
    let mut done = Vec::new();
    for held in came {
        let is_child = held.queue.kind != Kind::Then;
        match dice.below(100) {
            0..78 => done.push(held),
            78..83 => chosen.push(held.given_back("FAIL", What::Fail(held.number))),
            83..86 => chosen.push(held.given_back("RELEASE", What::Release(held.number))),
            86..88 => chosen.push(held.given_back("BURY", What::Bury(held.number))),
            88..90 if is_child => chosen.push(held.ended("KILL", What::Kill(held.number))),
            90..92 if is_child => chosen.push(held.ended("CANCEL", What::Withdraw(held.number))),
            92..96 => chosen.push(held.followed_up(pages)),
            _ => kept.push(held),
        }
    }
    if dice.chance(70) {
        chosen.extend(acknowledged(&done));
    } else {
        chosen.extend(done.iter().map(Held::acknowledged));
    }
    chosen
}

/// Acknowledges all of these tasks, which are of one queue, with one request. There is none if
/// there are no tasks.
pub(super) fn acknowledged(held: &[Held]) -> Option<Ask> {
    let (first, others) = held.split_first()?;
    if others.is_empty() {
        // A receipt alone is answered otherwise.
        return Some(first.acknowledged());
    }
    let words = Words::new("ACK").bytes(first.queue.name());
    let words = words.all(held.iter().map(|held| &held.receipt));
    Some(Ask::of(words, What::Acks(held.iter().map(|held| held.number).collect())))
}

/// Brings the buried tasks of a queue back.
pub(super) fn plowed(queue: Queue) -> Ask {
    Ask::of(Words::new("PLOW").bytes(queue.name()), What::Plow)
}

impl Held {
    /// Notes which tasks came to a take that was sent after this moment.
    pub(super) fn all(
        pages: &mut Pages,
        (queue, sent_at): (Queue, u64),
        came: Vec<Delivered>,
    ) -> Vec<Self> {
        let held = came.into_iter().filter_map(|task| {
            let number = pages.note_came(queue, &task.payload, sent_at)?;
            Some(Self { queue, number, id: task.id, receipt: task.receipt? })
        });
        held.collect()
    }

    fn acknowledged(&self) -> Ask {
        self.given_back("ACK", What::Ack(self.number))
    }

    /// A command that shows the receipt.
    fn given_back(&self, command: &str, what: What) -> Ask {
        Ask::of(Words::new(command).bytes(self.queue.name()).bytes(&self.receipt), what)
    }

    /// A command that names the id.
    fn ended(&self, command: &str, what: What) -> Ask {
        Ask::of(Words::new(command).bytes(self.queue.name()).bytes(&self.id), what)
    }

    /// The task adds another one to its batch and is acknowledged, in one transaction.
    fn followed_up(&self, pages: &mut Pages) -> Ask {
        let Some(batch) = pages.tasks[&self.number].terms.batch else {
            return self.acknowledged();
        };
        let put = joining(pages, self.queue.family, batch);
        Ask::all(vec![put, self.acknowledged()])
    }
}
