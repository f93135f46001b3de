//! What the engine keeps of each kind of details: records with their places, by number, and by
//! queue and name. Nothing here knows what a record says.

use std::collections::BTreeMap;
use std::ops::Bound;

use pinpriq_proto::change::Place;
use pinpriq_proto::details::{Detail, DetailRecord};
use pinpriq_proto::task::Bytes;

/// A record, and what is known besides.
pub(crate) trait Kept {
    type Record: DetailRecord;

    /// Its number, its queue, and its name there.
    fn names(&self) -> (u64, Bytes, Bytes);

    fn record(&self) -> &Self::Record;

    /// Where the store keeps its record.
    fn place(&mut self) -> &mut Option<Place>;

    /// Whether it is one of those that [`Records::counted`] counts.
    fn counts(&self) -> bool;
}

/// All details of one kind, as the store sees them. Every operation costs O(log n).
pub(crate) trait Details {
    /// Where the place of a record is kept.
    fn place_of(&mut self, number: u64) -> Option<&mut Option<Place>>;

    /// The detail of this number as it is now.
    fn detail(&self, number: u64) -> Option<Detail>;

    /// Forgets a detail while the engine is restored, and returns the place of its record.
    fn unrestore(&mut self, number: u64) -> Option<Place>;
}

/// All details of one kind. Every operation costs O(log n) unless its comment says otherwise.
#[derive(Debug)]
pub(crate) struct Records<T> {
    known: BTreeMap<u64, T>,
    queues: BTreeMap<Bytes, OfQueue>,
    counted: u64,
}

#[derive(Debug, Default)]
struct OfQueue {
    numbers: BTreeMap<Bytes, u64>,
    counted: u64,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), queues: BTreeMap::new(), counted: 0 }
    }
}

impl<T: Kept> Records<T> {
    /// Adds one, or replaces the one of its number. No other may have its queue and name.
    pub(crate) fn insert(&mut self, kept: T) -> Option<T> {
        let (number, queue, name) = kept.names();
        let former = self.remove(number);
        let of_queue = self.queues.entry(queue).or_default();
        let other = of_queue.numbers.insert(name, number);
        assert!(other.is_none(), "two details have one name");
        of_queue.counted += u64::from(kept.counts());
        self.counted += u64::from(kept.counts());
        self.known.insert(number, kept);
        former
    }

    /// Adds a restored one. After damage the store may have kept two of one name: the later one
    /// counts. Returns the places of those that it replaces.
    pub(crate) fn restore(&mut self, kept: T) -> [Option<Place>; 2] {
        let (_, queue, name) = kept.names();
        let other = self.find(&queue, &name).map(|other| other.names().0);
        let other = other.and_then(|other| self.remove(other));
        [other, self.insert(kept)].map(|gone| gone.and_then(|mut gone| gone.place().take()))
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let kept = self.known.remove(&number)?;
        let (_, queue, name) = kept.names();
        if let Some(of_queue) = self.queues.get_mut(&queue) {
            of_queue.numbers.remove(&name);
            of_queue.counted -= u64::from(kept.counts());
            if of_queue.numbers.is_empty() {
                self.queues.remove(&queue);
            }
        }
        self.counted -= u64::from(kept.counts());
        Some(kept)
    }

    /// Changes one, but not its names.
    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut T)) {
        let Some(kept) = self.known.get_mut(&number) else { return };
        let former = u64::from(kept.counts());
        change(kept);
        let counts = u64::from(kept.counts());
        if counts == former {
            return;
        }
        self.counted = self.counted + counts - former;
        if let Some(of_queue) = self.queues.get_mut(&kept.names().1) {
            of_queue.counted = of_queue.counted + counts - former;
        }
    }

    pub(crate) fn one(&self, number: u64) -> Option<&T> {
        self.known.get(&number)
    }

    /// The one of this number, of which only [`Self::change`] changes whether it counts.
    pub(crate) fn one_mut(&mut self, number: u64) -> Option<&mut T> {
        self.known.get_mut(&number)
    }

    /// The one of this name in a queue.
    pub(crate) fn find(&self, queue: &[u8], name: &[u8]) -> Option<&T> {
        self.known.get(self.queues.get(queue)?.numbers.get(name)?)
    }

    /// Those of a queue from this name on, by name.
    pub(crate) fn of_queue<'r>(
        &'r self,
        queue: &[u8],
        from: Bound<&[u8]>,
    ) -> impl Iterator<Item = &'r T> {
        let of_queue = self.queues.get(queue);
        let numbers = of_queue.map(|it| it.numbers.range::<[u8], _>((from, Bound::Unbounded)));
        numbers.into_iter().flatten().filter_map(|(_, number)| self.known.get(number))
    }

    /// How many there are of a queue.
    pub(crate) fn count_of(&self, queue: &[u8]) -> usize {
        self.queues.get(queue).map_or(0, |of_queue| of_queue.numbers.len())
    }

    /// How many of a queue count.
    pub(crate) fn counted_of(&self, queue: &[u8]) -> u64 {
        self.queues.get(queue).map_or(0, |of_queue| of_queue.counted)
    }

    /// How many count.
    pub(crate) const fn counted(&self) -> u64 {
        self.counted
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.known.values()
    }

    /// All of them, by number, as [`Self::one_mut`] has them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.known.values_mut()
    }
}

impl<T: Kept> Details for Records<T> {
    fn place_of(&mut self, number: u64) -> Option<&mut Option<Place>> {
        self.known.get_mut(&number).map(T::place)
    }

    fn detail(&self, number: u64) -> Option<Detail> {
        self.known.get(&number).map(|kept| kept.record().clone().into())
    }

    fn unrestore(&mut self, number: u64) -> Option<Place> {
        self.remove(number).and_then(|mut kept| kept.place().take())
    }
}

/// Where the names begin that have a prefix and come after another name.
pub(crate) fn start_of<'a>(prefix: &'a [u8], after: Option<&'a [u8]>) -> Bound<&'a [u8]> {
    match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    }
}
