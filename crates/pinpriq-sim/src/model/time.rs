//! What time does, and what the end of a connection or of the server does.

use pinpriq_engine::command::TakeMode;
use pinpriq_engine::reply::{Outcome, Reply};
use pinpriq_engine::task::{ClientId, LaneName, Lease, State, StateKind, TaskRecord};
use pinpriq_engine::time::Timestamp;
use pinpriq_store::Fold;

use super::room::Kept;
use super::{Exit, Home, Lane, Member, Model, Place, Tally};

/// What is due, in the order in which it happens at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Task(u64),
    Taker(u64),
    Awaiter(u64),
    Member(u64),
}

/// The next moment that matters to a task in its state.
pub(super) fn due(task: &TaskRecord) -> Option<Timestamp> {
    match &task.state {
        State::Ready => task.expires_at,
        State::Waiting { ready_at } => {
            Some(task.expires_at.map_or(*ready_at, |expires_at| expires_at.min(*ready_at)))
        }
        State::Taken(lease) => lease.deadline,
        State::Zombie { purge_at } => Some(*purge_at),
        State::Buried { .. } | State::Done => None,
    }
}

impl Model {
    /// Something will be due then.
    pub(super) fn note_due(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.quiet_until = self.quiet_until.min(at);
        }
    }

    /// What happens next by itself.
    pub(super) fn next_due(&self) -> Option<(Timestamp, Due)> {
        let homes = self.homes.iter().filter(|(place, _)| !self.has_ended(place));
        let tasks = homes
            .flat_map(|(_, home)| home.tasks.values())
            .filter_map(|task| Some((due(task)?, Due::Task(task.number))));
        let takers =
            self.takers.iter().filter_map(|taker| Some((taker.until?, Due::Taker(taker.turn))));
        let awaiters =
            self.awaiters.iter().filter_map(|known| Some((known.until?, Due::Awaiter(known.turn))));
        let members = self.members.iter().filter(|(_, member)| !member.ended);
        let members = members.map(|(number, member)| (member.lease_until, Due::Member(*number)));
        tasks.chain(takers).chain(awaiters).chain(members).min()
    }

    pub(crate) fn timeout(&mut self, now: Timestamp) {
        self.advance(now);
        self.clean_lanes();
        self.tell_emptied(|_| true);
        self.serve();
    }

    /// Those who await tasks of an emptied queue hear that they were killed.
    pub(super) fn tell_emptied(&mut self, which: impl Fn(u64) -> bool) {
        let (told, left): (Vec<u64>, Vec<u64>) =
            std::mem::take(&mut self.emptied).into_iter().partition(|number| which(*number));
        self.emptied = left;
        for number in told {
            self.kept.part(number);
            self.tell(number, Outcome::Killed, None);
        }
    }

    pub(super) fn advance(&mut self, now: Timestamp) {
        self.now = now;
        self.fire_due();
    }

    /// Everything that is due happens, then everything that became ready is handed out.
    fn fire_due(&mut self) {
        if self.now < self.quiet_until {
            self.serve();
            return;
        }
        loop {
            let next = self.next_due();
            let Some((_, due)) = next.filter(|(at, _)| *at <= self.now) else {
                self.quiet_until = next.map_or(Timestamp::MAX, |(at, _)| at);
                break;
            };
            match due {
                Due::Task(number) => self.fire(number),
                Due::Taker(turn) => {
                    self.serve();
                    self.time_out_taker(turn);
                }
                Due::Awaiter(turn) => self.time_out_awaiter(turn),
                Due::Member(incarnation) => self.end_member(incarnation),
            }
        }
        self.serve();
    }

    fn fire(&mut self, number: u64) {
        let task = self.task(number);
        match task.state.kind() {
            StateKind::Ready => self.leave(number, Exit::Expired),
            StateKind::Zombie => self.leave(number, Exit::Acked),
            _ if self.is_over(task) => self.leave(number, Exit::Expired),
            _ => self.shift(number, State::Ready),
        }
    }

    fn time_out_taker(&mut self, turn: u64) {
        let Some(index) = self.takers.iter().position(|taker| taker.turn == turn) else { return };
        let taker = self.takers.remove(index);
        let reply = Reply::Tasks { tasks: Vec::new(), popped: taker.mode == TakeMode::Pop };
        self.reply(taker.client, taker.request, reply);
    }

    fn time_out_awaiter(&mut self, turn: u64) {
        let Some(index) = self.awaiters.iter().position(|known| known.turn == turn) else { return };
        let awaiter = self.awaiters.remove(index);
        let number = awaiter.number;
        let state = self.is_live(number).then(|| self.task(number).state.kind());
        let outcome = if state.is_some() { Outcome::Timeout } else { Outcome::Killed };
        self.answer_awaiter(awaiter, outcome, state);
    }

    /// A connection is gone. Nothing that is due in the same moment reaches it any more.
    pub(crate) fn disconnect(&mut self, now: Timestamp, client: ClientId) {
        self.now = now;
        self.takers.retain(|taker| taker.client != client);
        self.awaiters.retain(|awaiter| awaiter.client != client);
        self.subscriptions.retain(|known| known.client != client);
        self.credits.remove(&client);
        self.end_leases(|lease| lease.deadline.is_none() && lease.holder == Some(client), true);
        self.fire_due();
    }

    fn end_leases(&mut self, which: impl Fn(&Lease) -> bool, of_living: bool) {
        let held = |task: &&TaskRecord| matches!(&task.state, State::Taken(lease) if which(lease));
        let mut numbers: Vec<u64> = self
            .homes
            .iter()
            .filter(|(place, _)| !of_living || !self.has_ended(place))
            .flat_map(|(_, home)| home.tasks.values())
            .filter(held)
            .map(|task| task.number)
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            if self.is_over(self.task(number)) {
                self.leave(number, Exit::Expired);
            } else {
                self.shift(number, State::Ready);
            }
        }
    }

    /// A client will send nothing more: its waits are over as if their time were up.
    pub(crate) fn end_waits(&mut self, now: Timestamp, client: ClientId) {
        self.advance(now);
        let takers: Vec<u64> =
            self.takers.iter().filter(|own| own.client == client).map(|own| own.turn).collect();
        let awaiters: Vec<u64> =
            self.awaiters.iter().filter(|own| own.client == client).map(|own| own.turn).collect();
        for turn in takers {
            self.time_out_taker(turn);
        }
        for turn in awaiters {
            self.time_out_awaiter(turn);
        }
        self.serve();
    }

    /// The server has started with what a store kept.
    pub(crate) fn start(
        &mut self,
        fold: &Fold,
        now: Timestamp,
        incarnation: u64,
        last_number: u64,
    ) {
        let limits = self.limits;
        let mut bindings = std::mem::take(&mut self.bindings);
        bindings.forget_after(last_number);
        *self = Self::new(limits);
        (self.bindings, self.now, self.incarnation) = (bindings, now, incarnation);
        self.last_number = last_number;
        self.kept = Kept::of(fold);
        for (number, (member, _)) in &fold.members {
            let lease_until = now.after(member.lease);
            let (name, lease, ended) = (member.name.clone(), member.lease, member.ended);
            self.members.insert(*number, Member { name, lease, lease_until, ended });
        }
        for (name, (queue, _)) in &fold.queues {
            let (created, settings, paused) = (queue.created, queue.settings, queue.paused);
            let home = Home { name: name.clone(), created, settings, paused, ..Home::default() };
            self.homes.insert(Place::Queue(name.clone()), home);
        }
        for (number, (lane, _)) in &fold.lanes {
            let name =
                LaneName { number: *number, member: self.members[&lane.member].name.clone() };
            let own = Lane { name, incarnation: lane.member, missed: 0 };
            let home = Home {
                name: lane.topic.clone(),
                lane: Some(own),
                created: true,
                settings: lane.settings,
                paused: lane.paused,
                ..Home::default()
            };
            self.homes.insert(Place::Lane(*number), home);
        }
        for task in tasks_of(fold) {
            let place = match &task.lane {
                None => Place::Queue(task.queue.clone()),
                Some(lane) => Place::Lane(lane.number),
            };
            self.places.insert(task.number, place.clone());
            self.home(&place).tasks.insert(task.number, task);
        }
        for home in self.homes.values_mut() {
            home.tally = Tally { put: home.tasks.len() as u64, ..Tally::default() };
        }
        self.totals = Tally { put: self.places.len() as u64, ..Tally::default() };
        for number in self.places.keys().copied().collect::<Vec<_>>() {
            let task = self.task(number);
            match task.state.kind() {
                StateKind::Ready | StateKind::Waiting if self.is_over(task) => {
                    self.leave(number, Exit::Expired);
                }
                StateKind::Zombie if due(task).is_some_and(|at| at <= now) => {
                    self.leave(number, Exit::Acked);
                }
                _ => {}
            }
        }
        self.end_leases(|lease| lease.deadline.is_none(), false);
        self.fire_due();
    }
}

/// Every task that a store knows of, whole.
pub(crate) fn tasks_of(fold: &Fold) -> Vec<TaskRecord> {
    let mut tasks: Vec<TaskRecord> = fold.tasks.values().map(|(task, _)| task.clone()).collect();
    for (task, _) in fold.lane_tasks.values() {
        let Some((lane, _)) = fold.lanes.get(&task.lane) else { continue };
        let member = fold.members.get(&lane.member).map(|(member, _)| member.name.clone());
        let shared = fold.publications.range(..=task.number).next_back();
        let (key, payload) = match (&task.own, shared) {
            (Some(own), _) => (own.key.clone(), own.payload.clone()),
            (None, Some((_, (shared, _)))) => (shared.key.clone(), shared.payload.clone()),
            (None, None) => (None, [].into()),
        };
        tasks.push(TaskRecord {
            number: task.number,
            queue: lane.topic.clone(),
            lane: Some(LaneName { number: task.lane, member: member.unwrap_or_default() }),
            id: task.id.clone(),
            seq: task.seq,
            priority: task.priority,
            key,
            payload,
            away: None,
            put_at: task.put_at,
            expires_at: task.expires_at,
            ttr: None,
            attempts: task.attempts,
            state: task.state.clone(),
        });
    }
    tasks
}
