//! Taking, popping and peeking: all commands that select tasks.

use std::collections::BTreeSet;

use crate::engine::{Answered, Engine};
use crate::memory::consumers::{Client, ConsumerId, Standing, Taker, TakerId};
use crate::memory::deadlines::Due;
use crate::memory::packed::Unsaved;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::{bad, check_count, check_id, check_positive};
use crate::transition::Operation;
use pinpriq_proto::command::{End, Order, Peek, QueueName, Selection, Take, TakeMode, Wait};
use pinpriq_proto::limits::{TASKS_PER_ANSWER_MAX, WAIT_OVERHEAD_BYTES, queue_bytes};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::{ClientId, Holder, Lease, RequestId, State, StateKind, TaskRecord};
use pinpriq_proto::time::Timestamp;

/// What a consumer wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) client: ClientId,
    pub(crate) selection: Selection,
    pub(crate) mode: TakeMode,
    /// Whether the lease ends with the connection although it has a deadline. A pop holds the task
    /// under such a lease, without a deadline, until it is chosen.
    pub(crate) is_tied: bool,
    /// Whether the task can be called back until it is started.
    pub(crate) recalls: bool,
}

impl Want {
    /// A lease of what is taken in the usual order.
    pub(crate) const fn lease(client: ClientId, mode: TakeMode) -> Self {
        let selection = Selection::DEFAULT;
        Self { client, selection, mode, is_tied: false, recalls: false }
    }
}

impl Engine {
    pub(crate) fn take(
        &mut self,
        client: ClientId,
        request: RequestId,
        take: &Take<'_>,
    ) -> Answered {
        self.check_take(take)?;
        let (selection, mode) = (take.selection, take.mode);
        let want = Want { client, selection, mode, is_tied: false, recalls: false };
        self.find_lanes(take.queues, take.member)?;
        self.check_order(take.queues, take.member, selection)?;
        let mut tasks = Vec::new();
        let mut count = take.count;
        for name in take.queues {
            if let Some(queue) = self.find_queue(QueueName { name, member: take.member })? {
                self.note_life(queue);
                self.collect(queue, want, &mut count, &mut tasks);
            }
        }
        let popped = take.mode == TakeMode::Pop;
        let until = match take.wait {
            _ if !tasks.is_empty() => return Ok(Some(Reply::Tasks { tasks, popped })),
            Wait::No => return Ok(Some(Reply::Tasks { tasks, popped })),
            Wait::For(span) if span.is_zero() => {
                return Ok(Some(Reply::Tasks { tasks, popped }));
            }
            Wait::For(span) => Some(self.now.after(span)),
            Wait::Forever => None,
        };
        self.block_taker((client, request), take, until, Standing::default())
    }

    /// Lets a take wait until this moment at most.
    #[inline(never)]
    pub(crate) fn block_taker(
        &mut self,
        (client, request): (ClientId, RequestId),
        take: &Take<'_>,
        until: Option<Timestamp>,
        standing: Standing,
    ) -> Answered {
        self.check_waits(client, take_bytes(take.queues))?;
        let mut queues: Vec<QueueSlot> = Vec::with_capacity(take.queues.len());
        for name in take.queues {
            let queue = self.find_or_make(QueueName { name, member: take.member })?;
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
        let ticket = self.consumers.draw();
        let taker = TakerId(ticket.0);
        for queue in &queues {
            let waiting = &mut self.queues[*queue].waiting;
            waiting.insert(take.selection.narrow, ticket, ConsumerId::Taker(taker));
            self.make_way(*queue);
        }
        self.consumers.bytes += self.taker_bytes(&queues);
        if let Some(at) = until {
            self.deadlines.insert(at, Due::Taker(taker));
        }
        let (count, selection, mode) = (take.count, take.selection, take.mode);
        self.consumers.echoes += u64::from(standing.is_echo);
        self.consumers.takers.insert(
            taker,
            Taker { client, request, queues, count, selection, mode, until, ticket, standing },
        );
        self.consumers.client(client).takers.insert(taker);
        Ok(None)
    }

    pub(crate) fn peek(&mut self, peek: &Peek<'_>) -> Answered {
        check_count(u64::from(peek.count))?;
        let mut tasks = Vec::new();
        if let Some(slot) = self.find_queue(peek.queue)? {
            let Selection { from, order, narrow, .. } = peek.selection;
            let is_in_turn = from == End::Min && order == Order::Oldest;
            let first = if is_in_turn {
                self.note_openings(slot);
                self.next_there(slot, narrow)
            } else {
                None
            };
            let queue = &self.queues[slot];
            let count = (peek.count as usize).min(TASKS_PER_ANSWER_MAX);
            let shown = |slot: &Slot| !self.looks_gone(*slot);
            let record = |slot: Slot| self.tasks.record(slot, queue.names());
            // What a take would hand out now comes first, whatever its number.
            let others = queue.walk(peek.selection).filter(|slot| Some(*slot) != first);
            let ranked = first.into_iter().chain(others);
            match peek.state {
                None => {
                    let walk = ranked.filter(shown);
                    tasks.extend(walk.take(count).map(record));
                }
                Some(StateKind::Ready) => {
                    let unranked = queue.indexes.resting(StateKind::Ready).rev();
                    let walk = ranked.chain(unranked).filter(shown);
                    tasks.extend(walk.take(count).map(record));
                }
                Some(kind) => {
                    tasks.extend(queue.indexes.resting(kind).filter(shown).take(count).map(record));
                }
            }
        }
        Ok(Some(Reply::Shown(tasks)))
    }

    pub(crate) fn get(&mut self, queue: QueueName<'_>, id: &[u8]) -> Answered {
        check_id(id)?;
        let record = self.find_task(queue, id)?.map(|slot| {
            Box::new(self.tasks.record(slot, self.queues[self.tasks[slot].queue].names()))
        });
        if record.is_none()
            && let Some((_, ending)) = self.ending_of(queue, id)
        {
            return Ok(Some(Reply::Ended(Box::new(ending))));
        }
        Ok(Some(Reply::Task(record)))
    }

    /// Takes up to `count` tasks or groups from one queue, and reduces `count` accordingly.
    pub(crate) fn collect(
        &mut self,
        queue: QueueSlot,
        want: Want,
        count: &mut u32,
        taken: &mut Vec<TaskRecord>,
    ) {
        if self.queues[queue].paused.output.is_on() {
            return;
        }
        let epoch = self.queues[queue].epoch;
        while *count > 0 && taken.len() < TASKS_PER_ANSWER_MAX {
            let Some(slot) = self.select(queue, want.selection) else { return };
            if !self.is_open(queue) {
                self.note_shut(queue);
                return;
            }
            *count -= 1;
            let companions = match self.tasks[slot].key() {
                Some(key) if want.selection.group && !self.fixes_order(queue) => {
                    let group = self.queues[queue].indexes.group(key, want.selection, &self.tasks);
                    self.by_rank(queue, want.selection, group)
                }
                _ => Vec::new(),
            };
            if taken.capacity() == 0 {
                // Most takes return one task. Without this, the vector would reserve room for four.
                *taken = Vec::with_capacity(1 + companions.len());
            }
            taken.push(self.hand_over(slot, want));
            for companion in companions.into_iter().filter(|companion| *companion != slot) {
                if taken.len() >= TASKS_PER_ANSWER_MAX {
                    break;
                }
                if !self.is_open(queue) {
                    return;
                }
                let is_over = self.tasks[companion].is_expired(self.now);
                if is_over {
                    self.expire(companion);
                } else {
                    taken.push(self.hand_over(companion, want));
                }
            }
            // With its last task, the queue may end too.
            if *count == 0 || !self.queues.is_current(queue, epoch) {
                return;
            }
        }
    }

    /// Returns the task that a selection chooses. Removes the tasks before it whose TTL has passed.
    pub(crate) fn select(&mut self, queue: QueueSlot, selection: Selection) -> Option<Slot> {
        let epoch = self.queues[queue].epoch;
        loop {
            let owner = &self.queues[queue];
            let turns = owner.turns.as_ref();
            let slot = if turns.is_none_or(|turns| turns.follow_main_order(selection)) {
                owner.indexes.first(selection)?
            } else {
                self.next_by_turns(queue, selection)?
            };
            if !self.tasks[slot].is_expired(self.now) {
                return Some(slot);
            }
            self.expire(slot);
            // With its last task, the queue may end too.
            if !self.queues.is_current(queue, epoch) {
                return None;
            }
        }
    }

    /// Whether a passed deadline that was not fired yet would have removed this task.
    pub(crate) fn looks_gone(&self, slot: Slot) -> bool {
        let task = &self.tasks[slot];
        match task.state() {
            State::Ready | State::Waiting { .. } => task.is_expired(self.now),
            State::Zombie { purge_at } => self.now >= *purge_at,
            State::Taken(_) | State::Buried(_) | State::Done => false,
        }
    }

    /// Refuses another blocked request of `bytes` bytes if the client has as many as it may, or if
    /// all together would occupy too much.
    pub(crate) fn check_waits(&self, client: ClientId, bytes: u64) -> Result<(), Refusal> {
        let waits = self.consumers.clients.get(&client).map_or(0, Client::waits);
        if waits >= self.limits.waits_per_client_max {
            return Err(Refusal::new(
                RefusalKind::Busy,
                format!("this connection has {waits} blocked requests already"),
            ));
        }
        self.check_waiting_room(bytes)
    }

    /// Refuses consumers that need this many bytes, if there is not enough room for them.
    pub(crate) fn check_waiting_room(&self, bytes: u64) -> Result<(), Refusal> {
        let (occupied, most) = (self.consumers.bytes, self.limits.waiting_bytes_max);
        if occupied.saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::Busy,
            format!("blocked requests and subscriptions occupy {occupied} of {most} bytes"),
        ))
    }

    /// The number of bytes that a blocked taker of these queues counts.
    pub(crate) fn taker_bytes(&self, queues: &[QueueSlot]) -> u64 {
        let queues = queues.iter().map(|queue| queue_bytes(self.queues[*queue].name.len()));
        WAIT_OVERHEAD_BYTES + queues.sum::<u64>()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every take")]
    pub(crate) fn check_take(&self, take: &Take<'_>) -> Result<(), Refusal> {
        if take.queues.is_empty() {
            return Err(bad("a take needs a queue".to_owned()));
        }
        self.check_taken(take)
    }

    /// Checks a take like [`Engine::check_take`], but for whether it has a queue.
    pub(crate) fn check_taken(&self, take: &Take<'_>) -> Result<(), Refusal> {
        check_count(u64::from(take.count))?;
        let most = self.limits.queues_per_client_max;
        if take.queues.len() > most {
            let given = take.queues.len();
            return Err(bad(format!("one take names at most {most} queues, and this one {given}")));
        }
        self.check_ttr(take.mode)?;
        if let Wait::For(wait) = take.wait {
            self.moment("the wait", wait)?;
        }
        Ok(())
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every take")]
    pub(crate) fn check_ttr(&self, mode: TakeMode) -> Result<(), Refusal> {
        if let Some(ttr) = mode.ttr() {
            check_positive("the TTR", Some(ttr))?;
            self.moment("the TTR", ttr)?;
        }
        Ok(())
    }

    /// Moves a task from R to T under a new lease, or finishes it at once.
    pub(crate) fn hand_over(&mut self, slot: Slot, want: Want) -> TaskRecord {
        let task = &self.tasks[slot];
        let (queue, attempts) = (task.queue, task.attempts().saturating_add(1));
        let waited = self.now.since(task.ready_since());
        let can_shut = self.pay(slot, queue, waited);
        let is_held = want.mode == TakeMode::Pop && want.is_tied;
        match want.mode {
            TakeMode::Pop if !is_held => {
                if self.queues[queue].settings.after_ack != AfterAck::Delete {
                    self.tasks[slot].set_attempts(attempts);
                }
                let mut record = self.tasks.record(slot, self.queues[queue].names());
                record.progress.attempts = attempts;
                self.finish(slot, Operation::Pop, None);
                record
            }
            TakeMode::Lease { .. } | TakeMode::Unheld { .. } | TakeMode::Pop => {
                let lease = self.new_lease(slot, queue, want);
                if want.recalls {
                    self.hand_over_unstarted(slot, attempts, lease);
                } else {
                    self.shift_only(slot, Operation::Take, Unsaved::Grant, |task| {
                        task.set_attempts(attempts);
                        State::Taken(lease)
                    });
                    self.begin_attempt(slot, queue);
                }
                if can_shut {
                    self.count_taken(queue);
                }
                self.tasks.record(slot, self.queues[queue].names())
            }
        }
    }

    /// Returns a lease of a task of this queue that begins now.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every take")]
    pub(crate) fn new_lease(&mut self, slot: Slot, queue: QueueSlot, want: Want) -> Lease {
        let of_task = || self.tasks[slot].ttr().or(self.queues[queue].settings.ttr);
        let ttr = want.mode.ttr_over(of_task);
        let is_held = want.mode == TakeMode::Pop && want.is_tied;
        Lease {
            grant: self.issued.grant(),
            holder: Some(Holder {
                client: want.client,
                is_tied: want.is_tied && (ttr.is_some() || is_held),
                needs_receipt: matches!(want.mode, TakeMode::Unheld { .. }),
                is_unstarted: want.recalls,
            }),
            deadline: ttr.map(|ttr| self.now.after(ttr)),
            ttr,
        }
    }

    /// Moves a task from R to T of which the store hears when its holder starts it. A restart calls
    /// it back, and takes off the attempt, of which the highest count tells nothing.
    #[inline(never)]
    fn hand_over_unstarted(&mut self, slot: Slot, attempts: u32, lease: Lease) {
        let unsaved = if attempts == u32::MAX { Unsaved::Progress } else { Unsaved::Nothing };
        self.shift_only(slot, Operation::Take, unsaved, |task| {
            task.set_attempts(attempts);
            State::Taken(lease)
        });
    }
}

/// The number of bytes that a blocked take of queues of these names counts, each name once.
pub(crate) fn take_bytes(names: &[&[u8]]) -> u64 {
    let bytes = |name: &[u8]| queue_bytes(name.len());
    let queues = match names {
        [name] => bytes(name),
        names => names.iter().collect::<BTreeSet<_>>().into_iter().map(|name| bytes(name)).sum(),
    };
    WAIT_OVERHEAD_BYTES + queues
}
