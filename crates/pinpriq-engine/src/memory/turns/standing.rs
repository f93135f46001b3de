//! Tasks by seq. Most are few, and take eight bytes each.

use crate::memory::ranked::Ranked;
use crate::memory::slots::Slot;
use pinpriq_proto::command::{End, Order};

/// The most tasks that are few, and how many are few again.
const FEW_MAX: usize = 16;
const FEW_AGAIN: u32 = 4;

/// Tasks by seq. Every operation costs O(log n).
#[derive(Debug)]
pub(super) enum Standing {
    Few {
        /// Seqs are kept as distances from this one.
        base: u64,
        tasks: Vec<(u32, Slot)>,
    },
    Many(Box<Many>),
}

#[derive(Debug, Default)]
pub(super) struct Many {
    ranked: Ranked,
    count: u32,
    /// The first one, which is asked for often.
    first: Option<(u64, Slot)>,
}

impl Default for Standing {
    fn default() -> Self {
        Self::Few { base: 0, tasks: Vec::new() }
    }
}

impl Standing {
    pub(super) fn insert(&mut self, seq: u64, slot: Slot) {
        match self {
            Self::Few { base, tasks } => {
                if tasks.len() < FEW_MAX && rebase(base, tasks, seq) {
                    let distance = distance(*base, seq).unwrap_or_default();
                    let at = tasks.partition_point(|task| task.0 < distance);
                    if tasks.len() == tasks.capacity() {
                        tasks.reserve_exact(1 + tasks.len() / 2);
                    }
                    tasks.insert(at, (distance, slot));
                    return;
                }
            }
            Self::Many(many) => return many.insert(seq, slot),
        }
        let mut many = Box::<Many>::default();
        self.iter().for_each(|(seq, slot)| many.insert(seq, slot));
        many.insert(seq, slot);
        *self = Self::Many(many);
    }

    /// Removes the task of this seq, which must be there.
    pub(super) fn remove(&mut self, seq: u64) {
        match self {
            Self::Few { base, tasks } => {
                let distance = distance(*base, seq);
                let at = tasks.iter().position(|task| Some(task.0) == distance);
                let Some(at) = at else { unreachable!("no task has the seq {seq}") };
                tasks.remove(at);
                if tasks.len() < tasks.capacity() / 4 {
                    tasks.shrink_to(tasks.len() + 1);
                }
            }
            Self::Many(many) => {
                many.remove(seq);
                if many.count <= FEW_AGAIN {
                    self.thin_out();
                }
            }
        }
    }

    pub(super) fn first(&self) -> Option<(u64, Slot)> {
        match self {
            Self::Few { base, tasks } => {
                tasks.first().map(|(distance, slot)| (base + u64::from(*distance), *slot))
            }
            Self::Many(many) => many.first,
        }
    }

    /// The first task whose seq is above this one.
    pub(super) fn after(&self, seq: u64) -> Option<(u64, Slot)> {
        match self {
            Self::Few { .. } => self.iter().find(|task| task.0 > seq),
            Self::Many(many) => many.ranked.next_in_level(0, seq),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few { tasks, .. } => tasks.is_empty(),
            Self::Many(many) => many.count == 0,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Slot)> {
        let (few, many) = match self {
            Self::Few { base, tasks } => (Some((*base, tasks)), None),
            Self::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flat_map(|(base, tasks)| {
            tasks.iter().map(move |(distance, slot)| (base + u64::from(*distance), *slot))
        });
        let many = many.into_iter().flat_map(|many| many.ranked.walk(End::Min, Order::Oldest));
        few.chain(many.map(|((_, seq), slot)| (seq, slot)))
    }

    #[inline(never)]
    fn thin_out(&mut self) {
        let mut few = Self::default();
        self.iter().for_each(|(seq, slot)| few.insert(seq, slot));
        *self = few;
    }
}

impl Many {
    fn insert(&mut self, seq: u64, slot: Slot) {
        self.ranked.insert((0, seq), slot);
        self.count += 1;
        if self.first.is_none_or(|(first, _)| seq < first) {
            self.first = Some((seq, slot));
        }
    }

    fn remove(&mut self, seq: u64) {
        self.ranked.remove((0, seq));
        self.count -= 1;
        if self.first.is_some_and(|(first, _)| first == seq) {
            let first = self.ranked.first(End::Min, Order::Oldest);
            self.first = first.map(|((_, seq), slot)| (seq, slot));
        }
    }
}

/// The distance of a seq from the base, if it can be kept.
fn distance(base: u64, seq: u64) -> Option<u32> {
    seq.checked_sub(base).and_then(|distance| u32::try_from(distance).ok())
}

/// Sees to it that a seq has a distance from the base. Returns whether it has.
fn rebase(base: &mut u64, tasks: &mut [(u32, Slot)], seq: u64) -> bool {
    if tasks.is_empty() {
        *base = seq;
    }
    if distance(*base, seq).is_some() {
        return true;
    }
    let seq_of = |distance: u32| *base + u64::from(distance);
    let first = tasks.first().map_or(seq, |task| seq_of(task.0)).min(seq);
    let last = tasks.last().map_or(seq, |task| seq_of(task.0)).max(seq);
    if distance(first, last).is_none() {
        return false;
    }
    for task in tasks {
        task.0 = distance(first, seq_of(task.0)).unwrap_or_default();
    }
    *base = first;
    true
}
