//! The registered members, and the lanes of each topic.
//!
//! A member that has ended keeps its registration until its last lane is cleaned. Its name is free
//! again at once, for another incarnation. So there can be lanes of different incarnations under
//! one name, distinguished by their numbers. Joining is in `membership.rs`, ending in
//! `farewell.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};

use crate::memory::slots::QueueSlot;
use pinpriq_proto::change::{MemberRecord, Place};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::{Span, Timestamp};

/// A registered member.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Bytes,
    pub(crate) lease: Span,
    /// When its lease runs out without a sign of life.
    pub(crate) lease_until: Timestamp,
    /// The moment under which it is in the index of deadlines. This is `lease_until` or earlier, so
    /// that a sign of life need not change the index. `None` for a member that has ended.
    pub(crate) armed: Option<Timestamp>,
    pub(crate) has_ended: bool,
    /// Its lanes by topic.
    pub(crate) lanes: BTreeMap<Bytes, QueueSlot>,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
}

/// All members and topics of a shard. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// By incarnation.
    pub(crate) registered: BTreeMap<u64, Member>,
    /// The incarnations of the members that are alive.
    pub(crate) alive: BTreeMap<Bytes, u64>,
    /// The incarnations of the members that have ended, to be cleaned in this order.
    pub(crate) ended: BTreeSet<u64>,
    /// The lanes of each topic by number, including those of ended members.
    pub(crate) topics: BTreeMap<Bytes, BTreeMap<u64, QueueSlot>>,
}

impl Member {
    /// The member as the store keeps it.
    pub(crate) fn record(&self, incarnation: u64) -> MemberRecord {
        MemberRecord {
            incarnation,
            name: self.name.clone(),
            lease: self.lease,
            ended: self.has_ended,
        }
    }
}

impl Members {
    /// Returns the member of this incarnation, which must be registered.
    pub(crate) fn member(&mut self, incarnation: u64) -> &mut Member {
        match self.registered.get_mut(&incarnation) {
            Some(member) => member,
            None => unreachable!("no member of incarnation {incarnation}"),
        }
    }

    /// Records a new lane.
    pub(crate) fn add_lane(
        &mut self,
        incarnation: u64,
        topic: &Bytes,
        number: u64,
        lane: QueueSlot,
    ) {
        let former = self.member(incarnation).lanes.insert(topic.clone(), lane);
        assert!(former.is_none(), "incarnation {incarnation} joined a topic twice");
        self.topics.entry(topic.clone()).or_default().insert(number, lane);
    }

    /// Returns the number of lanes of a topic, including those of ended members.
    pub(crate) fn lanes_in(&self, topic: &[u8]) -> usize {
        self.topics.get(topic).map_or(0, BTreeMap::len)
    }

    /// Returns the lanes of the topics that match, including those of ended members. Costs
    /// O(log n), and a step for each.
    pub(crate) fn lanes_matching<'s>(
        &'s self,
        pattern: NamePattern<'s>,
    ) -> impl Iterator<Item = QueueSlot> {
        let topics = self.topics.range::<[u8], _>((Included(pattern.bytes), Unbounded));
        let matching = topics.take_while(move |(topic, _)| pattern.matches(topic));
        matching.flat_map(|(_, lanes)| lanes.values().copied())
    }

    /// Forgets a lane.
    pub(crate) fn remove_lane(&mut self, incarnation: u64, topic: &Bytes, number: u64) {
        self.member(incarnation).lanes.remove(topic);
        if let Some(lanes) = self.topics.get_mut(topic) {
            lanes.remove(&number);
            if lanes.is_empty() {
                self.topics.remove(topic);
            }
        }
    }
}
