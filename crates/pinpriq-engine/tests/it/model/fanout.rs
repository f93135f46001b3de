//! Fan-out: members, their lanes, and publishing.
//!
//! Members are one list, and the lanes of a member are the queues that carry its incarnation. One
//! that has ended stays in the list with its lanes until the next timeout, out of reach for
//! clients.

use pinpriq_engine::command::QueueName;
use pinpriq_engine::fanout::{Deadline, LEASE_DEFAULT, MemberCommand, MemberFigures, Publish};
use pinpriq_engine::limits::{
    LANE_OVERHEAD_BYTES, MEMBER_OVERHEAD_BYTES, NAME_BYTES_MAX, TASK_OVERHEAD_BYTES,
};
use pinpriq_engine::reply::{Refusal, RefusalKind, Reply};
use pinpriq_engine::task::{Bytes, LaneName, State, StateKind, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};

use super::{Answer, Exit, Home, Model, Queue, fits, home_of, is_in};

/// Who is registered.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) incarnation: u64,
    pub(crate) name: Bytes,
    lease: Span,
    pub(crate) lease_until: Timestamp,
    /// Ends of the lease that a later sign of life has put off. Somebody may still look then.
    pub(crate) put_off: Vec<Timestamp>,
    pub(crate) ended: bool,
}

impl Member {
    pub(super) fn show_life(&mut self, now: Timestamp, lease: Option<Span>) {
        self.put_off.push(self.lease_until);
        self.lease = lease.unwrap_or(self.lease);
        self.lease_until = now.after(self.lease);
    }
}

impl Model {
    /// The queue or lane of that name. A lane must be there.
    pub(super) fn home(&self, name: QueueName<'_>) -> Result<Home, RefusalKind> {
        self.locate(name).ok_or(RefusalKind::NotFound)
    }

    pub(crate) fn locate(&self, name: QueueName<'_>) -> Option<Home> {
        let Some(member) = name.member else { return Some(Home::of_queue(name.name)) };
        let incarnation = self.alive(member)?.incarnation;
        let lane = self.lanes_of(incarnation).into_iter().find(|home| home.name == name.name);
        lane.cloned()
    }

    pub(crate) fn alive(&self, name: &[u8]) -> Option<&Member> {
        self.members.iter().find(|member| *member.name == *name && !member.ended)
    }

    fn member(&mut self, incarnation: u64) -> &mut Member {
        let known = self.members.iter_mut().find(|member| member.incarnation == incarnation);
        known.expect("a member that has a lane is registered")
    }

    /// The lanes of a member, in the order of their topics.
    fn lanes_of(&self, incarnation: u64) -> Vec<&Home> {
        let own = self.queues.iter().filter(|(_, queue)| queue.member == Some(incarnation));
        own.map(|(home, _)| home).collect()
    }

    /// Whether this is the lane of somebody who lives.
    pub(crate) fn is_lane(&self, home: &Home) -> bool {
        let incarnation = self.queues.get(home).and_then(|queue| queue.member);
        self.members.iter().any(|member| Some(member.incarnation) == incarnation && !member.ended)
    }

    /// Whether anybody can still reach a task.
    pub(crate) fn is_live(&self, task: &TaskRecord) -> bool {
        task.lane.is_none() || self.is_lane(&home_of(task))
    }

    pub(super) fn note_life(&mut self, home: &Home) {
        let now = self.now;
        if let Some(incarnation) = self.queues.get(home).and_then(|queue| queue.member) {
            self.member(incarnation).show_life(now, None);
        }
    }

    pub(super) fn tend(&mut self, command: &MemberCommand<'_>) -> Answer {
        match *command {
            MemberCommand::Join { topic, member, lease } => self.join(topic, member, lease),
            MemberCommand::Beat { member, lease } => {
                self.span_fits(lease, false)?;
                let incarnation = self.alive(member).ok_or(RefusalKind::NotFound)?.incarnation;
                let now = self.now;
                self.member(incarnation).show_life(now, lease);
                Ok(Some(Reply::Done))
            }
            MemberCommand::LeaveTopic { topic, member } => {
                let lane = self.locate(QueueName { name: topic, member: Some(member) });
                let Some(lane) = lane else { return Ok(Some(Reply::Count(0))) };
                self.end_lane(&lane);
                Ok(Some(Reply::Count(1)))
            }
            MemberCommand::Leave(member) => {
                let Some(known) = self.alive(member) else { return Ok(Some(Reply::Count(0))) };
                let incarnation = known.incarnation;
                let lanes = self.lanes_of(incarnation).len();
                self.end_member(incarnation);
                Ok(Some(Reply::Count(lanes as u64)))
            }
            MemberCommand::List(topic) => Ok(Some(Reply::Members(self.list(topic)))),
        }
    }

    fn join(&mut self, topic: &[u8], name: &[u8], lease: Option<Span>) -> Answer {
        self.span_fits(lease, false)?;
        if self.locate(QueueName { name: topic, member: Some(name) }).is_none() {
            let lane = LANE_OVERHEAD_BYTES + topic.len() as u64;
            let member = MEMBER_OVERHEAD_BYTES + name.len() as u64;
            self.has_room(if self.alive(name).is_some() { lane } else { lane + member })?;
        }
        let now = self.now;
        let incarnation = if let Some(known) = self.alive(name) {
            let incarnation = known.incarnation;
            self.member(incarnation).show_life(now, lease);
            incarnation
        } else {
            self.last_number += 1;
            let (incarnation, lease) = (self.last_number, lease.unwrap_or(LEASE_DEFAULT));
            let (lease_until, put_off) = (now.after(lease), Vec::new());
            let name: Bytes = name.into();
            let member = Member { incarnation, name, lease, lease_until, put_off, ended: false };
            self.members.push(member);
            incarnation
        };
        if self.locate(QueueName { name: topic, member: Some(name) }).is_none() {
            self.last_number += 1;
            let home = Home { name: topic.to_vec(), lane: Some(self.last_number) };
            let member = Some(incarnation);
            self.queues.insert(home, Queue { created: true, member, ..Queue::default() });
        }
        Ok(Some(Reply::Joined(incarnation)))
    }

    fn list(&self, topic: &[u8]) -> Vec<MemberFigures> {
        let mut figures = Vec::new();
        for member in self.members.iter().filter(|member| !member.ended) {
            let lanes = self.lanes_of(member.incarnation).into_iter();
            for lane in lanes.filter(|home| home.name == topic) {
                let count = |kind| {
                    let own = self.tasks.iter().filter(|task| is_in(task, lane));
                    own.filter(|task| task.state.kind() == kind).count() as u64
                };
                figures.push(MemberFigures {
                    member: member.name.clone(),
                    incarnation: member.incarnation,
                    lease_until: member.lease_until,
                    ready: count(StateKind::Ready),
                    taken: count(StateKind::Taken),
                });
            }
        }
        figures.sort_by(|one, other| one.member.cmp(&other.member));
        figures
    }

    pub(super) fn publish(&mut self, publish: &Publish<'_>) -> Answer {
        fits(publish.key.is_none_or(|key| key.len() <= NAME_BYTES_MAX))?;
        self.payload_fits(Some(publish.payload))?;
        let deadline = match publish.deadline {
            Deadline::OfLane => None,
            Deadline::At(at) => Some(at),
            Deadline::After(ttl) => {
                self.ttl_fits(Some(ttl), Span::ZERO)?;
                Some(self.now.after(ttl))
            }
        };
        if deadline.is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::Count(0)));
        }
        let mut lanes: Vec<Home> =
            self.queues.keys().filter(|home| home.name == publish.topic).cloned().collect();
        lanes.retain(|home| self.is_lane(home));
        lanes.sort_by_key(|home| home.lane);
        let (shut, lanes): (Vec<Home>, Vec<Home>) =
            lanes.into_iter().partition(|home| self.is_full(home) || self.paused(home).input);
        let content = publish.payload.len() + publish.key.map_or(0, <[u8]>::len);
        if !lanes.is_empty() {
            self.has_room(content as u64 + TASK_OVERHEAD_BYTES * lanes.len() as u64)?;
        }
        for home in shut {
            self.queues.get_mut(&home).expect("it is a lane").missed += 1;
        }
        let first = self.last_number + 1;
        let numbers: Vec<u64> = (first..).take(lanes.len()).collect();
        self.kept.publish(first, &numbers, content);
        for home in lanes {
            self.last_number += 1;
            let number = self.last_number;
            let settings = self.settings(&home);
            let id = self.new_id(settings.ids, number);
            let incarnation = self.queues[&home].member.expect("it is a lane");
            let member = self.member(incarnation).name.clone();
            let of_lane = settings.ttl.map(|ttl| self.now.after(ttl));
            self.enter(TaskRecord {
                number,
                queue: publish.topic.into(),
                lane: home.lane.map(|number| LaneName { number, member }),
                id,
                seq: number,
                priority: publish.priority,
                key: publish.key.map(Into::into),
                payload: publish.payload.into(),
                away: None,
                put_at: self.now,
                expires_at: deadline.or(of_lane),
                ttr: None,
                attempts: 0,
                state: State::Ready,
            });
        }
        Ok(Some(Reply::Count(numbers.len() as u64)))
    }

    pub(super) fn end_member(&mut self, incarnation: u64) {
        self.member(incarnation).ended = true;
    }

    /// The lanes of those who have ended go, and then they do.
    pub(super) fn clean_lanes(&mut self) {
        let ended: Vec<u64> = self
            .members
            .iter()
            .filter(|member| member.ended)
            .map(|member| member.incarnation)
            .collect();
        for incarnation in ended {
            let lanes: Vec<Home> = self.lanes_of(incarnation).into_iter().cloned().collect();
            for lane in lanes {
                self.end_lane(&lane);
            }
            self.members.retain(|member| member.incarnation != incarnation);
        }
    }

    /// Everybody who waits for a lane hears that it is not there any more.
    fn end_lane(&mut self, lane: &Home) {
        self.subscriptions.retain(|known| known.queue != *lane);
        let (told, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.takers)
            .into_iter()
            .partition(|taker| taker.queues.contains(lane));
        self.takers = left;
        for taker in told {
            let refusal = Refusal::new(RefusalKind::NotFound, "");
            self.reply(taker.client, taker.request, Reply::Refused(refusal));
        }
        self.empty(lane);
        self.queues.remove(lane);
    }

    /// At the start whatever is over goes, also where nobody can see it.
    pub(super) fn drop_over_in_ended_lanes(&mut self) {
        let is_over = |task: &TaskRecord| match &task.state {
            State::Ready | State::Waiting { .. } => {
                task.expires_at.is_some_and(|at| at <= self.now)
            }
            State::Zombie { purge_at } => *purge_at <= self.now,
            State::Taken(_) | State::Buried { .. } | State::Done => false,
        };
        let hidden = self.tasks.iter().filter(|task| !self.is_live(task) && is_over(task));
        let numbers: Vec<u64> = hidden.map(|task| task.number).collect();
        for number in numbers {
            let at = self.at(number).expect("it is there");
            let is_zombie = self.tasks[at].state.kind() == StateKind::Zombie;
            self.leave(at, if is_zombie { Exit::Acked } else { Exit::Expired });
        }
    }
}
