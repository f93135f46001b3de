//! The tasks of one share and number, the oldest first, or in an ageing queue by rank.
//!
//! Where they do not age, only their addresses are kept, four bytes each. Up to ten are in the row
//! itself, more in an allocation of their own, and very many in an order with seqs, which takes
//! eight bytes each. Tasks come mostly with a seq above all others, and leave mostly as the first.
//! Whatever else needs to know a seq asks for that of a task.

use std::collections::VecDeque;

use super::aged::Aged;
use super::line::Line;
use crate::memory::ranked::Ranked;
use crate::memory::slots::Slot;
use pinpriq_proto::command::{End, Order};

/// The most tasks that are few, and how many are few again.
const FEW_MAX: usize = 10;
const FEW_AGAIN: usize = 6;

/// The most tasks that are several, and how many are so again.
const SEVERAL_MAX: usize = 256;
const SEVERAL_AGAIN: usize = 64;

/// Tasks by seq, or by rank and seq. Every operation costs O(log n), plus a look at 256 addresses
/// at most.
#[derive(Debug)]
pub(super) enum Row {
    Few {
        /// No task has a seq above this one, if there are any.
        newest: u64,
        len: u8,
        tasks: [Option<Slot>; FEW_MAX],
    },
    Several(Box<Several>),
    Many(Box<Many>),
    /// Those that age.
    Aged(Box<Line<Aged>>),
}

#[derive(Debug)]
pub(super) struct Several {
    newest: u64,
    tasks: VecDeque<Slot>,
}

#[derive(Debug, Default)]
pub(super) struct Many {
    newest: u64,
    ranked: Ranked,
    count: usize,
    /// The first one, which is asked for often.
    first: Option<Slot>,
}

impl Default for Row {
    fn default() -> Self {
        Self::Few { newest: 0, len: 0, tasks: [None; FEW_MAX] }
    }
}

impl Row {
    /// No tasks, which are to be ordered by rank if they age.
    pub(super) fn new(ages: bool) -> Self {
        if ages { Self::Aged(Box::default()) } else { Self::default() }
    }

    /// Whether a task with this seq would come after others for certain.
    #[inline]
    pub(super) fn comes_last(&self, seq: u64) -> bool {
        match self {
            Self::Few { newest, len, .. } => *len > 0 && seq > *newest,
            Self::Several(several) => seq > several.newest,
            Self::Many(many) => seq > many.newest,
            Self::Aged(_) => false,
        }
    }

    /// Adds a task. Returns whether it is the first one.
    #[inline]
    pub(super) fn insert(&mut self, seq: u64, slot: Slot, seq_of: impl Fn(Slot) -> u64) -> bool {
        if let Self::Few { newest, len, tasks } = self
            && let count = usize::from(*len)
            && count < FEW_MAX
        {
            *len += 1;
            if count == 0 || seq > *newest {
                (*newest, tasks[count]) = (seq, Some(slot));
                return count == 0;
            }
            let is_after = |other: &Option<Slot>| other.is_some_and(|it| seq_of(it) < seq);
            let at = tasks[..count].partition_point(is_after);
            tasks.copy_within(at..count, at + 1);
            tasks[at] = Some(slot);
            return at == 0;
        }
        self.insert_among_several(seq, slot, seq_of)
    }

    #[inline(never)]
    fn insert_among_several(&mut self, seq: u64, slot: Slot, seq_of: impl Fn(Slot) -> u64) -> bool {
        match self {
            Self::Few { newest, .. } => {
                let newest = *newest;
                let tasks = self.iter().collect();
                *self = Self::Several(Box::new(Several { newest, tasks }));
            }
            Self::Several(several) if several.tasks.len() == SEVERAL_MAX => {
                let mut many = Box::<Many>::default();
                for slot in &several.tasks {
                    many.insert(seq_of(*slot), *slot);
                }
                *self = Self::Many(many);
            }
            _ => {}
        }
        match self {
            Self::Few { .. } | Self::Aged(_) => unreachable!("there are several by seq by now"),
            Self::Several(several) => several.insert(seq, slot, seq_of),
            Self::Many(many) => many.insert(seq, slot),
        }
    }

    /// Removes a task, which must be there. Returns whether it was the first one.
    #[inline]
    pub(super) fn remove(&mut self, seq: u64, slot: Slot) -> bool {
        if let Self::Few { len, tasks, .. } = self {
            let count = usize::from(*len);
            if tasks[0] == Some(slot) && count > 0 {
                // All places, since their number is known to the compiler.
                tasks.copy_within(1.., 0);
                *len -= 1;
                return true;
            }
            let Some(at) = tasks[..count].iter().position(|task| *task == Some(slot)) else {
                unreachable!("the task at {slot:?} is not in its row")
            };
            tasks.copy_within(at + 1..count, at);
            *len -= 1;
            return false;
        }
        self.remove_from_several(seq, slot)
    }

    /// Removes the first task, which must be there.
    #[inline]
    pub(super) fn remove_first(&mut self, slot: Slot) {
        let seq = match self {
            Self::Many(many) => many.ranked.first(End::Min, Order::Oldest).map(|((_, seq), _)| seq),
            Self::Few { .. } | Self::Several(_) | Self::Aged(_) => None,
        };
        self.remove(seq.unwrap_or(0), slot);
    }

    #[inline(never)]
    fn remove_from_several(&mut self, seq: u64, slot: Slot) -> bool {
        match self {
            Self::Few { .. } | Self::Aged(_) => unreachable!("there are several by seq"),
            Self::Several(several) => {
                let was_first = several.remove(slot);
                if several.tasks.len() <= FEW_AGAIN {
                    let Several { newest, tasks } = &**several;
                    let mut few = [None; FEW_MAX];
                    few.iter_mut().zip(tasks).for_each(|(few, slot)| *few = Some(*slot));
                    let len = u8::try_from(tasks.len()).unwrap_or(0);
                    *self = Self::Few { newest: *newest, len, tasks: few };
                }
                was_first
            }
            Self::Many(many) => {
                let was_first = many.remove(seq, slot);
                if many.count <= SEVERAL_AGAIN {
                    let newest = many.newest;
                    let tasks = self.iter().collect();
                    *self = Self::Several(Box::new(Several { newest, tasks }));
                }
                was_first
            }
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Slot> {
        match self {
            Self::Few { tasks, len, .. } => tasks[0].filter(|_| *len > 0),
            Self::Several(several) => several.tasks.front().copied(),
            Self::Many(many) => many.first,
            Self::Aged(line) => line.first().map(|task| task.slot),
        }
    }

    /// Whether there are several tasks.
    #[inline]
    pub(super) fn has_several(&self) -> bool {
        match self {
            Self::Few { len, .. } => *len > 1,
            // They become few before they are that few.
            Self::Several(_) | Self::Many(_) => true,
            Self::Aged(line) => line.iter().nth(1).is_some(),
        }
    }

    /// The first task after this one, or the first of all. All ranks are 0 of tasks that do not
    /// age.
    pub(super) fn next(&self, last: Option<Aged>, seq_of: impl Fn(Slot) -> u64) -> Option<Aged> {
        let seq = last.map_or(0, |last| last.seq);
        let is_before = |slot: &Slot| seq_of(*slot) <= seq;
        let found = match self {
            Self::Aged(line) => {
                return last.map_or_else(|| line.first(), |last| line.above(last)).copied();
            }
            Self::Many(many) => return many.after(seq),
            Self::Several(several) => {
                let at = several.tasks.partition_point(is_before);
                several.tasks.get(at).copied()
            }
            Self::Few { .. } => self.iter().find(|slot| !is_before(slot)),
        };
        found.map(|slot| Aged { rank: 0, seq: seq_of(slot), slot })
    }

    pub(super) fn last(&self) -> Option<Slot> {
        match self {
            Self::Few { tasks, len, .. } => tasks[usize::from(len.checked_sub(1)?)],
            Self::Several(several) => several.tasks.back().copied(),
            Self::Many(many) => many.ranked.first(End::Max, Order::Newest).map(|(_, slot)| slot),
            Self::Aged(line) => line.last().map(|task| task.slot),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let (few, several, many, aged) = match self {
            Self::Few { tasks, len, .. } => (&tasks[..usize::from(*len)], None, None, None),
            Self::Several(several) => (&[][..], Some(several), None, None),
            Self::Many(many) => (&[][..], None, Some(many), None),
            Self::Aged(line) => (&[][..], None, None, Some(line)),
        };
        let several = several.into_iter().flat_map(|several| several.tasks.iter().copied());
        let many = many.into_iter().flat_map(|many| many.ranked.walk(End::Min, Order::Oldest));
        let aged = aged.into_iter().flat_map(|line| line.iter().map(|task| task.slot));
        few.iter().flatten().copied().chain(several).chain(many.map(|(_, slot)| slot)).chain(aged)
    }
}

impl Several {
    fn insert(&mut self, seq: u64, slot: Slot, seq_of: impl Fn(Slot) -> u64) -> bool {
        let count = self.tasks.len();
        if count == self.tasks.capacity() {
            self.tasks.reserve_exact(count / 2);
        }
        let at = if seq > self.newest {
            self.newest = seq;
            count
        } else {
            self.tasks.partition_point(|other| seq_of(*other) < seq)
        };
        self.tasks.insert(at, slot);
        at == 0
    }

    fn remove(&mut self, slot: Slot) -> bool {
        let Some(at) = self.tasks.iter().position(|other| *other == slot) else {
            unreachable!("the task at {slot:?} is not in its row")
        };
        self.tasks.remove(at);
        if self.tasks.len() < self.tasks.capacity() / 4 {
            self.tasks.shrink_to(self.tasks.len() * 2);
        }
        at == 0
    }
}

impl Many {
    fn insert(&mut self, seq: u64, slot: Slot) -> bool {
        self.ranked.insert((0, seq), slot);
        self.newest = self.newest.max(seq);
        self.count += 1;
        self.find_first();
        self.first == Some(slot)
    }

    fn remove(&mut self, seq: u64, slot: Slot) -> bool {
        self.ranked.remove((0, seq));
        self.count -= 1;
        let was_first = self.first == Some(slot);
        if was_first {
            self.find_first();
        }
        was_first
    }

    /// The first task with a seq above this one.
    fn after(&self, seq: u64) -> Option<Aged> {
        let found = self.ranked.next_in_level(0, seq);
        found.map(|(seq, slot)| Aged { rank: 0, seq, slot })
    }

    fn find_first(&mut self) {
        self.first = self.ranked.first(End::Min, Order::Oldest).map(|(_, slot)| slot);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use super::*;
    use crate::memory::sorted::tests::draws;

    /// Inserts and removes by a fixed sequence of numbers, and compares with a map.
    #[test]
    fn a_row_is_in_the_order_of_seqs() {
        let mut draw = draws();
        let mut row = Row::default();
        let mut known: BTreeMap<u64, Slot> = BTreeMap::new();
        let seq_of = |slot: Slot| u64::from(slot.0.get()) ^ 0x155;
        let mut last = 0;
        for step in 0..60_000_u64 {
            let most = [8, 12, 40, 300, 700, 5][usize::try_from(step / 10_000).unwrap_or(0)];
            let is_many = known.len() as u64 >= most;
            if known.is_empty() || !is_many && draw(5) > 0 {
                last += 1;
                let number = if draw(3) > 0 { last } else { draw(last) + 1 };
                let slot =
                    Slot::of(NonZeroU32::new(u32::try_from(number).unwrap_or(1)).expect("1"));
                let seq = seq_of(slot);
                if known.insert(seq, slot).is_none() {
                    let is_first = row.insert(seq, slot, seq_of);
                    assert_eq!(is_first, known.first_key_value() == Some((&seq, &slot)));
                }
            } else {
                let at = if draw(3) > 0 { 0 } else { draw(known.len() as u64) };
                let at = known.iter().nth(usize::try_from(at).unwrap_or(0));
                let (seq, slot) = at.map(|(seq, slot)| (*seq, *slot)).expect("there are some");
                let is_first = known.first_key_value() == Some((&seq, &slot));
                known.remove(&seq);
                assert_eq!(row.remove(seq, slot), is_first);
            }
            assert_eq!(row.first(), known.values().next().copied());
            assert_eq!(row.last(), known.values().next_back().copied());
            let seq = draw(last + 1);
            let last = Some(Aged { rank: 0, seq, slot: Slot::of(NonZeroU32::MIN) });
            let next = known.range(seq + 1..).next().map(|(seq, slot)| (*seq, *slot));
            assert_eq!(row.next(last, seq_of).map(|task| (task.seq, task.slot)), next);
            if step % 50 == 0 {
                assert!(row.iter().eq(known.values().copied()), "step {step}");
            }
        }
    }
}
