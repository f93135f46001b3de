//! The rules of their own that shares have, as the store keeps them: by number, and by queue and
//! share. What turns read of them is in [`crate::memory::queues::Queue::shares`].

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::memory::details::Details;
use pinpriq_proto::change::Place;
use pinpriq_proto::details::Detail;
use pinpriq_proto::shares::ShareRecord;
use pinpriq_proto::task::Bytes;

/// The rules of one share.
#[derive(Debug)]
pub(crate) struct OwnShare {
    pub(crate) record: ShareRecord,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
}

/// See the start of this file. Every operation costs O(log n) unless its comment says otherwise.
#[derive(Debug, Default)]
pub(crate) struct OwnShares {
    known: BTreeMap<u64, OwnShare>,
    queues: BTreeMap<Bytes, OfQueue>,
}

#[derive(Debug, Default)]
struct OfQueue {
    numbers: BTreeMap<Bytes, u64>,
    /// How many of them can hold tasks back.
    holding: usize,
}

impl OwnShares {
    /// Adds rules, or replaces those of their number. No others may be of their queue and share.
    pub(crate) fn insert(&mut self, own: OwnShare) -> Option<OwnShare> {
        let ShareRecord { number, ref queue, ref share, rules } = own.record;
        let former = self.remove(number);
        let of_queue = self.queues.entry(queue.clone()).or_default();
        let other = of_queue.numbers.insert(share.clone(), number);
        assert!(other.is_none(), "one share has rules twice");
        of_queue.holding += usize::from(rules.may_hold_back());
        self.known.insert(number, own);
        former
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<OwnShare> {
        let own = self.known.remove(&number)?;
        let ShareRecord { ref queue, ref share, rules, .. } = own.record;
        if let Some(of_queue) = self.queues.get_mut(queue) {
            of_queue.numbers.remove(share);
            of_queue.holding -= usize::from(rules.may_hold_back());
            if of_queue.numbers.is_empty() {
                self.queues.remove(queue);
            }
        }
        Some(own)
    }

    /// The rules of a share of a queue.
    pub(crate) fn find(&self, queue: &[u8], share: &[u8]) -> Option<&OwnShare> {
        self.known.get(self.queues.get(queue)?.numbers.get(share)?)
    }

    /// How many shares of a queue have rules.
    pub(crate) fn count(&self, queue: &[u8]) -> usize {
        self.queues.get(queue).map_or(0, |of_queue| of_queue.numbers.len())
    }

    /// How many of them can hold tasks back.
    pub(crate) fn holding(&self, queue: &[u8]) -> usize {
        self.queues.get(queue).map_or(0, |of_queue| of_queue.holding)
    }

    /// The records of a queue whose shares come after this one, by share.
    pub(crate) fn of_queue_after<'s>(
        &'s self,
        queue: &[u8],
        after: Option<&'s [u8]>,
    ) -> impl Iterator<Item = &'s ShareRecord> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let numbers = self.queues.get(queue).into_iter();
        let numbers =
            numbers.flat_map(move |it| it.numbers.range::<[u8], _>((from, Bound::Unbounded)));
        numbers.filter_map(|(_, number)| Some(&self.known.get(number)?.record))
    }

    /// All rules, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OwnShare> {
        self.known.values()
    }
}

impl Details for OwnShares {
    fn place_of(&mut self, number: u64) -> Option<&mut Option<Place>> {
        self.known.get_mut(&number).map(|own| &mut own.place)
    }

    fn detail(&self, number: u64) -> Option<Detail> {
        self.known.get(&number).map(|own| own.record.clone().into())
    }

    fn unrestore(&mut self, number: u64) -> Option<Place> {
        self.remove(number).and_then(|own| own.place)
    }
}
