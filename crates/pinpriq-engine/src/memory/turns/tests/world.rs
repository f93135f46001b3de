//! Made-up tasks for the tests of turns.

use std::num::NonZeroU32;

use crate::memory::ranked::Rank;
use crate::memory::slots::{KeyHash, Slot};
use crate::memory::turns::{Candidate, Entrant, OwnRules, Roster};
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_testing::Dice;

/// How many names there are for keys and shares. The first one is empty.
pub(super) const NAMES: usize = 6;

/// How many tasks there can be.
const PLACES: usize = 64;

/// A task. Key and share are positions among the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fake {
    pub(super) seq: u64,
    pub(super) number: Option<i64>,
    pub(super) rank: i128,
    pub(super) kind: StateKind,
    pub(super) key: Option<usize>,
    pub(super) share: Option<usize>,
    pub(super) cost: NonZeroU32,
    pub(super) is_held: bool,
    pub(super) is_narrow: bool,
}

/// The tasks of a queue.
#[derive(Clone)]
pub(super) struct World {
    pub(super) names: [Bytes; NAMES],
    pub(super) own: [Option<OwnRules>; NAMES],
    pub(super) tasks: [Option<Fake>; PLACES],
    /// Whether they go by rank.
    pub(super) ages: bool,
    last_seq: u64,
}

impl Default for World {
    fn default() -> Self {
        let names = ["", "a", "b", "c", "d", "e"].map(|name| Bytes::from(name.as_bytes()));
        Self { names, own: [None; NAMES], tasks: [None; PLACES], ages: false, last_seq: 0 }
    }
}

pub(super) fn slot_of(index: usize) -> Slot {
    Slot::of(NonZeroU32::MIN.saturating_add(u32::try_from(index).unwrap_or(0)))
}

pub(super) fn index(slot: Slot) -> usize {
    slot.0.get() as usize - 1
}

impl Fake {
    /// The position of its share.
    pub(super) fn share(&self) -> usize {
        self.share.or(self.key).unwrap_or(0)
    }

    pub(super) fn is_selectable(&self) -> bool {
        self.kind == StateKind::Ready && self.number.is_some()
    }
}

impl World {
    /// The number that counts.
    pub(super) fn number(&self, fake: &Fake) -> Option<i64> {
        if self.ages { fake.number.map(|_| 0) } else { fake.number }
    }

    /// The rank, if it counts.
    pub(super) fn rank(&self, fake: &Fake) -> i128 {
        if self.ages { fake.rank } else { 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.iter().flatten().count()
    }

    pub(super) fn next_seq(&mut self) -> u64 {
        self.last_seq += 1;
        self.last_seq
    }

    pub(super) fn add(&mut self, fake: Fake) -> Slot {
        let free = self.tasks.iter().position(Option::is_none).expect("there is room");
        let seq = self.next_seq();
        self.tasks[free] = Some(Fake { seq, ..fake });
        slot_of(free)
    }

    pub(super) fn at(&self, slot: Slot) -> Option<&Fake> {
        self.tasks[index(slot)].as_ref()
    }

    pub(super) fn number_and_share(&self, slot: Slot) -> (Option<i64>, Option<&Bytes>) {
        let task = self.entrant(slot);
        (task.number, task.share.or(task.key))
    }

    pub(super) fn slots(&self, wanted: impl Fn(&Fake) -> bool) -> Vec<Slot> {
        let all = self.tasks.iter().enumerate();
        let wanted = all.filter(|(_, fake)| fake.as_ref().is_some_and(&wanted));
        wanted.map(|(at, _)| slot_of(at)).collect()
    }

    pub(super) fn any(&self, dice: &mut Dice, wanted: impl Fn(&Fake) -> bool) -> Option<Slot> {
        let slots = self.slots(wanted);
        (!slots.is_empty()).then(|| dice.pick(&slots))
    }

    /// The places at which another world has something else, and has something at all.
    pub(super) fn differences(&self, other: &Self) -> Vec<Slot> {
        let differ = |at: &usize| self.tasks[*at] != other.tasks[*at];
        (0..PLACES).filter(differ).map(slot_of).collect()
    }
}

impl Roster for World {
    fn entrant(&self, slot: Slot) -> Entrant<'_> {
        let fake = self.at(slot).expect("it is there");
        Entrant {
            seq: fake.seq,
            number: self.number(fake),
            rank: self.rank(fake),
            kind: fake.kind,
            key: fake.key.map(|key| &self.names[key]),
            share: fake.share.map(|share| &self.names[share]),
            cost: fake.cost,
            is_held: fake.is_held,
            is_narrow: fake.is_narrow,
        }
    }

    fn seq(&self, slot: Slot) -> u64 {
        self.entrant(slot).seq
    }

    fn candidate(&self, slot: Slot) -> Option<Candidate<'_>> {
        Some(self.entrant(slot)).filter(Entrant::is_selectable)?.candidate()
    }

    fn first(&self) -> Option<Slot> {
        self.after((i64::MIN, 0)).map(|(_, slot)| slot)
    }

    fn after(&self, place: Rank) -> Option<(Rank, Slot)> {
        let ready = self.slots(Fake::is_selectable).into_iter();
        let placed = ready.filter_map(|slot| {
            let fake = self.at(slot)?;
            Some(((fake.number?, fake.seq), slot))
        });
        placed.filter(|(other, _)| *other > place).min()
    }

    fn first_of_key(&self, key: &[u8]) -> Option<Slot> {
        let key = self.names.iter().position(|name| **name == *key);
        let same = self.slots(|fake| fake.key == key && fake.is_selectable());
        same.into_iter().min_by_key(|slot| self.at(*slot).map(|fake| (fake.number, fake.seq)))
    }

    fn all_of_key<'r>(&'r self, key: &'r Bytes) -> impl Iterator<Item = Slot> + 'r {
        let key = self.names.iter().position(|name| name == key);
        let mut same = self.slots(|fake| fake.key == key && fake.is_selectable());
        same.sort_by_key(|slot| self.at(*slot).map(|fake| (fake.number, fake.seq)));
        same.into_iter()
    }

    fn own_rules(&self, share: &[u8]) -> Option<OwnRules> {
        let at = self.names.iter().position(|name| **name == *share)?;
        self.own[at]
    }

    /// Many names have the same.
    fn hash(&self, name: &[u8]) -> KeyHash {
        KeyHash((u64::from(name.first().copied().unwrap_or(0)) % 2) << 32)
    }
}
