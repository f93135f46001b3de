//! Selection, takes, and everybody who waits for tasks.

use pinpriq_engine::command::{
    Command, End, Order, Peek, QueueCommand, QueueName, Selection, Take, TakeMode, Wait,
};
use pinpriq_engine::fanout::MemberCommand;
use pinpriq_engine::limits::{NAME_BYTES_MAX, NARROW_PAYLOAD_BYTES_MAX, WAIT_OVERHEAD_BYTES};
use pinpriq_engine::reply::{Output, RefusalKind, Reply};
use pinpriq_engine::task::{ClientId, Grant, Lease, RequestId, State, StateKind, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};

use super::room::{queue_bytes, take_bytes};
use super::{Answer, Home, Model, fits, home_of, is_in};

/// A blocked take or pop.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub(super) turn: u64,
    pub(crate) client: ClientId,
    pub(super) request: RequestId,
    pub(super) queues: Vec<Home>,
    count: u32,
    selection: Selection,
    pub(super) mode: TakeMode,
    pub(super) until: Option<Timestamp>,
}

/// A subscription of one client to one queue.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    /// Since when it is ready for a task, among all who are.
    turn: u64,
    pub(crate) client: ClientId,
    pub(crate) queue: Home,
    selection: Selection,
    mode: TakeMode,
}

/// Who gets the next task.
enum Consumer {
    Taker(Taker),
    Subscriber(Subscription),
}

impl Model {
    /// The tasks that a selection may choose, in its order.
    fn selectable(&self, queue: &Home, selection: Selection) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.tasks.len())
            .filter(|at| self.is_in_sight(*at, queue, selection))
            .filter(|at| self.tasks[*at].priority.is_some())
            .collect();
        found.sort_by_key(|at| {
            let task = &self.tasks[*at];
            let priority = i128::from(task.priority.unwrap_or_default());
            let seq = i128::from(task.seq);
            let priority = if selection.from == End::Min { priority } else { -priority };
            let seq = if selection.order == Order::Oldest { seq } else { -seq };
            (priority, seq)
        });
        found
    }

    /// Whether a task is ready, unexpired, and small enough for who asks.
    fn is_in_sight(&self, at: usize, queue: &Home, selection: Selection) -> bool {
        let task = &self.tasks[at];
        let is_small = task.payload.len() <= NARROW_PAYLOAD_BYTES_MAX;
        is_in(task, queue)
            && task.state == State::Ready
            && !self.is_over(at)
            && (is_small || !selection.narrow)
    }

    /// The numbers of what goes along with the first choice, that one first.
    fn choose(&self, queue: &Home, selection: Selection) -> Vec<u64> {
        let ranked = self.selectable(queue, selection);
        let Some(first) = ranked.first().copied() else { return Vec::new() };
        let number = |at: usize| self.tasks[at].number;
        let Some(key) = self.tasks[first].key.clone().filter(|_| selection.group) else {
            return vec![number(first)];
        };
        let mut unranked: Vec<usize> = (0..self.tasks.len())
            .filter(|at| self.is_in_sight(*at, queue, selection))
            .filter(|at| self.tasks[*at].priority.is_none())
            .collect();
        unranked.sort_by_key(|at| std::cmp::Reverse(self.tasks[*at].seq));
        let has_key = |at: &usize| self.tasks[*at].key.as_ref() == Some(&key);
        ranked.into_iter().chain(unranked).filter(has_key).map(number).collect()
    }

    pub(super) fn take(&mut self, client: ClientId, request: RequestId, take: &Take<'_>) -> Answer {
        fits(!take.queues.is_empty() && take.count > 0)?;
        fits(take.queues.len() <= self.limits.queues_per_client_max)?;
        self.mode_fits(take.mode)?;
        if let Wait::For(wait) = take.wait {
            self.span_fits(Some(wait), true)?;
        }
        let names = self.homes(take.queues, take.member)?;
        for name in &names {
            self.note_life(name);
        }
        let tasks = self.collect(&names, client, take.selection, take.mode, take.count);
        let until = match take.wait {
            _ if !tasks.is_empty() => None,
            Wait::No | Wait::For(Span::ZERO) => None,
            Wait::For(span) => Some(Some(self.now.after(span))),
            Wait::Forever => Some(None),
        };
        let Some(until) = until else {
            return Ok(Some(Reply::Tasks { tasks, popped: take.mode == TakeMode::Pop }));
        };
        self.may_wait(client, take_bytes(&names))?;
        let turn = self.draw();
        let (count, selection, mode) = (take.count, take.selection, take.mode);
        let taker = Taker { turn, client, request, queues: names, count, selection, mode, until };
        self.takers.push(taker);
        Ok(None)
    }

    pub(super) fn peek(&mut self, peek: &Peek<'_>) -> Answer {
        fits(peek.count > 0)?;
        let home = self.home(peek.queue)?;
        let mut shown: Vec<usize> = match peek.state {
            None | Some(StateKind::Ready) => self.selectable(&home, peek.selection),
            Some(_) => Vec::new(),
        };
        if let Some(kind) = peek.state {
            let mut rest: Vec<usize> = (0..self.tasks.len())
                .filter(|at| is_in(&self.tasks[*at], &home))
                .filter(|at| self.tasks[*at].state.kind() == kind)
                .filter(|at| kind != StateKind::Ready || self.tasks[*at].priority.is_none())
                .collect();
            rest.sort_by_key(|at| self.tasks[*at].seq);
            if kind == StateKind::Ready {
                rest.reverse();
            }
            shown.extend(rest);
        }
        shown.truncate(peek.count as usize);
        let tasks = shown.into_iter().map(|at| self.tasks[at].clone()).collect();
        Ok(Some(Reply::Shown(tasks)))
    }

    /// Takes up to `count` tasks or groups, from one queue after the other.
    fn collect(
        &mut self,
        queues: &[Home],
        client: ClientId,
        selection: Selection,
        mode: TakeMode,
        count: u32,
    ) -> Vec<TaskRecord> {
        let mut tasks = Vec::new();
        let mut left = count;
        for queue in queues {
            while left > 0 && !self.paused(queue).output {
                let chosen = self.choose(queue, selection);
                if chosen.is_empty() {
                    break;
                }
                left -= 1;
                for number in chosen {
                    tasks.push(self.hand_over(number, client, mode));
                }
            }
        }
        tasks
    }

    fn hand_over(&mut self, number: u64, client: ClientId, mode: TakeMode) -> TaskRecord {
        let at = self.at(number).expect("a task that was chosen is there");
        let settings = self.settings(&home_of(&self.tasks[at]));
        self.tasks[at].attempts += 1;
        let popped = self.tasks[at].clone();
        if mode == TakeMode::Pop {
            self.kept.note_pop(number);
        }
        let ttr = match mode {
            TakeMode::Lease { ttr } => ttr.or(popped.ttr).or(settings.ttr),
            TakeMode::Pop => None,
        };
        if mode != TakeMode::Pop {
            self.last_grant += 1;
        }
        let grant = Grant { incarnation: self.incarnation, serial: self.last_grant };
        let deadline = ttr.map(|ttr| self.now.after(ttr));
        let lease = Lease { grant, holder: Some(client), deadline, ttr };
        self.shift(at, State::Taken(lease));
        if mode == TakeMode::Pop {
            // It was taken and is acknowledged in one step, and leaves as it was.
            self.finish(at, None);
            return popped;
        }
        self.tasks[at].clone()
    }

    fn mode_fits(&self, mode: TakeMode) -> Result<(), RefusalKind> {
        match mode {
            TakeMode::Lease { ttr } => self.span_fits(ttr, false),
            TakeMode::Pop => Ok(()),
        }
    }

    pub(super) fn subscribe(
        &mut self,
        client: ClientId,
        queues: &[&[u8]],
        member: Option<&[u8]>,
        (selection, mode): (Selection, TakeMode),
    ) -> Answer {
        fits(!queues.is_empty())?;
        self.mode_fits(mode)?;
        let homes = self.homes(queues, member)?;
        let mut all = self.subscribed(client);
        all.extend(homes.iter().cloned());
        all.sort();
        all.dedup();
        if all.len() > self.limits.queues_per_client_max {
            return Err(RefusalKind::Busy);
        }
        let former = self.subscribed(client);
        let fresh = all.iter().filter(|home| !former.contains(home));
        let bytes = fresh.map(|home| WAIT_OVERHEAD_BYTES + queue_bytes(&home.name)).sum();
        self.has_waiting_room(bytes)?;
        for queue in homes {
            self.note_life(&queue);
            let known = self
                .subscriptions
                .iter_mut()
                .find(|known| known.client == client && known.queue == queue);
            if let Some(known) = known {
                (known.selection, known.mode) = (selection, mode);
            } else {
                let turn = self.draw();
                self.subscriptions.push(Subscription { turn, client, queue, selection, mode });
            }
        }
        Ok(Some(Reply::Count(all.len() as u64)))
    }

    pub(super) fn unsubscribe(
        &mut self,
        client: ClientId,
        queues: &[&[u8]],
        member: Option<&[u8]>,
    ) -> Answer {
        fits(!(queues.is_empty() && member.is_some()))?;
        let homes = self.homes(queues, member)?;
        self.subscriptions.retain(|known| {
            known.client != client || !(homes.is_empty() || homes.contains(&known.queue))
        });
        Ok(Some(Reply::Count(self.subscribed(client).len() as u64)))
    }

    /// The queues of these names, or the lanes of a member in these topics.
    fn homes(&self, names: &[&[u8]], member: Option<&[u8]>) -> Result<Vec<Home>, RefusalKind> {
        names.iter().map(|name| self.home(QueueName { name, member })).collect()
    }

    fn subscribed(&self, client: ClientId) -> Vec<Home> {
        let own = self.subscriptions.iter().filter(|known| known.client == client);
        own.map(|known| known.queue.clone()).collect()
    }

    pub(super) fn credit(&mut self, client: ClientId, request: RequestId, credits: u32) -> Answer {
        fits(credits > 0)?;
        let credit = self.credits.entry(client).or_default();
        let was_idle = *credit == 0;
        *credit = credit.saturating_add(credits);
        let credit = *credit;
        self.reply(client, request, Reply::Count(u64::from(credit)));
        if was_idle {
            // It becomes ready now, the queue that served it least recently first.
            let mut own: Vec<usize> = (0..self.subscriptions.len())
                .filter(|at| self.subscriptions[*at].client == client)
                .collect();
            own.sort_by_key(|at| self.subscriptions[*at].turn);
            for at in own {
                self.subscriptions[at].turn = self.draw();
            }
        }
        Ok(None)
    }

    /// Hands out what can be handed out, to whoever has been ready longest.
    pub(super) fn serve(&mut self) {
        while let Some(consumer) = self.next_consumer() {
            match consumer {
                Consumer::Taker(taker) => {
                    self.takers.retain(|known| known.turn != taker.turn);
                    let (client, mode) = (taker.client, taker.mode);
                    let tasks =
                        self.collect(&taker.queues, client, taker.selection, mode, taker.count);
                    let popped = mode == TakeMode::Pop;
                    self.reply(client, taker.request, Reply::Tasks { tasks, popped });
                }
                Consumer::Subscriber(known) => {
                    let client = known.client;
                    let queues = [known.queue.clone()];
                    let tasks = self.collect(&queues, client, known.selection, known.mode, 1);
                    let popped = known.mode == TakeMode::Pop;
                    self.outputs.push(Output::Delivery { client, tasks, popped });
                    *self.credits.get_mut(&client).expect("it had credit") -= 1;
                    let turn = self.draw();
                    let served = self.subscriptions.iter_mut().find(|own| own.turn == known.turn);
                    served.expect("it is subscribed").turn = turn;
                }
            }
        }
    }

    /// The consumer with the longest wait among those for whom there is a task.
    fn next_consumer(&self) -> Option<Consumer> {
        let has = |queue: &Home, selection| {
            (queue.lane.is_none() || self.is_lane(queue))
                && !self.paused(queue).output
                && !self.selectable(queue, selection).is_empty()
        };
        let taker = self
            .takers
            .iter()
            .filter(|taker| taker.queues.iter().any(|queue| has(queue, taker.selection)))
            .min_by_key(|taker| taker.turn);
        let subscriber = self
            .subscriptions
            .iter()
            .filter(|known| self.credits.get(&known.client).is_some_and(|credit| *credit > 0))
            .filter(|known| has(&known.queue, known.selection))
            .min_by_key(|known| known.turn);
        match (taker, subscriber) {
            (Some(taker), Some(known)) if known.turn < taker.turn => {
                Some(Consumer::Subscriber(known.clone()))
            }
            (Some(taker), _) => Some(Consumer::Taker(taker.clone())),
            (None, known) => known.cloned().map(Consumer::Subscriber),
        }
    }
}

/// No name of a queue is too long.
pub(super) fn names_fit(command: &Command<'_>) -> Result<(), RefusalKind> {
    let names: Vec<&[u8]> = match command {
        Command::Put(put) => vec![put.queue],
        Command::Take(take) => take.queues.iter().copied().chain(take.member).collect(),
        Command::Subscribe { queues, member, .. } | Command::Unsubscribe { queues, member } => {
            queues.iter().copied().chain(*member).collect()
        }
        Command::Peek(peek) => both(peek.queue),
        Command::Get { queue, .. }
        | Command::Kill { queue, .. }
        | Command::Queue(QueueCommand::Show(queue)) => both(*queue),
        Command::Publish(publish) => vec![publish.topic],
        Command::Member(command) => match command {
            MemberCommand::Join { topic, member, .. }
            | MemberCommand::LeaveTopic { topic, member } => vec![topic, member],
            MemberCommand::Beat { member: name, .. }
            | MemberCommand::Leave(name)
            | MemberCommand::List(name) => vec![name],
        },
        // The other commands are not tried with such names.
        _ => Vec::new(),
    };
    fits(names.iter().all(|name| name.len() <= NAME_BYTES_MAX))
}

fn both(queue: QueueName<'_>) -> Vec<&[u8]> {
    std::iter::once(queue.name).chain(queue.member).collect()
}
