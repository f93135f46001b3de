//! What happens as time passes, and when a connection ends. The caller supplies the time.

use pinpriq_proto::command::TakeMode;
use pinpriq_proto::reply::{Outcome, Reply};
use pinpriq_proto::task::history::How;
use pinpriq_proto::task::{ClientId, Farewell, Lease, State, StateKind, TaskRecord, reasons};
use pinpriq_proto::time::Timestamp;

use super::bonds::Emptied;
use super::recall::is_unstarted;
use super::{Exit, Model};

/// What is due. Tasks come first. The others are in the order in which they happen within one
/// moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Task(u64),
    Pauses,
    Taker(u64),
    Awaiter(u64),
    Putter(u64),
    Member(u64),
    Schedule(u64),
    Window(u64),
    Batch(u64),
}

/// The next moment that matters to a task in its state.
pub(super) fn due(task: &TaskRecord) -> Option<Timestamp> {
    match &task.progress.state {
        State::Ready => task.progress.expires_at,
        State::Waiting { ready_at } => {
            [*ready_at, task.progress.expires_at].into_iter().flatten().min()
        }
        State::Taken(lease) => lease.deadline,
        State::Zombie { purge_at } => Some(*purge_at),
        State::Buried(_) | State::Done => None,
    }
}

impl Model {
    /// Notes that something will be due at this moment.
    pub(super) fn note_due(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.quiet_until = self.quiet_until.min(at);
        }
    }

    /// The next moment at which something happens by itself.
    #[must_use]
    pub fn next_moment(&self) -> Option<Timestamp> {
        self.next_due().map(|(at, _)| at).into_iter().chain(self.next_opening()).min()
    }

    /// Whether the next timeout has to continue work that was begun.
    #[must_use]
    pub fn has_more_to_do(&self) -> bool {
        let has_ended = self.members.values().any(|member| member.ended);
        !self.emptied.is_empty() || has_ended || self.has_batches_to_settle()
    }

    fn next_due(&self) -> Option<(Timestamp, Due)> {
        self.all_due().min()
    }

    /// Everything that is due at some time.
    fn all_due(&self) -> impl Iterator<Item = (Timestamp, Due)> {
        let homes = self.homes.iter().filter(|(place, _)| !self.has_ended(place));
        let tasks = homes
            .flat_map(|(_, home)| home.tasks.values())
            .filter_map(|task| Some((due(task)?, Due::Task(task.number))));
        let takers =
            self.takers.iter().filter_map(|taker| Some((taker.until?, Due::Taker(taker.turn))));
        let awaiters =
            self.awaiters.iter().filter_map(|known| Some((known.until?, Due::Awaiter(known.turn))));
        let of_batches = self.batch_awaiters.iter();
        let of_batches = of_batches.filter_map(|it| Some((it.until?, Due::Awaiter(it.turn))));
        let awaiters = awaiters.chain(of_batches);
        let members = self.members.iter().filter(|(_, member)| !member.ended);
        let members = members.map(|(number, member)| (member.lease_until, Due::Member(*number)));
        let slots = self.slots().map(|(slot, number)| (slot, Due::Schedule(number)));
        let windows = self.windows.values().map(|known| (known.until, Due::Window(known.number)));
        let batches = self.dues_of_batches().map(|(at, number)| (at, Due::Batch(number)));
        let others = members.chain(slots).chain(windows).chain(batches);
        let putters = self.putters.iter().map(|it| (it.until, Due::Putter(it.turn)));
        let pauses = self.homes.values().filter_map(|home| home.paused.next_end());
        let others = others.chain(pauses.map(|at| (at, Due::Pauses)));
        tasks.chain(takers).chain(awaiters).chain(putters).chain(others)
    }

    /// Advances time, and finishes what was begun.
    pub fn timeout(&mut self, now: Timestamp) {
        self.advance(now);
        self.clean_lanes();
        self.tell_emptied(|_| true);
        self.conclude();
    }

    /// Notifies the awaiters of tasks of an emptied queue that the tasks were killed.
    pub(super) fn tell_emptied(&mut self, which: impl Fn(u64) -> bool) {
        let (told, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.emptied).into_iter().partition(|gone| which(gone.number));
        self.emptied = left;
        for Emptied { number, batch, .. } in told {
            self.kept.part(number);
            self.leave_batch(number, batch.as_ref(), false);
            self.tell(number, Outcome::Killed, None, None);
        }
    }

    pub(super) fn advance(&mut self, now: Timestamp) {
        self.count_closed(now);
        self.now = now;
        self.settle_all();
        self.fire_due();
    }

    /// Does everything that is due, then hands out everything that became ready.
    pub(super) fn fire_due(&mut self) {
        if self.now < self.quiet_until {
            self.serve_all();
            return;
        }
        loop {
            // However late everything is, tasks come first.
            let by_now = self.all_due().filter(|(at, _)| *at <= self.now);
            let next = by_now.min_by_key(|(at, due)| (!matches!(due, Due::Task(_)), *at, *due));
            let Some((at, due)) = next else {
                self.quiet_until = self.next_due().map_or(Timestamp::MAX, |(at, _)| at);
                break;
            };
            match due {
                Due::Task(number) => self.fire(number),
                Due::Pauses => self.end_pauses(at),
                Due::Taker(turn) => {
                    self.serve_all();
                    self.fire_taker(turn);
                }
                Due::Awaiter(turn) => self.time_out_awaiter(turn),
                Due::Putter(turn) => {
                    self.serve_all();
                    self.time_out_putter(turn);
                }
                Due::Member(incarnation) => self.end_member(incarnation),
                Due::Schedule(number) => {
                    self.fill_vacancies();
                    self.fire_slot(number, at);
                }
                Due::Window(number) => drop(self.windows.remove(&number)),
                Due::Batch(number) => self.fire_batch(number),
            }
        }
        self.serve_all();
    }

    /// Ends every pause that is over at this moment.
    fn end_pauses(&mut self, at: Timestamp) {
        for place in self.homes.keys().cloned().collect::<Vec<_>>() {
            let home = self.home(&place);
            home.paused = home.paused.at(at);
            self.tidy(&place);
        }
    }

    fn fire(&mut self, number: u64) {
        let kind = self.task(number).progress.state.kind();
        *self.happened.entry(("its deadline passes", kind)).or_default() += 1;
        let task = self.task(number);
        match kind {
            StateKind::Zombie => self.leave(number, Exit::Acked),
            StateKind::Taken if is_unstarted(task) => self.take_back(number),
            StateKind::Taken => {
                let at = due(task).unwrap_or(self.now);
                self.how = How::Expired;
                self.count(number, |counts| &mut counts.timeouts);
                self.count_failure(number, at, Some(reasons::LEASE_EXPIRED), None);
            }
            StateKind::Waiting if !self.is_over(task) => self.shift(number, State::Ready),
            _ => self.expire(number),
        }
    }

    pub(super) fn time_out_taker(&mut self, turn: u64) {
        let Some(index) = self.takers.iter().position(|taker| taker.turn == turn) else { return };
        let taker = self.takers.remove(index);
        let reply = Reply::Tasks {
            tasks: Vec::new(),
            popped: taker.mode == TakeMode::Pop && !taker.is_share,
        };
        self.reply(taker.client, taker.request, reply);
    }

    fn time_out_awaiter(&mut self, turn: u64) {
        if self.time_out_batch_awaiter(turn) {
            return;
        }
        let Some(index) = self.awaiters.iter().position(|known| known.turn == turn) else { return };
        let awaiter = self.awaiters.remove(index);
        let number = awaiter.number;
        let state = self.is_live(number).then(|| self.task(number).progress.state.kind());
        let outcome = if state.is_some() { Outcome::Timeout } else { Outcome::Killed };
        self.answer_awaiter(awaiter, outcome, state, None);
    }

    /// Ends a connection. It gets nothing that is due in the same moment.
    pub fn disconnect(&mut self, now: Timestamp, client: ClientId, farewell: Farewell<'_>) {
        self.count_closed(now);
        self.now = now;
        self.settle_all();
        self.takers.retain(|taker| taker.client != client);
        self.awaiters.retain(|awaiter| awaiter.client != client);
        self.batch_awaiters.retain(|awaiter| awaiter.client != client);
        self.putters.retain(|putter| putter.client != client);
        self.subscriptions.retain(|known| known.client != client);
        self.credits.remove(&client);
        let ended = |lease: &Lease| lease.deadline.is_none() && is_of(lease, client);
        let knows = |task: &TaskRecord| match farewell {
            _ if is_held_for_pop(task) => false,
            Farewell::ServerStops => false,
            Farewell::Ended { unsent } => {
                task.receipt().is_some_and(|receipt| !unsent.contains(&receipt))
            }
        };
        let refunds = farewell != Farewell::ServerStops;
        for task in self.unstarted_of(client) {
            self.take_back(task.number);
        }
        self.end_leases(|task, lease| ended(lease) && !knows(task), true, (false, refunds));
        self.end_leases(|_, lease| ended(lease), true, (true, false));
        self.fire_due();
        // Who waits gets each of these tasks before the next one is ready.
        for number in self.tied_in_order(client) {
            let is_failure = knows(self.task(number));
            self.end_lease(number, (is_failure, refunds));
            self.serve();
        }
        self.conclude();
    }

    /// The tasks whose leases are tied to the connection of a client, in the order in which these
    /// were granted.
    pub(super) fn tied_in_order(&self, client: ClientId) -> Vec<u64> {
        let grant = |task: &TaskRecord| match &task.progress.state {
            State::Taken(lease) if lease.is_tied() && is_of(lease, client) => {
                lease.deadline.map(|_| lease.grant)
            }
            _ => None,
        };
        let tied = self.tasks().filter_map(|task| Some((grant(task)?, task.number)));
        let mut tied: Vec<_> = tied.filter(|(_, number)| self.is_live(*number)).collect();
        tied.sort_unstable();
        tied.into_iter().map(|(_, number)| number).collect()
    }

    pub(super) fn end_leases(
        &mut self,
        which: impl Fn(&TaskRecord, &Lease) -> bool,
        of_living: bool,
        (is_failure, refunds): (bool, bool),
    ) {
        let held = |task: &&TaskRecord| match &task.progress.state {
            State::Taken(lease) => which(task, lease),
            _ => false,
        };
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
            self.end_lease(number, (is_failure, refunds));
        }
    }

    pub(super) fn end_lease(&mut self, number: u64, (is_failure, refunds): (bool, bool)) {
        *self.happened.entry(("its holder is gone", StateKind::Taken)).or_default() += 1;
        let task = self.task(number).clone();
        self.how = How::Closed;
        if self.leave_cancelled(number) {
            // Nothing else becomes of it.
        } else if is_failure {
            let reason = Some(reasons::CONNECTION_CLOSED);
            self.count_failure(number, self.now, reason, None);
        } else if self.is_over(self.task(number)) {
            self.expire(number);
        } else {
            self.shift(number, State::Ready);
        }
        if !is_failure && refunds {
            self.refund(&task);
        }
    }

    /// A client will send nothing more: its waits end as if their time were up.
    pub fn end_waits(&mut self, now: Timestamp, client: ClientId) {
        self.advance(now);
        let takers: Vec<u64> =
            self.takers.iter().filter(|own| own.client == client).map(|own| own.turn).collect();
        let of_tasks = self.awaiters.iter().map(|own| (own.client, own.turn));
        let of_batches = self.batch_awaiters.iter().map(|own| (own.client, own.turn));
        let awaiters = of_tasks.chain(of_batches).filter(|(own, _)| *own == client);
        let mut awaiters: Vec<u64> = awaiters.map(|(_, turn)| turn).collect();
        awaiters.sort_unstable();
        let putters: Vec<u64> =
            self.putters.iter().filter(|own| own.client == client).map(|own| own.turn).collect();
        for turn in takers {
            self.time_out_taker(turn);
        }
        for turn in putters {
            self.time_out_putter(turn);
        }
        for turn in awaiters {
            self.time_out_awaiter(turn);
        }
        self.conclude();
    }
}

/// Whether a client of this number has the lease. A connection may have a second number, whose end
/// is another one.
pub(super) fn is_of(lease: &Lease, client: ClientId) -> bool {
    lease.client() == Some(client)
}

/// Whether a task is held for a pop over several engines.
fn is_held_for_pop(task: &TaskRecord) -> bool {
    matches!(&task.progress.state, State::Taken(lease) if lease.is_held_for_pop())
}
