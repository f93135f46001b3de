//! Restores members, lanes and publications from what a store kept.
//!
//! A store may have moved any record behind those that refer to it. So a lane can be named before
//! its record is seen, and a copy before its publication. Both are put together at the start.

use crate::engine::Engine;
use crate::fanout::members::Member;
use crate::fanout::membership::{lane_bytes, member_bytes};
use crate::fanout::publications::Published;
use crate::memory::deadlines::Due;
use crate::memory::queues::Lane;
use crate::memory::slots::{QueueSlot, Slot};
use pinpriq_proto::change::{Copied, LaneRecord, MemberRecord, Place, Publication};
use pinpriq_proto::task::LaneName;
use pinpriq_proto::time::Timestamp;

impl Engine {
    pub(crate) fn restore_publication(
        &mut self,
        record: Publication,
        copies: &[Copied],
        place: Option<Place>,
    ) {
        self.issued.raise(record.last);
        for copied in copies {
            self.restore_task(record.copy(*copied), None);
        }
        let former = self.publications.insert(Published::of(record, place));
        self.report.give_up(former.and_then(|former| former.place));
    }

    pub(crate) fn restore_lane(&mut self, record: LaneRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        let slot = self.restored_lane(record.number);
        self.queues.pause(slot, record.paused);
        self.queues.set_settings(slot, record.settings.clone());
        let queue = &mut self.queues[slot];
        queue.name = record.topic;
        if let Some(lane) = &mut queue.lane {
            lane.incarnation = record.member;
        }
        let former = std::mem::replace(&mut queue.place, place);
        self.report.give_up(former);
    }

    pub(crate) fn restore_lane_gone(&mut self, number: u64) {
        if let Some(slot) = self.queues.find_lane(number) {
            // Its tasks belong to an old epoch, whichever lane gets the slot next.
            let queue = self.queues.remove_lane(slot);
            self.report.give_up(queue.place);
        }
    }

    pub(crate) fn restore_member(&mut self, record: MemberRecord, place: Option<Place>) {
        self.issued.raise(record.incarnation);
        let member = Member {
            name: record.name,
            lease: record.lease,
            lease_until: Timestamp::ZERO,
            armed: None,
            has_ended: record.ended,
            lanes: std::collections::BTreeMap::new(),
            place,
        };
        let former = self.members.registered.insert(record.incarnation, member);
        self.report.give_up(former.and_then(|former| former.place));
    }

    /// Links members, topics and lanes.
    ///
    /// # Panics
    /// If a lane has no registered member. It could never be cleaned.
    pub(crate) fn link_lanes(&mut self) {
        for slot in self.queues.lane_slots() {
            let queue = &mut self.queues[slot];
            let topic = queue.name.clone();
            let Some(lane) = &mut queue.lane else { unreachable!("a lane at {slot:?}") };
            let (number, incarnation) = (lane.name.number, lane.incarnation);
            let Some(member) = self.members.registered.get(&incarnation) else {
                unreachable!("lane {number} has no registered member");
            };
            lane.name.member = member.name.clone();
            self.bytes += lane_bytes(&topic);
            self.members.add_lane(incarnation, &topic, number, slot);
        }
    }

    /// Gives a restored copy the terms and payload that it shares with others.
    pub(crate) fn share_restored(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        if !task.shares() {
            return;
        }
        let number = task.number();
        let Some((_, published)) = self.publications.of_copy(number) else {
            unreachable!("task {number} is a copy of nothing")
        };
        self.tasks.share(slot, &published.record);
    }

    /// Removes publications that no copy shares.
    pub(crate) fn drop_unshared(&mut self) {
        let unshared = self.publications.iter().filter(|(_, published)| published.sharers == 0);
        let unshared: Vec<u64> = unshared.map(|(first, _)| first).collect();
        for first in unshared {
            let published = self.publications.remove(first);
            self.report.give_up(published.place);
        }
        let shared = self.publications.iter();
        self.bytes += shared.map(|(_, published)| published.content_bytes()).sum::<u64>();
    }

    /// Gives every member that has not ended its whole lease from now on, and returns when each
    /// lease ends. No member could show a sign of life while the server was down.
    pub(crate) fn revive_members(&mut self) -> Vec<(Timestamp, Due)> {
        let now = self.now;
        let mut due = Vec::new();
        for (&incarnation, member) in &mut self.members.registered {
            self.bytes += member_bytes(&member.name);
            if member.has_ended {
                self.members.ended.insert(incarnation);
                continue;
            }
            member.lease_until = now.after(member.lease);
            member.armed = Some(member.lease_until);
            due.push((member.lease_until, Due::Member(incarnation)));
            let former = self.members.alive.insert(member.name.clone(), incarnation);
            assert!(former.is_none(), "two members of one name are alive");
        }
        due
    }

    /// Returns the lane of this number. If its record has not been seen yet, it has no topic and no
    /// member.
    pub(crate) fn restored_lane(&mut self, number: u64) -> QueueSlot {
        if let Some(slot) = self.queues.find_lane(number) {
            return slot;
        }
        let name = LaneName::numbered(number);
        self.queues.make_lane([].into(), Lane { name, incarnation: 0, missed: 0 })
    }
}
