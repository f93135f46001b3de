//! Reserves, tasks that only their number names, kicks, and queues as tubes.

use pinpriq_proto::command::{
    Amendment, Assign, Deed, Delay, Put, QueueName, Reserve, Selection, Sides, Take, TakeMode,
    TimeToLive, Wait,
};
use pinpriq_proto::limits::{NAME_BYTES_MAX, REASON_BYTES_MAX, URGENT_BELOW};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::reply::{Output, RefusalKind, Reply, TubeShown, TubesShown};
use pinpriq_proto::settings::Pause;
use pinpriq_proto::task::history::How;
use pinpriq_proto::task::{
    Burial, ClientId, Counts, Grant, Holder, Lease, RequestId, State, StateKind, TaskRecord, Trace,
    reasons,
};
use pinpriq_proto::time::{Span, Timestamp};

use super::arguments::id_fits;
use super::bonds::waits_for_batches;
use super::put::Buried;
use super::recall::start;
use super::serve::{Patience, Taker};
use super::time::is_of;
use super::turns::trace_of;
use super::within::match_one;
use super::{Answer, Exit, Home, Model, Place, fits};

/// The last second of a tied lease.
const MARGIN_MS: u64 = 1_000;

const MODE: TakeMode = TakeMode::Lease { ttr: None };

/// Whether a tube can have this name.
fn names_a_tube(name: &[u8]) -> bool {
    let others = "-+/;.$_()";
    let is_known = |byte: &u8| {
        matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9')
            || others.bytes().any(|other| other == *byte)
    };
    !name.is_empty() && name.len() <= 200 && !name.starts_with(b"-") && name.iter().all(is_known)
}

impl Model {
    /// Draws the place of the next task that is buried.
    pub(super) fn draw_burial(&mut self) -> Burial {
        self.last_burial = Burial::next(self.last_burial, self.now);
        self.last_burial
    }

    /// The place of a task that was buried on another server, if that is known and not yet to come.
    pub(super) fn burial_of_imported(&mut self, own: Burial) -> Burial {
        let next = Burial::next(self.last_burial, self.now);
        if own == Burial::UNKNOWN || own >= next { self.draw_burial() } else { own }
    }

    /// Buries a task.
    pub(super) fn set_aside(&mut self, number: u64) {
        let burial = self.draw_burial();
        self.count(number, |counts| &mut counts.buries);
        self.shift(number, State::Buried(burial));
    }

    /// Notes that a holder has released a task with this delay.
    pub(super) fn note_release(&mut self, number: u64, delay: Span) {
        self.count(number, |counts| &mut counts.releases);
        self.note_delay(number, delay);
    }

    /// Counts what has happened to a task.
    pub(super) fn count(&mut self, number: u64, which: fn(&mut Counts) -> &mut u32) {
        let progress = &mut self.task_mut(number).progress;
        let mut counts = progress.counts();
        let count = which(&mut counts);
        *count = count.saturating_add(1);
        progress.trace = Trace { counts, ..trace_of(progress) }.kept();
    }

    /// Notes the delay that a task was given.
    pub(super) fn note_delay(&mut self, number: u64, delay: Span) {
        let progress = &mut self.task_mut(number).progress;
        progress.trace = Trace { delay, ..trace_of(progress) }.kept();
    }

    /// Counts a kick of a task, unless it has expired by that.
    pub(super) fn count_kick(&mut self, number: u64, state: Option<StateKind>) {
        if state.is_some() {
            self.count(number, |counts| &mut counts.kicks);
        }
    }

    pub(super) fn put_buried(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        reason: Option<&[u8]>,
    ) -> Answer {
        fits(put.queue.len() <= NAME_BYTES_MAX)?;
        fits(reason.is_none_or(|reason| reason.len() <= REASON_BYTES_MAX))?;
        fits(put.delay == Delay::For(Span::ZERO) && put.wait.is_none() && put.unique.is_none())?;
        fits(put.ttl != TimeToLive::Instant && !waits_for_batches(put))?;
        self.put_as(client, request, put, Some(&Buried { reason }))
    }

    pub(super) fn reserve(
        &mut self,
        client: ClientId,
        request: RequestId,
        reserve: &Reserve<'_>,
    ) -> Answer {
        let Reserve { queues, wait, is_echo } = *reserve;
        let selection = Selection::DEFAULT;
        fits(queues.iter().all(|name| name.len() <= NAME_BYTES_MAX))?;
        self.taken_fits(&Take { queues, member: None, count: 1, wait, selection, mode: MODE })?;
        let places = self.places_of(queues, None)?;
        if let Some(task) = self.take_most_urgent(client, &places) {
            return Ok(Some(Reply::Tasks { tasks: vec![task], popped: false }));
        }
        let soon = self.deadline_soon(client);
        if soon.is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::DeadlineSoon));
        }
        let up = match wait {
            Wait::No | Wait::For(Span::ZERO) => {
                return Ok(Some(Reply::Tasks { tasks: Vec::new(), popped: false }));
            }
            Wait::For(span) => Some(self.now.after(span)),
            Wait::Forever => None,
        };
        self.may_wait(client, self.take_bytes(&places))?;
        let until = soon.into_iter().chain(up).min();
        let turn = self.draw();
        self.note_due(until);
        self.takers.push(Taker {
            turn,
            client,
            request,
            places,
            count: 1,
            selection,
            mode: MODE,
            until,
            reserve: Some(Patience { until: up }),
            is_share: false,
            is_echo,
        });
        Ok(None)
    }

    /// The task that a reserve would take.
    pub(super) fn head(&self, client: ClientId, queues: &[&[u8]]) -> Answer {
        let (selection, wait) = (Selection::DEFAULT, Wait::No);
        fits(queues.iter().all(|name| name.len() <= NAME_BYTES_MAX))?;
        self.taken_fits(&Take { queues, member: None, count: 1, wait, selection, mode: MODE })?;
        let head = self.most_urgent(&self.places_of(queues, None)?);
        if head.is_none() && self.deadline_soon(client).is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::DeadlineSoon));
        }
        Ok(Some(Reply::Shown(head.map(|number| self.task(number).clone()).into_iter().collect())))
    }

    /// The most urgent of the tasks that may be taken now.
    fn most_urgent(&self, places: &[Place]) -> Option<u64> {
        let homes = places.iter().filter_map(|place| self.homes.get(place));
        let open = homes.filter(|home| self.gives(home, Selection::DEFAULT));
        let first = open.filter_map(|home| home.first(Selection::DEFAULT, self.now));
        let first = first.min_by_key(|task| (task.progress.priority, task.put_at, task.number));
        Some(first?.number)
    }

    /// Takes the most urgent of the tasks that may be taken now.
    pub(super) fn take_most_urgent(
        &mut self,
        client: ClientId,
        places: &[Place],
    ) -> Option<TaskRecord> {
        let number = self.most_urgent(places)?;
        Some(self.hand_over(number, client, MODE, true))
    }

    /// When the last second of a lease that is tied to a client begins.
    fn deadline_soon(&self, client: ClientId) -> Option<Timestamp> {
        let ends = self.tasks().filter_map(|task| match &task.progress.state {
            State::Taken(lease) if lease.is_tied() && is_of(lease, client) => lease.deadline,
            _ => None,
        });
        ends.map(|at| Timestamp::from_ms(at.ms().saturating_sub(MARGIN_MS))).min()
    }

    /// Answers a blocked take or reserve whose moment has come.
    pub(super) fn fire_taker(&mut self, turn: u64) {
        let Some(index) = self.takers.iter().position(|taker| taker.turn == turn) else { return };
        let Some(patience) = self.takers[index].reserve else { return self.time_out_taker(turn) };
        let (client, request) = (self.takers[index].client, self.takers[index].request);
        let soon = self.deadline_soon(client);
        if soon.is_some_and(|at| at <= self.now) {
            self.takers.remove(index);
            self.reply(client, request, Reply::DeadlineSoon);
        } else if patience.until.is_some_and(|at| at <= self.now) {
            self.time_out_taker(turn);
        } else {
            let until = soon.into_iter().chain(patience.until).min();
            self.takers[index].until = until;
            self.note_due(until);
        }
    }

    pub(super) fn numbered(
        &mut self,
        client: ClientId,
        number: u64,
        deed: Deed,
        names: Option<&[NamePattern<'_>]>,
    ) -> Answer {
        use StateKind::{Buried, Done, Ready, Taken, Waiting, Zombie};
        if let Deed::Release { delay, .. } = deed {
            self.span_fits(Some(delay), true)?;
        }
        let Some(Place::Queue(name)) = self.places.get(&number).cloned() else {
            return Err(RefusalKind::NotFound);
        };
        let task = self.task(number);
        let kind = task.progress.state.kind();
        if !names_a_tube(&name) || matches!(kind, Zombie | Done) {
            return Err(RefusalKind::NotFound);
        }
        if names.is_some_and(|names| !match_one(names, &name)) {
            return Err(RefusalKind::NoPerm);
        }
        let is_own = match &task.progress.state {
            State::Taken(lease) => lease.is_held_by(client),
            _ => false,
        };
        let is_meant = match deed {
            Deed::Read => true,
            Deed::Take => matches!(kind, Ready | Waiting | Buried),
            Deed::Delete => is_own || kind != Taken,
            Deed::Release { .. } | Deed::Bury { .. } | Deed::Touch => is_own,
            Deed::Kick => matches!(kind, Waiting | Buried),
        };
        if !is_meant {
            return Err(RefusalKind::NotFound);
        }
        match deed {
            Deed::Read => Ok(Some(Reply::Task(Some(Box::new(task.clone()))))),
            Deed::Take => {
                let task = self.take_by_number(client, number, MODE, true);
                Ok(Some(Reply::Tasks { tasks: vec![task], popped: false }))
            }
            Deed::Delete if is_own => {
                self.finish(number, None);
                Ok(Some(Reply::Done))
            }
            Deed::Delete => {
                self.leave(number, Exit::Killed);
                Ok(Some(Reply::Done))
            }
            Deed::Release { .. } if self.leave_cancelled(number) => Ok(Some(Reply::State(None))),
            Deed::Bury { .. } if self.leave_cancelled(number) => Ok(Some(Reply::Done)),
            Deed::Release { priority, delay } => {
                Ok(Some(self.release_numbered(number, priority, delay)))
            }
            Deed::Bury { priority } => {
                let progress = &mut self.task_mut(number).progress;
                (progress.reason, progress.priority) = (None, Some(priority));
                self.how = How::Buried;
                self.set_aside(number);
                Ok(Some(Reply::Done))
            }
            Deed::Touch => self.touch_numbered(number),
            Deed::Kick => {
                self.kick_one(number);
                Ok(Some(Reply::Done))
            }
        }
    }

    fn touch_numbered(&mut self, number: u64) -> Answer {
        self.may_renew(number)?;
        let now = self.now;
        let State::Taken(lease) = &mut self.task_mut(number).progress.state else {
            unreachable!("task {number} is held")
        };
        start(lease);
        if let Some(ttr) = lease.ttr {
            lease.deadline = Some(now.after(ttr));
        }
        let deadline = lease.deadline;
        self.note_due(deadline);
        Ok(Some(Reply::Deadline(deadline)))
    }

    /// Takes one task by its id, past everything that holds it back.
    pub(super) fn take_one(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        id: &[u8],
        mode: TakeMode,
    ) -> Answer {
        use StateKind::{Buried, Ready, Waiting};
        id_fits(id)?;
        fits(mode != TakeMode::Pop)?;
        self.mode_fits(mode)?;
        let place = self.place_of(queue)?;
        self.note_life(&place);
        let found = self.find(queue, id)?;
        let is_free = |number: &u64| {
            matches!(self.task(*number).progress.state.kind(), Ready | Waiting | Buried)
        };
        let Some(number) = found.filter(is_free) else {
            return Ok(Some(Reply::Tasks { tasks: Vec::new(), popped: false }));
        };
        self.pay_rates(number);
        let task = self.take_by_number(client, number, mode, false);
        Ok(Some(Reply::Tasks { tasks: vec![task], popped: false }))
    }

    fn take_by_number(
        &mut self,
        client: ClientId,
        number: u64,
        mode: TakeMode,
        ties: bool,
    ) -> TaskRecord {
        let settings = self.settings(&self.places[&number]);
        let (record, now) = (self.task(number).clone(), self.now);
        self.home(&Place::of(&record)).charge(&record, now);
        self.last_grant += 1;
        let grant = Grant { incarnation: self.incarnation, serial: self.last_grant };
        let task = self.task_mut(number);
        task.progress.attempts = task.progress.attempts.saturating_add(1);
        let of_task = task.terms.ttr.or(settings.ttr);
        let (ttr, needs_receipt) = match mode {
            TakeMode::Unheld { ttr, otherwise } => (ttr.or(of_task).or(Some(otherwise)), true),
            mode => (mode.ttr().or(of_task), false),
        };
        let is_tied = ties && ttr.is_some();
        let deadline = ttr.map(|ttr| self.now.after(ttr));
        let holder = Some(Holder { is_tied, needs_receipt, ..Holder::of(client) });
        self.shift(number, State::Taken(Lease { grant, holder, deadline, ttr }));
        self.begin_attempt(number);
        self.task(number).clone()
    }

    fn release_numbered(&mut self, number: u64, priority: i64, delay: Span) -> Reply {
        let priority = Assign::To(Some(priority));
        let amendment = Amendment { priority, ..Amendment::default() };
        self.how = How::Released;
        if self.settings(&self.places[&number]).release_fails {
            self.how = How::Failed;
            self.note_release(number, delay);
            self.amend(number, &amendment);
            let delay = Some(delay).filter(|delay| *delay > Span::ZERO);
            let state = self.count_failure(number, self.now, Some(reasons::RELEASED), delay);
            return Reply::State(state);
        }
        self.note_put_off(number, delay);
        let state = self.bring_back(number, delay, &amendment, false);
        if state.is_some() {
            self.note_release(number, delay);
        }
        Reply::State(state)
    }

    fn kick_one(&mut self, number: u64) -> Option<StateKind> {
        self.set_held(number, false);
        let state = self.bring_back(number, Span::ZERO, &Amendment::default(), false);
        if state.is_some() {
            self.task_mut(number).progress.failures = 0;
        }
        self.count_kick(number, state);
        state
    }

    /// The tasks of one state in the order in which they are kicked.
    fn in_turn(home: &Home, state: StateKind) -> Vec<u64> {
        let turns = home.tasks.values().filter_map(|task| match task.progress.state {
            // What is held is passed over.
            State::Waiting { ready_at: Some(at) } if state == StateKind::Waiting => {
                Some((at.ms(), task.number))
            }
            State::Buried(burial) if state == StateKind::Buried => {
                Some((burial.number(), task.number))
            }
            _ => None,
        });
        let mut turns: Vec<(u64, u64)> = turns.collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, number)| number).collect()
    }

    pub(super) fn kick(&mut self, queue: &[u8], count: u32) -> Answer {
        fits(queue.len() <= NAME_BYTES_MAX)?;
        let home = self.homes.get(&Place::Queue(queue.into()));
        let Some(home) = home else { return Ok(Some(Reply::Count(0))) };
        let buried = Self::in_turn(home, StateKind::Buried);
        let waiting = Self::in_turn(home, StateKind::Waiting);
        let turns = if buried.is_empty() { waiting } else { buried };
        let mut kicked = 0;
        for number in turns {
            if kicked == u64::from(count) {
                break;
            }
            kicked += u64::from(self.kick_one(number).is_some());
            // Who waits gets it before the next one is ready.
            self.serve();
        }
        Ok(Some(Reply::Count(kicked)))
    }

    pub(super) fn foremost(&self, queue: &[u8], state: StateKind) -> Answer {
        fits(queue.len() <= NAME_BYTES_MAX)?;
        let home = self.homes.get(&Place::Queue(queue.into()));
        let first = home.and_then(|home| Self::in_turn(home, state).first().copied());
        Ok(Some(Reply::Task(first.map(|number| Box::new(self.task(number).clone())))))
    }

    /// Describes queues as tubes, in the order of their names, except for what has happened since
    /// the start: when they came into being, how long they are paused in all, and what was counted.
    pub(super) fn tubes(&self, queue: Option<&[u8]>, names: Option<&[NamePattern<'_>]>) -> Answer {
        fits(queue.is_none_or(|queue| queue.len() <= NAME_BYTES_MAX))?;
        let homes = self.homes.iter().filter(|(place, home)| {
            matches!(place, Place::Queue(_))
                && queue.is_none_or(|queue| *home.name == *queue)
                && names_a_tube(&home.name)
                && names.is_none_or(|names| match_one(names, &home.name))
        });
        let shown = homes.map(|(place, home)| {
            let mut counts = [0; 6];
            for task in home.tasks.values() {
                counts[task.progress.state.kind() as usize] += 1;
            }
            let is_urgent = |task: &&TaskRecord| {
                task.progress.state == State::Ready
                    && task.progress.priority.is_some_and(|priority| priority < URGENT_BELOW)
            };
            let reserves = self.takers.iter().filter(|taker| taker.reserve.is_some());
            TubeShown {
                name: home.name.clone(),
                exists: true,
                came_at: Timestamp::ZERO,
                came_after: 0,
                counts,
                urgent: home.tasks.values().filter(is_urgent).count() as u64,
                put: 0,
                deletes: 0,
                reserves: reserves.filter(|taker| taker.places.contains(place)).count() as u64,
                paused: home.paused,
                paused_for: Span::ZERO,
            }
        });
        let tubes = shown.collect();
        let reserves =
            self.takers.iter().filter(|taker| taker.reserve.is_some() && !taker.is_echo).count()
                as u64;
        let shown = TubesShown { tubes, reserves, ..TubesShown::default() };
        Ok(Some(Reply::Tubes(Box::new(shown))))
    }

    pub(super) fn let_leases_go(&mut self, client: ClientId) -> Reply {
        let unstarted = self.unstarted_of(client);
        for task in &unstarted {
            self.take_back(task.number);
        }
        let plain = self.tasks().filter(|task| match &task.progress.state {
            State::Taken(lease) => is_of(lease, client) && lease.deadline.is_none(),
            _ => false,
        });
        let mut held: Vec<u64> = plain.map(|task| task.number).collect();
        held.sort_unstable();
        held.retain(|number| self.is_live(*number));
        held.extend(self.tied_in_order(client));
        for number in &held {
            self.end_lease(*number, (false, false));
            self.serve();
        }
        Reply::Count((unstarted.len() + held.len()) as u64)
    }

    pub(super) fn hold_output(
        &mut self,
        queue: &[u8],
        length: Option<Span>,
        makes: bool,
    ) -> Answer {
        fits(queue.len() <= NAME_BYTES_MAX)?;
        self.span_fits(length, false)?;
        let place = Place::Queue(queue.into());
        let is_there = self.homes.contains_key(&place);
        if !is_there && !makes {
            return Err(RefusalKind::NoQueue);
        }
        let name = QueueName { name: queue, member: None };
        match length {
            None if !is_there => Ok(Some(Reply::Done)),
            None => self.pause(name, Sides::Output, Pause::Off),
            Some(length) => {
                let room = self.room_of_queue(queue);
                if room > 0 {
                    self.has_room(room)?;
                }
                self.home(&place);
                self.pause(name, Sides::Output, Pause::Until(self.now.after(length)))
            }
        }
    }

    pub(super) fn put_numbered(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
    ) -> Answer {
        fits(put.wait.is_none() && put.unique.is_none() && put.bonds.are_none())?;
        self.put(client, request, put)?;
        let number = self.last_put;
        if let Some(Output::Reply { reply, .. }) = self.outputs.last_mut() {
            *reply = Reply::Count(number);
        }
        Ok(None)
    }
}
