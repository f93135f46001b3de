//! What was published: one payload for all copies that still share it.
//!
//! The copies of a publication have numbers without gaps, and no other task has one of these, so
//! that a copy finds its publication by its number. A copy that was given a payload of its own, and
//! one that is gone, lets go of it; with the last the publication goes too.

use std::collections::BTreeMap;

use crate::change::{Change, Copied, Place, Publication};

/// A publication as the engine keeps it. The fields are explained at [`Publication`].
#[derive(Debug)]
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
    /// A publication from its record, shared by nobody yet.
    pub(crate) fn of(record: Publication, place: Option<Place>) -> Self {
        Self { record, sharers: 0, place }
    }

    /// The change that tells of it and of those of its copies that stand as they were put.
    pub(crate) fn change(&self, copies: Vec<Copied>) -> Change {
        Change::Published(Box::new(self.record.clone()), copies)
    }

    /// What it occupies: what the client handed over.
    pub(crate) fn content_bytes(&self) -> u64 {
        (self.record.payload.len() + self.record.terms.bytes()) as u64
    }
}

impl Publications {
    /// Adds a publication, and returns what was known under its number before.
    pub(crate) fn insert(&mut self, published: Published) -> Option<Published> {
        self.by_first.insert(published.record.first, published)
    }

    /// The publication of this number.
    pub(crate) fn find(&mut self, first: u64) -> Option<&mut Published> {
        self.by_first.get_mut(&first)
    }

    /// The publication whose copy has this number, and its own number.
    pub(crate) fn of_copy(&mut self, number: u64) -> Option<(u64, &mut Published)> {
        let (first, published) = self.by_first.range_mut(..=number).next_back()?;
        (published.record.last >= number).then_some((*first, published))
    }

    /// The same to look at.
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

    /// All publications by number. Costs O(n): for start and checks only.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Published)> {
        self.by_first.iter().map(|(first, published)| (*first, published))
    }
}
