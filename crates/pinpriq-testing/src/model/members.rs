//! Members: joining, signs of life, leaving, and removing their lanes. Publishing is in `put`.

use pinpriq_proto::command::QueueName;
use pinpriq_proto::fanout::{LEASE_DEFAULT, MemberCommand, MemberFigures};
use pinpriq_proto::limits::{LANE_OVERHEAD_BYTES, MEMBER_OVERHEAD_BYTES, NAME_BYTES_MAX};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::task::{LaneName, StateKind};
use pinpriq_proto::time::Span;

use super::{Answer, Home, Lane, Member, Model, Place, fits};

impl Model {
    pub(super) fn tend(&mut self, command: &MemberCommand<'_>) -> Answer {
        let name_fits = |name: &[u8]| fits(name.len() <= NAME_BYTES_MAX);
        match *command {
            MemberCommand::Join { topic, member, lease } => {
                name_fits(topic)?;
                name_fits(member)?;
                self.join(topic, member, lease)
            }
            MemberCommand::Beat { member, lease } => {
                name_fits(member)?;
                self.span_fits(lease, false)?;
                let incarnation = self.alive(member).ok_or(RefusalKind::NotFound)?;
                self.new_lease_fits(self.members[&incarnation].lease, lease)?;
                self.renew(incarnation, lease);
                Ok(Some(Reply::Done))
            }
            MemberCommand::LeaveTopic { topic, member } => {
                let lane = self.place_of(QueueName { name: topic, member: Some(member) });
                if let Err(RefusalKind::BadArgument) = lane {
                    return Err(RefusalKind::BadArgument);
                }
                let count = lane.is_ok();
                if let Ok(place) = lane {
                    self.remove_lane(&place);
                }
                Ok(Some(Reply::Count(u64::from(count))))
            }
            MemberCommand::Leave(member) => {
                name_fits(member)?;
                let Some(incarnation) = self.alive(member) else {
                    return Ok(Some(Reply::Count(0)));
                };
                self.end_member(incarnation);
                Ok(Some(Reply::Count(self.lanes_by(incarnation).len() as u64)))
            }
            MemberCommand::List(topic) => {
                name_fits(topic)?;
                Ok(Some(self.list_members(topic)))
            }
        }
    }

    fn join(&mut self, topic: &[u8], member: &[u8], lease: Option<Span>) -> Answer {
        self.span_fits(lease, false)?;
        let is_new = self.lane_of(topic, member).is_none();
        if is_new {
            let lane = LANE_OVERHEAD_BYTES + topic.len() as u64;
            let own = MEMBER_OVERHEAD_BYTES + member.len() as u64;
            let is_lane = |home: &&Home| home.lane.is_some() && *home.name == *topic;
            if self.homes.values().filter(is_lane).count() >= self.limits.topic_lanes_max {
                self.clean_lanes();
            }
            if self.homes.values().filter(is_lane).count() >= self.limits.topic_lanes_max {
                return Err(RefusalKind::Busy);
            }
            self.has_room(if self.alive(member).is_some() { lane } else { lane + own })?;
        }
        let incarnation = if let Some(incarnation) = self.alive(member) {
            self.renew(incarnation, lease);
            incarnation
        } else {
            self.last_number += 1;
            let lease = lease.unwrap_or(LEASE_DEFAULT);
            let lease_until = self.now.after(lease);
            self.note_due(Some(lease_until));
            let (name, put_off) = (member.into(), Vec::new());
            let new = Member { name, lease, lease_until, put_off, ended: false };
            self.members.insert(self.last_number, new);
            self.last_number
        };
        if is_new {
            self.last_number += 1;
            let number = self.last_number;
            let name = LaneName { number, member: member.into() };
            let lane = Some(Lane { name, incarnation, missed: 0 });
            let home = Home { name: topic.into(), lane, created: true, ..Home::default() };
            self.homes.insert(Place::Lane(number), home);
        }
        Ok(Some(Reply::Joined(incarnation)))
    }

    fn list_members(&self, topic: &[u8]) -> Reply {
        let mut members = Vec::new();
        for place in self.lanes_of(topic) {
            let home = &self.homes[&place];
            let Some(lane) = &home.lane else { continue };
            let count = |kind| {
                home.tasks.values().filter(|task| task.progress.state.kind() == kind).count()
            };
            members.push(MemberFigures {
                member: lane.name.member.clone(),
                incarnation: lane.incarnation,
                lease_until: self.members[&lane.incarnation].lease_until,
                ready: count(StateKind::Ready) as u64,
                taken: count(StateKind::Taken) as u64,
            });
        }
        members.sort_by(|one, other| one.member.cmp(&other.member));
        Reply::Members(members)
    }

    /// The incarnation of a member that is alive.
    #[must_use]
    pub fn alive(&self, member: &[u8]) -> Option<u64> {
        let mut known = self.members.iter();
        let found = known.find(|(_, known)| !known.ended && *known.name == *member);
        found.map(|(incarnation, _)| *incarnation)
    }

    /// The lane of a living member in a topic.
    pub(super) fn lane_of(&self, topic: &[u8], member: &[u8]) -> Option<Place> {
        let incarnation = self.alive(member)?;
        let own = |home: &Home| {
            *home.name == *topic
                && home.lane.as_ref().is_some_and(|lane| lane.incarnation == incarnation)
        };
        self.homes.iter().find(|(_, home)| own(home)).map(|(place, _)| place.clone())
    }

    /// The lanes of living members in a topic, in order of creation.
    pub(super) fn lanes_of(&self, topic: &[u8]) -> Vec<Place> {
        let mut lanes: Vec<Place> = self
            .homes
            .iter()
            .filter(|(_, home)| home.lane.is_some() && *home.name == *topic)
            .map(|(place, _)| place.clone())
            .filter(|place| !self.has_ended(place))
            .collect();
        lanes.sort();
        lanes
    }

    fn lanes_by(&self, incarnation: u64) -> Vec<Place> {
        let own =
            |home: &Home| home.lane.as_ref().is_some_and(|lane| lane.incarnation == incarnation);
        let mut lanes: Vec<(&Home, Place)> = self
            .homes
            .iter()
            .filter(|(_, home)| own(home))
            .map(|(place, home)| (home, place.clone()))
            .collect();
        lanes.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        lanes.into_iter().map(|(_, place)| place).collect()
    }

    /// Whether a place is the lane of a member that has ended.
    #[must_use]
    pub fn has_ended(&self, place: &Place) -> bool {
        let Place::Lane(_) = place else { return false };
        let lane = self.homes.get(place).and_then(|home| home.lane.as_ref());
        lane.is_some_and(|lane| self.members[&lane.incarnation].ended)
    }

    /// Records a sign of life of the member whose lane this is, if it is a lane.
    pub(super) fn note_life(&mut self, place: &Place) {
        let lane = self.homes.get(place).and_then(|home| home.lane.as_ref());
        if let Some(incarnation) = lane.map(|lane| lane.incarnation) {
            self.renew(incarnation, None);
        }
    }

    fn renew(&mut self, incarnation: u64, lease: Option<Span>) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&incarnation) else { return };
        member.put_off.retain(|at| *at >= now);
        member.put_off.push(member.lease_until);
        member.lease = lease.unwrap_or(member.lease);
        member.lease_until = now.after(member.lease);
        let due = Some(member.lease_until);
        self.note_due(due);
    }

    /// Marks a member as ended. Its lanes are removed later.
    pub(super) fn end_member(&mut self, incarnation: u64) {
        self.members.entry(incarnation).and_modify(|member| member.ended = true);
    }

    /// Removes the lanes of members that have ended, and then those members.
    pub(super) fn clean_lanes(&mut self) {
        let ended = self.members.iter().filter(|(_, member)| member.ended);
        for incarnation in ended.map(|(incarnation, _)| *incarnation).collect::<Vec<_>>() {
            for place in self.lanes_by(incarnation) {
                self.remove_lane(&place);
            }
            self.members.remove(&incarnation);
        }
    }

    /// Ends every take and subscription on a lane, then removes it with its tasks.
    fn remove_lane(&mut self, place: &Place) {
        self.subscriptions.retain(|known| known.place != *place);
        let mut waiting: Vec<(bool, u64)> = self
            .takers
            .iter()
            .filter(|taker| taker.places.contains(place))
            .map(|taker| (taker.selection.narrow, taker.turn))
            .collect();
        waiting.sort_unstable();
        for (_, turn) in waiting {
            if let Some(at) = self.takers.iter().position(|taker| taker.turn == turn) {
                let taker = self.takers.remove(at);
                self.refuse(taker.client, taker.request, RefusalKind::NotFound);
            }
        }
        self.empty(place);
        self.homes.remove(place);
    }
}
