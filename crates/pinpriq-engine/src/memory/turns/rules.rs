//! What a queue and its users ask of turns, and what turns ask about the tasks of the queue.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::aged::Aged;
use crate::memory::ranked::Rank;
use crate::memory::slots::{KeyHash, Slot};
use pinpriq_proto::settings::Rate;
#[cfg(test)]
pub(crate) use pinpriq_proto::shares::Own;
pub(crate) use pinpriq_proto::shares::ShareRules as OwnRules;
use pinpriq_proto::task::{Bytes, StateKind};

/// The rules of a queue.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Rules {
    /// Whether turns go to shares by what they have had. Otherwise they go by age.
    pub(crate) is_fair: bool,
    /// Whether tasks go by rank, and not by number.
    pub(crate) ages: bool,
    /// Whether keys and shares may hold tasks back.
    pub(crate) is_by_key: bool,
    /// Whether a task that has failed holds back the others of its key.
    pub(crate) key_hold: bool,
    pub(crate) key_limit: Option<u64>,
    pub(crate) key_rate: Option<Rate>,
    /// For shares without a limit of their own.
    pub(crate) share_limit: Option<u64>,
    /// For shares without a rate of their own.
    pub(crate) share_rate: Option<Rate>,
}

/// The rules of their own that shares of a queue have, by share.
pub(crate) type SharesRules = BTreeMap<Bytes, OwnRules>;

impl Rules {
    /// Whether turns by these rules are no turns by the other ones.
    pub(crate) fn differ_in_kind(&self, other: &Self) -> bool {
        (self.is_fair, self.ages, self.is_by_key) != (other.is_fair, other.ages, other.is_by_key)
    }

    /// Whether turns look at nothing but the tasks that could be handed out, and these go by what
    /// their shares have had.
    #[inline]
    pub(crate) const fn are_plain(&self) -> bool {
        self.is_fair && !self.is_by_key
    }

    /// Whether there are no turns without these rules.
    pub(crate) const fn ask_for_turns(&self) -> bool {
        self.is_fair || self.ages || self.is_by_key
    }

    /// Whether takers cannot ask for tasks in another order.
    pub(crate) const fn fix_order(&self) -> bool {
        self.is_fair || self.is_by_key
    }
}

/// What turns need to know of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrant<'t> {
    pub(crate) seq: u64,
    /// The number by which it is ranked, the same for all that age. A task without one never has a
    /// turn.
    pub(crate) number: Option<i64>,
    /// By what it goes among tasks that age.
    pub(crate) rank: i128,
    pub(crate) kind: StateKind,
    pub(crate) key: Option<&'t Bytes>,
    /// On whose behalf it runs, if its producer has said that.
    pub(crate) share: Option<&'t Bytes>,
    pub(crate) cost: NonZeroU32,
    /// Whether it holds back the others of its key, if the queue has it so.
    pub(crate) is_held: bool,
    /// See [`crate::memory::packed::Task::is_narrow`].
    pub(crate) is_narrow: bool,
}

/// What counts of a task that could be handed out and may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'t> {
    pub(crate) number: i64,
    pub(crate) seq: u64,
    /// The share that it belongs to. See [`Entrant::share()`].
    pub(crate) share: Option<&'t Bytes>,
    pub(crate) cost: NonZeroU32,
}

/// What a task was charged. It stays known when the task is gone.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(super) share: Option<Bytes>,
    pub(super) key: Option<Bytes>,
    pub(super) number: Option<i64>,
    pub(super) cost: NonZeroU32,
}

impl<'t> Entrant<'t> {
    /// What a take of it is charged.
    pub(crate) fn charge(&self) -> Charge {
        let (share, key) = (self.share().cloned(), self.key.cloned());
        Charge { share, key, number: self.number, cost: self.cost }
    }

    /// The share that it belongs to. Without a name, it is the one of all tasks that name none.
    pub(super) fn share(&self) -> Option<&'t Bytes> {
        self.share.or(self.key)
    }

    /// Whether it holds back the others of its key.
    pub(super) fn holds_key(&self) -> bool {
        let is_unfinished =
            matches!(self.kind, StateKind::Ready | StateKind::Waiting | StateKind::Taken);
        self.is_held && self.number.is_some() && is_unfinished
    }

    /// Its place among tasks that age.
    pub(super) const fn aged(&self, slot: Slot) -> Aged {
        Aged { rank: self.rank, seq: self.seq, slot }
    }

    /// The same task as one that may go, if it has a number.
    pub(super) fn candidate(&self) -> Option<Candidate<'t>> {
        let (seq, share, cost) = (self.seq, self.share(), self.cost);
        self.number.map(|number| Candidate { number, seq, share, cost })
    }

    /// Whether it could be handed out.
    pub(super) fn is_selectable(&self) -> bool {
        self.kind == StateKind::Ready && self.number.is_some()
    }
}

/// What turns ask about the tasks of their queue.
pub(crate) trait Roster {
    /// A task that is there.
    fn entrant(&self, slot: Slot) -> Entrant<'_>;

    /// The seq of a task that is there.
    fn seq(&self, slot: Slot) -> u64;

    /// A task that is there, if it could be handed out.
    fn candidate(&self, slot: Slot) -> Option<Candidate<'_>>;

    /// The first task of the main order: of all that could be handed out, by number and seq.
    fn first(&self) -> Option<Slot>;

    /// The first task of the main order after this place, with its own place.
    fn after(&self, place: Rank) -> Option<(Rank, Slot)>;

    /// The first ready task with this key and a number, by number and seq.
    fn first_of_key(&self, key: &[u8]) -> Option<Slot>;

    /// All ready tasks with this key and a number, by number and seq.
    fn all_of_key<'r>(&'r self, key: &'r Bytes) -> impl Iterator<Item = Slot> + 'r;

    /// What a share has instead of the rules of the queue, if anything.
    fn own_rules(&self, share: &[u8]) -> Option<OwnRules>;

    fn hash(&self, name: &[u8]) -> KeyHash;
}
