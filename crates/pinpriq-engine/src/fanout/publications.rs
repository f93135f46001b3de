//! The published tasks: one payload for all copies that still share it.
//!
//! The copies of a publication have numbers without gaps, and no other task has one of these
//! numbers. So a copy finds its publication by its own number. A copy stops sharing when it gets a
//! payload of its own or ends. When the last copy stops, the publication is removed.

use std::collections::BTreeMap;

use pinpriq_proto::change::{Change, Copied, Place, Publication};

/// A publication as the engine keeps it. The fields are explained at [`Publication`].
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) record: Publication,
    /// The number of copies that share it.
    pub(crate) sharers: u64,
    /// Where the store keeps its newest record.
    pub(crate) place: Option<Place>,
}

/// All publications of a shard. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Publications {
    by_first: BTreeMap<u64, Published>,
}

impl Published {
    /// Creates a publication from its record. No copy shares it yet.
    pub(crate) fn of(record: Publication, place: Option<Place>) -> Self {
        Self { record, sharers: 0, place }
    }

    /// The change that reports it, with those of its copies that are still as they were put.
    pub(crate) fn change(&self, copies: Vec<Copied>) -> Change {
        Change::Published(Box::new(self.record.clone()), copies)
    }

    /// The number of bytes it occupies: what the client passed in.
    pub(crate) fn content_bytes(&self) -> u64 {
        (self.record.payload.len() + self.record.terms.bytes()) as u64
    }
}

impl Publications {
    /// Adds a publication, and returns the one that had its number before.
    pub(crate) fn insert(&mut self, published: Published) -> Option<Published> {
        self.by_first.insert(published.record.first, published)
    }

    /// Returns the publication of this number.
    pub(crate) fn find(&mut self, first: u64) -> Option<&mut Published> {
        self.by_first.get_mut(&first)
    }

    /// Returns a copy of the publication of this number, if there is one.
    pub(crate) fn copy(&self, first: u64) -> Option<Published> {
        self.by_first.get(&first).cloned()
    }

    /// Makes the publication of this number what it was.
    pub(crate) fn put_back(&mut self, first: u64, former: Option<Published>) {
        match former {
            Some(former) => self.by_first.insert(first, former),
            None => self.by_first.remove(&first),
        };
    }

    /// Returns the publication whose copy has this number, and its own number.
    pub(crate) fn of_copy(&mut self, number: u64) -> Option<(u64, &mut Published)> {
        let (first, published) = self.by_first.range_mut(..=number).next_back()?;
        (published.record.last >= number).then_some((*first, published))
    }

    /// Like [`Self::of_copy`], but read-only.
    pub(crate) fn shared_by(&self, number: u64) -> Option<(u64, &Published)> {
        let (first, published) = self.by_first.range(..=number).next_back()?;
        (published.record.last >= number).then_some((*first, published))
    }

    /// Removes a publication that must be there.
    pub(crate) fn remove(&mut self, first: u64) -> Published {
        match self.by_first.remove(&first) {
            Some(published) => published,
            None => unreachable!("no publication {first}"),
        }
    }

    /// Iterates over all publications by number. Costs O(n): for start and checks only.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Published)> {
        self.by_first.iter().map(|(first, published)| (*first, published))
    }
}
