//! Selection, takes and looks. Who blocks, and whose turn it is, is decided in `serve`.

use pinpriq_proto::command::{Done, End, Order, Peek, QueueName, Selection, Take, TakeMode, Wait};
use pinpriq_proto::limits::{DONE_MAX, NAME_BYTES_MAX, NARROW_PAYLOAD_BYTES_MAX};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::history::How;
use pinpriq_proto::task::{
    ClientId, Grant, Holder, Lease, RequestId, State, StateKind, TaskRecord,
};
use pinpriq_proto::time::{Span, Timestamp};

use super::{Answer, Exit, Home, Model, Place, Taker, fits};

impl Home {
    /// The rank of a task for a selection: lower comes first.
    fn rank(&self, task: &TaskRecord, selection: Selection) -> (i128, i128) {
        let number = self.number_of(task).unwrap_or_default();
        let seq = i128::from(task.progress.seq);
        let number = if selection.from == End::Min { number } else { -number };
        let seq = if selection.order == Order::Oldest { seq } else { -seq };
        (number, seq)
    }

    /// The tasks that are ready, unexpired, and small enough for the client that asks.
    pub(super) fn in_sight(
        &self,
        selection: Selection,
        now: Timestamp,
    ) -> impl Iterator<Item = &TaskRecord> + Clone {
        self.tasks.values().filter(move |task| {
            task.progress.state == State::Ready
                && task.progress.expires_at.is_none_or(|expires_at| now < expires_at)
                && (!selection.narrow || task.payload.len() <= NARROW_PAYLOAD_BYTES_MAX)
        })
    }

    pub(super) fn first(&self, selection: Selection, now: Timestamp) -> Option<&TaskRecord> {
        if self.has_turns() {
            return self.next_in_turn(selection.narrow, now);
        }
        let ranked = self.in_sight(selection, now).filter(|task| task.progress.priority.is_some());
        ranked.min_by_key(|task| self.rank(task, selection))
    }

    /// Whether it has a task that some consumer could have if there were tokens.
    pub(super) fn has_tasks_for_anyone(&self, now: Timestamp) -> bool {
        let any = Selection { narrow: false, ..Selection::DEFAULT };
        !self.paused.output.is_on()
            && self.in_sight(any, now).any(|task| task.progress.priority.is_some())
    }

    pub(super) fn has(&self, selection: Selection, now: Timestamp) -> bool {
        !self.paused.output.is_on() && self.is_open(now) && self.first(selection, now).is_some()
    }

    /// The numbers of the tasks that go with the first choice, which comes first.
    fn choose(&self, selection: Selection, now: Timestamp) -> Vec<u64> {
        let Some(first) = self.first(selection, now) else { return Vec::new() };
        let Some(key) = first.terms.key.as_ref().filter(|_| selection.group && !self.has_turns())
        else {
            return vec![first.number];
        };
        let group =
            self.in_sight(selection, now).filter(|task| task.terms.key.as_ref() == Some(key));
        let (mut ranked, mut unranked): (Vec<&TaskRecord>, Vec<&TaskRecord>) =
            group.partition(|task| task.progress.priority.is_some());
        ranked.sort_by_key(|task| self.rank(task, selection));
        unranked.sort_by_key(|task| std::cmp::Reverse(task.progress.seq));
        ranked.into_iter().chain(unranked).map(|task| task.number).collect()
    }
}

impl Model {
    pub(super) fn take(&mut self, client: ClientId, request: RequestId, take: &Take<'_>) -> Answer {
        self.take_fits(take)?;
        let places = self.places_of(take.queues, take.member)?;
        self.order_fits(&places, take.selection)?;
        for place in &places {
            self.note_life(place);
        }
        let mode = (take.mode, false);
        let tasks = self.collect(&places, client, take.selection, mode, take.count);
        let until = match take.wait {
            _ if !tasks.is_empty() => None,
            Wait::No | Wait::For(Span::ZERO) => None,
            Wait::For(span) => Some(Some(self.now.after(span))),
            Wait::Forever => Some(None),
        };
        let Some(until) = until else {
            return Ok(Some(Reply::Tasks { tasks, popped: take.mode == TakeMode::Pop }));
        };
        self.may_wait(client, self.take_bytes(&places))?;
        let turn = self.draw();
        let (count, selection, mode) = (take.count, take.selection, take.mode);
        self.note_due(until);
        let (reserve, is_share, is_echo) = (None, false, false);
        self.takers.push(Taker {
            turn,
            client,
            request,
            places,
            count,
            selection,
            mode,
            until,
            reserve,
            is_share,
            is_echo,
        });
        Ok(None)
    }

    pub(super) fn take_fits(&self, take: &Take<'_>) -> Result<(), RefusalKind> {
        fits(!take.queues.is_empty())?;
        self.taken_fits(take)
    }

    pub(super) fn taken_fits(&self, take: &Take<'_>) -> Result<(), RefusalKind> {
        fits(take.count > 0)?;
        fits(take.queues.len() <= self.limits.queues_per_client_max)?;
        self.mode_fits(take.mode)?;
        match take.wait {
            Wait::For(wait) => self.span_fits(Some(wait), true),
            Wait::No | Wait::Forever => Ok(()),
        }
    }

    /// Acknowledges tasks and takes others, or does nothing.
    pub(super) fn take_done(
        &mut self,
        client: ClientId,
        request: RequestId,
        done: &[Done<'_>],
        take: &Take<'_>,
    ) -> Answer {
        fits(done.iter().all(|done| done.queue.len() <= NAME_BYTES_MAX))?;
        fits(done.len() <= DONE_MAX)?;
        self.take_fits(take)?;
        let places = self.places_of(take.queues, take.member)?;
        self.order_fits(&places, take.selection)?;
        if take.wait.blocks() {
            self.may_wait(client, self.take_bytes(&places))?;
        }
        self.finish_done(client, done)?;
        self.take(client, request, take)
    }

    /// The places that a command names, each once. Lanes among them must exist.
    pub(super) fn places_of(
        &self,
        names: &[&[u8]],
        member: Option<&[u8]>,
    ) -> Result<Vec<Place>, RefusalKind> {
        let mut places: Vec<Place> = Vec::new();
        for name in names {
            let place = self.place_of(QueueName { name, member })?;
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Ok(places)
    }

    pub(super) fn peek(&mut self, peek: &Peek<'_>) -> Answer {
        fits(peek.count > 0)?;
        let place = self.place_of(peek.queue)?;
        let Some(home) = self.homes.get(&place) else {
            return Ok(Some(Reply::Shown(Vec::new())));
        };
        let mut shown: Vec<&TaskRecord> = Vec::new();
        if matches!(peek.state, None | Some(StateKind::Ready)) {
            let ranked = home.in_sight(peek.selection, self.now);
            shown.extend(ranked.filter(|task| task.progress.priority.is_some()));
            shown.sort_by_key(|task| home.rank(task, peek.selection));
        }
        if let Some(kind) = peek.state {
            let ready = kind == StateKind::Ready;
            let mut rest: Vec<&TaskRecord> = home
                .tasks
                .values()
                .filter(|task| task.progress.state.kind() == kind)
                .filter(|task| !ready || task.progress.priority.is_none())
                .collect();
            rest.sort_by_key(|task| task.progress.seq);
            if ready {
                rest.reverse();
            }
            shown.extend(rest);
        }
        let Selection { from, order, narrow, .. } = peek.selection;
        if (from, order) == (End::Min, Order::Oldest)
            && matches!(peek.state, None | Some(StateKind::Ready))
            && home.has_turns()
            && let Some(first) = home.next_in_turn(narrow, self.now)
        {
            shown.retain(|task| task.number != first.number);
            shown.insert(0, first);
        }
        shown.truncate(peek.count as usize);
        Ok(Some(Reply::Shown(shown.into_iter().cloned().collect())))
    }

    /// Takes up to `count` tasks or groups, from one place after the other.
    pub(super) fn collect(
        &mut self,
        places: &[Place],
        client: ClientId,
        selection: Selection,
        (mode, is_held): (TakeMode, bool),
        mut count: u32,
    ) -> Vec<TaskRecord> {
        let mut tasks = Vec::new();
        for place in places {
            while count > 0
                && let Some(home) = self.homes.get(place)
                && self.gives(home, selection)
            {
                count -= 1;
                for number in home.choose(selection, self.now) {
                    // What there is no room or token for stays behind.
                    let is_open =
                        |home: &Home| home.is_open(self.now) && self.limits_allow(home, self.now);
                    if !self.homes.get(place).is_some_and(is_open) {
                        break;
                    }
                    tasks.push(self.hand_over(number, client, mode, is_held));
                }
            }
        }
        tasks
    }

    pub(super) fn hand_over(
        &mut self,
        number: u64,
        client: ClientId,
        mode: TakeMode,
        is_tied: bool,
    ) -> TaskRecord {
        let place = self.places[&number].clone();
        let settings = self.settings(&place);
        self.pay(number);
        self.note_waited(number);
        let task = self.task_mut(number);
        task.progress.attempts = task.progress.attempts.saturating_add(1);
        let popped = task.clone();
        let (ttr, otherwise) = match mode {
            TakeMode::Lease { ttr } => (ttr, None),
            TakeMode::Unheld { ttr, otherwise } => (ttr, Some(otherwise)),
            TakeMode::Pop => (None, None),
        };
        let is_held = mode == TakeMode::Pop && is_tied;
        if mode == TakeMode::Pop && !is_held {
            self.kept.pop(number);
            // It was taken and is acknowledged in one step, and leaves unchanged.
            self.pass_through_taken(number);
            self.finish(number, None);
            return popped;
        }
        self.last_grant += 1;
        let ttr = ttr.or(popped.terms.ttr).or(settings.ttr).or(otherwise).filter(|_| !is_held);
        let grant = Grant { incarnation: self.incarnation, serial: self.last_grant };
        let deadline = ttr.map(|ttr| self.now.after(ttr));
        let (is_tied, needs_receipt) = (is_tied && (ttr.is_some() || is_held), otherwise.is_some());
        let holder = Some(Holder { is_tied, needs_receipt, ..Holder::of(client) });
        let lease = Lease { grant, holder, deadline, ttr };
        self.shift(number, State::Taken(lease));
        self.begin_attempt(number);
        self.task(number).clone()
    }

    /// Counts a pop as R-T and the move that follows.
    fn pass_through_taken(&mut self, number: u64) {
        let grant = Grant { incarnation: self.incarnation, serial: 0 };
        let lease = Lease { grant, holder: None, deadline: None, ttr: None };
        self.shift_only(number, State::Taken(lease));
        // It was never held.
        self.since.remove(&number);
    }

    /// Finishes a task as the settings of its queue say.
    pub(super) fn finish(&mut self, number: u64, zombie: Option<Span>) {
        let setting = self.settings(&self.places[&number]).after_ack;
        self.how = How::Acked;
        self.note_share(number, |happened| happened.acked += 1);
        match zombie.map_or(setting, AfterAck::Zombie) {
            AfterAck::Delete => self.leave(number, Exit::Acked),
            AfterAck::Keep => {
                self.forget_the_way(number);
                self.shift(number, State::Done);
            }
            AfterAck::Zombie(stay) => {
                self.forget_the_way(number);
                self.shift(number, State::Zombie { purge_at: self.now.after(stay) });
            }
        }
    }
}
