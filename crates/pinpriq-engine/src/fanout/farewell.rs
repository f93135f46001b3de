//! How members and lanes end.
//!
//! A member that left, or whose lease ran out, is dead at once: nothing more is published to it,
//! and its name is free. After that its lanes in every topic are cleaned, a bounded number of steps
//! at a time. Its registration is removed last, so after a crash at any point the registration
//! shows what is left to clean. Nothing here finds a lane by its name: lanes and members have
//! numbers that are never used twice.

use crate::engine::Engine;
use crate::fanout::membership::{lane_bytes, member_bytes};
use crate::memory::consumers::{ConsumerId, TakerId};
use crate::memory::deadlines::Due;
use crate::memory::slots::QueueSlot;
use crate::memory::turns::Rules;
use crate::operations::find::named;
use pinpriq_proto::change::Change;
use pinpriq_proto::command::QueueName;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::Paused;

impl Engine {
    /// Ends the lane of a member in one topic, and returns how many there were.
    pub(crate) fn leave_topic(&mut self, topic: &[u8], member: &[u8]) -> Reply {
        let Ok(slot) = self.find_lane(topic, member) else { return Reply::Count(0) };
        let mut steps = usize::MAX;
        self.remove_lane(slot, &mut steps);
        Reply::Count(1)
    }

    /// Ends a member, and returns how many lanes it had.
    pub(crate) fn leave_all(&mut self, member: &[u8]) -> Reply {
        let Some(incarnation) = self.find_member(member) else { return Reply::Count(0) };
        let lanes = self.members.registered[&incarnation].lanes.len();
        self.end_member(incarnation);
        Reply::Count(lanes as u64)
    }

    /// Marks a member as dead. Its lanes are cleaned later.
    pub(crate) fn end_member(&mut self, incarnation: u64) {
        let member = self.members.member(incarnation);
        member.has_ended = true;
        let (name, armed) = (member.name.clone(), member.armed.take());
        self.members.alive.remove(&name);
        self.members.ended.insert(incarnation);
        if let Some(undo) = &mut self.undo {
            undo.note_end(incarnation);
        }
        if let Some(at) = armed {
            self.deadlines.remove(at, Due::Member(incarnation));
        }
        self.report_member(incarnation);
    }

    /// Cleans lanes of members that have ended, in the order in which they were registered.
    pub(crate) fn clean_lanes(&mut self, mut steps: usize) {
        while steps > 0 {
            let Some(&incarnation) = self.members.ended.first() else { return };
            let lane = self.members.member(incarnation).lanes.values().next().copied();
            match lane {
                Some(lane) => self.remove_lane(lane, &mut steps),
                None => self.unregister(incarnation),
            }
            steps = steps.saturating_sub(1);
        }
    }

    /// The last step of cleaning: removes the registration, which is all that is left of the
    /// member.
    fn unregister(&mut self, incarnation: u64) {
        self.members.ended.remove(&incarnation);
        if let Some(member) = self.members.registered.remove(&incarnation) {
            assert!(member.lanes.is_empty(), "a registration goes after all lanes");
            self.bytes -= member_bytes(&member.name);
            self.report.add(Change::MemberGone(incarnation));
            self.report.give_up(member.place);
        }
    }

    /// Ends the waits of the consumers of a lane, then removes the lane with its tasks. Each
    /// consumer and each task is a step. When no steps are left, the rest of the lane stays for the
    /// next time.
    fn remove_lane(&mut self, slot: QueueSlot, steps: &mut usize) {
        while let Some(consumer) = self.any_consumer(slot) {
            if *steps == 0 {
                return;
            }
            *steps -= 1;
            match consumer {
                ConsumerId::Taker(taker) => self.send_away(taker, slot),
                ConsumerId::Subscriber(client) => {
                    self.end_subscription(client, slot);
                    self.consumers.tidy(client);
                }
                ConsumerId::Recaller => unreachable!("{slot:?} has it in line"),
            }
        }
        self.discard(slot);
        self.set_rules(slot, Rules::default());
        self.leave_limits(slot);
        self.arm_gate(slot, None);
        self.pause(slot, Paused::default());
        let queue = self.queues.remove_lane(slot);
        let Some(lane) = queue.lane else { unreachable!("a lane at {slot:?}") };
        self.bytes -= lane_bytes(&queue.name) + queue.settings.bytes();
        self.members.remove_lane(lane.incarnation, &queue.name, lane.name.number);
        self.report.add(Change::LaneGone(lane.name.number));
        self.report.give_up(queue.place);
    }

    fn any_consumer(&self, slot: QueueSlot) -> Option<ConsumerId> {
        let queue = &self.queues[slot];
        let subscriber = queue.subscribers.first().map(|client| ConsumerId::Subscriber(*client));
        let mut in_line = queue.waiting.any.values().chain(queue.waiting.narrow.values());
        subscriber.or_else(|| in_line.next().copied())
    }

    fn send_away(&mut self, taker: TakerId, slot: QueueSlot) {
        let queue = &self.queues[slot];
        let member = queue.lane_name().map(|lane| &*lane.member);
        let name = named(QueueName { name: &queue.name, member });
        let refusal = Refusal::new(RefusalKind::NotFound, format!("{name} has ended"));
        if let Some(taker) = self.remove_taker(taker) {
            self.reply(taker.client, taker.request, Reply::Refused(refusal));
        }
    }
}
