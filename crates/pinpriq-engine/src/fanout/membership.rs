//! Being a member: joining a topic, showing signs of life, being listed.
//!
//! A member lives by its lease, whatever happens to connections. Joining, beating, taking and
//! acknowledging are signs of life. Looking at a lane or changing its settings is not. How a member
//! ends is in `farewell.rs`.

use crate::engine::{Answered, Engine};
use crate::fanout::members::Member;
use crate::memory::deadlines::Due;
use crate::memory::queues::Lane;
use crate::memory::slots::QueueSlot;
use crate::operations::arguments::{check_positive, quoted};
use pinpriq_proto::change::Change;
use pinpriq_proto::fanout::{LEASE_DEFAULT, MemberCommand, MemberFigures};
use pinpriq_proto::limits::{LANE_OVERHEAD_BYTES, MEMBER_OVERHEAD_BYTES, STEPS_PER_TIMEOUT};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, LaneName, StateKind};
use pinpriq_proto::time::Span;

impl Engine {
    pub(crate) fn tend(&mut self, command: MemberCommand<'_>) -> Answered {
        match command {
            MemberCommand::Join { topic, member, lease } => self.join(topic, member, lease),
            MemberCommand::Beat { member, lease } => self.beat(member, lease),
            MemberCommand::LeaveTopic { topic, member } => {
                Ok(Some(self.leave_topic(topic, member)))
            }
            MemberCommand::Leave(member) => Ok(Some(self.leave_all(member))),
            MemberCommand::List(topic) => Ok(Some(self.list_members(topic))),
        }
    }

    fn join(&mut self, topic: &[u8], member: &[u8], lease: Option<Span>) -> Answered {
        self.check_lease(lease)?;
        let alive = self.find_member(member);
        let lanes = alive.map(|incarnation| &self.members.registered[&incarnation].lanes);
        let is_new = lanes.is_none_or(|lanes| !lanes.contains_key(topic));
        if is_new {
            self.check_lanes(topic)?;
            let registration = if alive.is_none() { member_bytes(member) } else { 0 };
            self.check_room(lane_bytes(topic) + registration)?;
        }
        let incarnation = match alive {
            Some(incarnation) => {
                self.renew(incarnation, lease);
                incarnation
            }
            None => self.register(member.into(), lease.unwrap_or(LEASE_DEFAULT)),
        };
        if is_new {
            self.make_lane(&topic.into(), incarnation);
        }
        Ok(Some(Reply::Joined(incarnation)))
    }

    /// Refuses one more lane in a topic that has as many as it may. Those of members that have
    /// ended count until they are cleaned, which is done now.
    fn check_lanes(&mut self, topic: &[u8]) -> Result<(), Refusal> {
        let most = self.limits.topic_lanes_max;
        if self.members.lanes_in(topic) >= most {
            self.clean_lanes(STEPS_PER_TIMEOUT);
        }
        let lanes = self.members.lanes_in(topic);
        if lanes < most {
            return Ok(());
        }
        let topic = quoted(topic);
        let sentence = format!("the topic {topic} has {lanes} of at most {most} lanes");
        Err(Refusal::new(RefusalKind::Busy, sentence))
    }

    fn beat(&mut self, member: &[u8], lease: Option<Span>) -> Answered {
        self.check_lease(lease)?;
        let Some(incarnation) = self.find_member(member) else {
            return Err(Refusal::new(
                RefusalKind::NotFound,
                format!("there is no member {}: join again", quoted(member)),
            ));
        };
        let known = self.members.member(incarnation).lease;
        if lease.is_some_and(|lease| lease != known) {
            self.check_new_lease()?;
        }
        self.renew(incarnation, lease);
        Ok(Some(Reply::Done))
    }

    fn list_members(&self, topic: &[u8]) -> Reply {
        let lanes = self.members.topics.get(topic).into_iter().flat_map(|lanes| lanes.values());
        let figures = lanes.filter_map(|slot| {
            let queue = &self.queues[*slot];
            let lane = queue.lane.as_ref()?;
            let member = &self.members.registered[&lane.incarnation];
            let is_alive = !member.has_ended && member.lease_until > self.now;
            is_alive.then(|| MemberFigures {
                member: member.name.clone(),
                incarnation: lane.incarnation,
                lease_until: member.lease_until,
                ready: queue.counters.count(StateKind::Ready),
                taken: queue.counters.count(StateKind::Taken),
            })
        });
        let mut members: Vec<MemberFigures> = figures.collect();
        members.sort_unstable_by(|one, other| one.member.cmp(&other.member));
        Reply::Members(members)
    }

    /// Records a sign of life of the member whose lane this is, if it is a lane.
    #[inline]
    pub(crate) fn note_life(&mut self, queue: QueueSlot) {
        if let Some(lane) = &self.queues[queue].lane {
            let incarnation = lane.incarnation;
            if self.undo.is_some() {
                self.note_lease(incarnation);
            }
            self.renew(incarnation, None);
        }
    }

    /// Handles the moment under which a member is in the index of deadlines.
    pub(crate) fn end_or_rearm_member(&mut self, incarnation: u64) {
        let member = self.members.member(incarnation);
        let armed = member.armed.take();
        // A lease that was extended gets a new place among what is due, even if it is over too.
        if armed == Some(member.lease_until) {
            self.end_member(incarnation);
        } else {
            self.arm_member(incarnation);
        }
    }

    /// Renews the whole lease of a member, or gives it another one.
    fn renew(&mut self, incarnation: u64, lease: Option<Span>) {
        let now = self.now;
        let member = self.members.member(incarnation);
        let has_changed = lease.is_some_and(|lease| lease != member.lease);
        member.lease = lease.unwrap_or(member.lease);
        member.lease_until = now.after(member.lease);
        if member.armed.is_some_and(|armed| armed > member.lease_until) {
            self.arm_member(incarnation);
        }
        if has_changed {
            self.report_member(incarnation);
        }
    }

    fn register(&mut self, name: Bytes, lease: Span) -> u64 {
        let incarnation = self.issued.next();
        self.bytes += member_bytes(&name);
        let member = Member {
            name: name.clone(),
            lease,
            lease_until: self.now.after(lease),
            armed: None,
            has_ended: false,
            lanes: std::collections::BTreeMap::new(),
            place: None,
        };
        self.members.registered.insert(incarnation, member);
        self.members.alive.insert(name, incarnation);
        self.arm_member(incarnation);
        self.report_member(incarnation);
        incarnation
    }

    fn make_lane(&mut self, topic: &Bytes, incarnation: u64) {
        let number = self.issued.next();
        let member = self.members.member(incarnation).name.clone();
        self.bytes += lane_bytes(topic);
        let lane = Lane { name: LaneName { number, member }, incarnation, missed: 0 };
        let slot = self.queues.make_lane(topic.clone(), lane);
        self.members.add_lane(incarnation, topic, number, slot);
        self.report.add(self.queues[slot].record());
    }

    /// Adds a member to the index of deadlines under the end of its lease.
    pub(crate) fn arm_member(&mut self, incarnation: u64) {
        let due = Due::Member(incarnation);
        let member = self.members.member(incarnation);
        let former = member.armed.replace(member.lease_until);
        self.deadlines.insert(member.lease_until, due);
        if let Some(former) = former {
            self.deadlines.remove(former, due);
        }
    }

    /// Reports a member to the store.
    pub(crate) fn report_member(&mut self, incarnation: u64) {
        let record = self.members.member(incarnation).record(incarnation);
        self.report.add(Change::Member(Box::new(record)));
    }

    pub(crate) fn check_lease(&self, lease: Option<Span>) -> Result<(), Refusal> {
        check_positive("the lease", lease)?;
        self.moment("the lease", lease.unwrap_or(Span::ZERO)).map(drop)
    }
}

/// What a lane in this topic occupies without its tasks.
pub(crate) const fn lane_bytes(topic: &[u8]) -> u64 {
    LANE_OVERHEAD_BYTES + topic.len() as u64
}

/// What a member of this name occupies without its lanes.
pub(crate) const fn member_bytes(name: &[u8]) -> u64 {
    MEMBER_OVERHEAD_BYTES + name.len() as u64
}
