//! The windows of unique tasks, by number, and by queue and key. What they do is in
//! `operations/unique.rs`.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::memory::details::Details;
use pinpriq_proto::change::Place;
use pinpriq_proto::details::Detail;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::unique::WindowRecord;

/// A window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) record: WindowRecord,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
    /// Whether its task is in the queue, unfinished and unique.
    pub(crate) held: bool,
}

/// See the start of this file. Every operation costs O(log n) unless its comment says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    known: BTreeMap<u64, Window>,
    keys: BTreeMap<Bytes, BTreeMap<Bytes, u64>>,
    /// The number of those without a holder.
    outliving: u64,
}

impl Windows {
    /// Adds a window, or replaces the one of its number. No other may have its queue and key.
    pub(crate) fn insert(&mut self, window: Window) -> Option<Window> {
        let number = window.record.number;
        let former = self.remove(number);
        let (queue, key) = (window.record.queue.clone(), window.record.key.clone());
        let other = self.keys.entry(queue).or_default().insert(key, number);
        assert!(other.is_none(), "two windows have one key");
        self.outliving += u64::from(!window.held);
        self.known.insert(number, window);
        former
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Window> {
        let window = self.known.remove(&number)?;
        if let Some(keys) = self.keys.get_mut(&window.record.queue) {
            keys.remove(&window.record.key);
            if keys.is_empty() {
                self.keys.remove(&window.record.queue);
            }
        }
        self.outliving -= u64::from(!window.held);
        Some(window)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Window> {
        self.known.get(&number)
    }

    /// The window of a key in a queue.
    pub(crate) fn find(&self, queue: &[u8], key: &[u8]) -> Option<&Window> {
        self.known.get(self.keys.get(queue)?.get(key)?)
    }

    /// Notes whether the task of a window is there, if it has a window.
    pub(crate) fn hold(&mut self, number: u64, held: bool) {
        let Some(window) = self.known.get_mut(&number) else { return };
        let former = std::mem::replace(&mut window.held, held);
        self.outliving = self.outliving + u64::from(former) - u64::from(held);
    }

    /// The numbers of all windows of a queue.
    pub(crate) fn of_queue(&self, queue: &[u8]) -> Vec<u64> {
        self.keys.get(queue).into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// The windows of a queue whose keys come after this one, by key.
    pub(crate) fn of_queue_after<'w>(
        &'w self,
        queue: &[u8],
        after: &'w [u8],
    ) -> impl Iterator<Item = &'w Window> {
        let keys = self.keys.get(queue).into_iter();
        let later = keys.flat_map(move |keys| {
            keys.range::<[u8], _>((Bound::Excluded(after), Bound::Unbounded))
        });
        later.filter_map(|(_, number)| self.known.get(number))
    }

    /// The number of windows whose task is gone.
    pub(crate) const fn outliving(&self) -> u64 {
        self.outliving
    }

    /// All windows, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Window> {
        self.known.values()
    }
}

impl Details for Windows {
    fn place_of(&mut self, number: u64) -> Option<&mut Option<Place>> {
        self.known.get_mut(&number).map(|window| &mut window.place)
    }

    fn detail(&self, number: u64) -> Option<Detail> {
        self.known.get(&number).map(|window| window.record.clone().into())
    }

    fn unrestore(&mut self, number: u64) -> Option<Place> {
        self.remove(number).and_then(|window| window.place)
    }
}
