//! Chooses the additional commands of fan-out: lanes instead of queues, members, publications.

use pinpriq_proto::command::QueueName;
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::task::{TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::model::{Home, Lane};

use super::{Chooser, LONG_NAME, MEMBERS, TOPICS, known_queue};

impl Chooser<'_> {
    pub(super) fn topic(&mut self) -> &'static [u8] {
        self.dice.pick(&TOPICS)
    }

    pub(super) fn member(&mut self) -> &'static [u8] {
        if self.dice.once_in(200) {
            return &LONG_NAME;
        }
        self.dice.pick(&MEMBERS)
    }

    /// A queue or a lane, usually an existing one.
    pub(super) fn place(&mut self) -> QueueName<'static> {
        let one_in_five = self.dice.below(5);
        if one_in_five < if self.memory.fans_out { 2 } else { 4 } {
            return self.queue().into();
        }
        let homes = self.model.homes.iter().filter(|(place, _)| !self.model.has_ended(place));
        let lanes: Vec<(&Home, &Lane)> =
            homes.filter_map(|(_, home)| Some((home, home.lane.as_ref()?))).collect();
        if lanes.is_empty() || self.dice.once_in(8) {
            return QueueName { name: self.topic(), member: Some(self.dice.pick(&MEMBERS)) };
        }
        let index = self.dice.below(lanes.len() as u64);
        let (home, lane) = lanes[usize::try_from(index).unwrap()];
        QueueName { name: known_queue(&home.name), member: Some(known_member(&lane.name.member)) }
    }

    /// Some queues, or the lanes of a member in some topics.
    pub(super) fn some_queues(&mut self) -> (&'static [&'static [u8]], Option<&'static [u8]>) {
        if self.dice.once_in(60) {
            static MISTAKES: [&[&[u8]]; 2] = [&[], &[&LONG_NAME]];
            return (self.dice.pick(&MISTAKES), None);
        }
        let first = self.place();
        let mut names = vec![first.name];
        for _ in 1..self.dice.pick(&[1, 1, 1, 2, 2, 3]) {
            names.push(if first.member.is_some() { self.topic() } else { self.queue() });
        }
        (Vec::leak(names), first.member)
    }

    pub(super) fn join(&mut self) -> MemberCommand<'static> {
        let lease = if self.dice.once_in(2) { None } else { Some(self.lease()) };
        MemberCommand::Join { topic: self.topic(), member: self.member(), lease }
    }

    pub(super) fn tend(&mut self) -> MemberCommand<'static> {
        let kind = self.kind(MemberCommand::KINDS, |kind| match kind {
            "Join" => 9,
            "Beat" => 3,
            "Leave" => 1,
            _ => 2,
        });
        MemberCommand::of_kind(kind, self)
    }

    /// A lease long enough for something to happen before it ends.
    pub(super) fn lease(&mut self) -> Span {
        if self.dice.once_in(4) { self.span() } else { Span::from_ms(self.dice.pick(&[15, 40])) }
    }

    pub(super) fn publish(&mut self) -> Publish<'static> {
        let deadline = match self.dice.below(5) {
            0..=2 => Deadline::OfLane,
            3 => Deadline::After(self.span()),
            _ => {
                let ms = self.model.now.ms() + self.dice.below(12);
                Deadline::At(Timestamp::from_ms(ms.saturating_sub(2)))
            }
        };
        Publish {
            topic: if self.dice.once_in(100) { &LONG_NAME } else { self.topic() },
            payload: self.bytes(),
            terms: {
                let key = self.key();
                self.with_extras(Terms::of(key, None))
            },
            priority: self.priority(),
            deadline,
        }
    }

    /// A receipt determines its lane, so the member may be left out. It may also be a wrong one.
    pub(super) fn named_by_receipt(&mut self, queue: QueueName<'static>) -> QueueName<'static> {
        let member = match self.dice.below(8) {
            0..=3 => None,
            4 => Some(self.dice.pick(&MEMBERS)),
            _ => queue.member,
        };
        QueueName { member, ..queue }
    }
}

pub(super) fn known_member(name: &[u8]) -> &'static [u8] {
    MEMBERS.into_iter().find(|known| *known == name).unwrap_or(b"unknown")
}

/// Returns the queue or lane of a task.
pub(super) fn place_of(task: &TaskRecord) -> QueueName<'static> {
    let member = task.lane.as_ref().map(|lane| known_member(&lane.member));
    QueueName { name: known_queue(&task.queue), member }
}
