//! What time does, and what the end of a connection or of the server does.

use pinpriq_engine::command::TakeMode;
use pinpriq_engine::reply::{Outcome, Reply};
use pinpriq_engine::task::{ClientId, State, StateKind, TaskRecord};
use pinpriq_engine::time::Timestamp;

use super::{Exit, Model, Tally, is_in};

/// What is due, in the order in which it happens at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Task(u64),
    Taker(u64),
    Awaiter(u64),
    Member(u64),
}

impl Model {
    /// The next moment at which something happens by itself.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.dues().into_iter().map(|(at, _)| at).min()
    }

    fn dues(&self) -> Vec<(Timestamp, Due)> {
        let live = self.tasks.iter().filter(|task| self.is_live(task));
        let tasks = live.filter_map(|task| Some((due(task)?, Due::Task(task.number))));
        let takers =
            self.takers.iter().filter_map(|taker| Some((taker.until?, Due::Taker(taker.turn))));
        let awaiters = self
            .awaiters
            .iter()
            .filter_map(|awaiter| Some((awaiter.until?, Due::Awaiter(awaiter.turn))));
        let alive = self.members.iter().filter(|member| !member.ended);
        let members = alive.map(|member| (member.lease_until, Due::Member(member.incarnation)));
        tasks.chain(takers).chain(awaiters).chain(members).collect()
    }

    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
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
            self.kept.free(number);
            self.tell(number, Outcome::Killed, None);
        }
    }

    pub(super) fn advance(&mut self, now: Timestamp) {
        self.now = now;
        self.fire_due();
    }

    /// Everything that is due happens, then everything that became ready is handed out.
    fn fire_due(&mut self) {
        while let Some((at, due)) = self.dues().into_iter().min()
            && at <= self.now
        {
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
        let at = self.at(number).expect("a task that is due is there");
        let kind = self.tasks[at].state.kind();
        *self.happened.entry(("its deadline passes", kind)).or_default() += 1;
        match kind {
            StateKind::Ready => self.leave(at, Exit::Expired),
            StateKind::Zombie => self.leave(at, Exit::Acked),
            StateKind::Waiting | StateKind::Taken if self.is_over(at) => {
                self.leave(at, Exit::Expired);
            }
            _ => self.shift(at, State::Ready),
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
        let live = self.at(awaiter.number).filter(|at| self.is_live(&self.tasks[*at]));
        let state = live.map(|at| self.tasks[at].state.kind());
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
        self.end_leases(|model, task| {
            let State::Taken(lease) = &task.state else { return false };
            lease.deadline.is_none() && lease.holder == Some(client) && model.is_live(task)
        });
        self.fire_due();
    }

    fn end_leases(&mut self, which: impl Fn(&Self, &TaskRecord) -> bool) {
        let held = self.tasks.iter().filter(|task| which(self, task));
        let mut numbers: Vec<u64> = held.map(|task| task.number).collect();
        numbers.sort_unstable();
        for number in numbers {
            let at = self.at(number).expect("a taken task is there");
            *self.happened.entry(("its holder is gone", StateKind::Taken)).or_default() += 1;
            if self.is_over(at) {
                self.leave(at, Exit::Expired);
            } else {
                self.shift(at, State::Ready);
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

    /// The server stops and starts again.
    pub(crate) fn restart_server(&mut self, now: Timestamp) {
        self.incarnation += 1;
        self.last_grant = 0;
        self.now = now;
        self.takers.clear();
        self.awaiters.clear();
        self.subscriptions.clear();
        self.credits.clear();
        self.emptied.clear();
        self.kept.restart();
        for task in &mut self.tasks {
            if let State::Taken(lease) = &mut task.state {
                lease.holder = None;
            }
        }
        self.totals = Tally { put: self.tasks.len() as u64, ..Tally::default() };
        for (name, queue) in &mut self.queues {
            let present = self.tasks.iter().filter(|task| is_in(task, name)).count();
            queue.missed = 0;
            queue.tally = Tally { put: present as u64, ..Tally::default() };
        }
        self.end_leases(|_, task| match &task.state {
            State::Taken(lease) => lease.deadline.is_none(),
            _ => false,
        });
        self.drop_over_in_ended_lanes();
        for member in &mut self.members {
            member.show_life(now, None);
        }
        self.fire_due();
    }
}

/// The next moment that matters to a task in its state.
fn due(task: &TaskRecord) -> Option<Timestamp> {
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
