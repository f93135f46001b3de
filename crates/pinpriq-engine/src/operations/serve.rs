//! Hands out ready tasks to the consumers that wait: subscriptions, credits, blocked takers.
//!
//! The invariant: there is never both a selectable task and a consumer that could have it. When a
//! task becomes ready in a queue with waiting consumers, `wake` records the queue. `serve` serves
//! it before the call into the engine ends. By then all tasks of one moment are ready, so priority
//! decides. Kicks and the ends of tied leases are exceptions: there, each task is handed out before
//! the next one is ready. Consumers are served in the order in which they became ready, over all
//! these queues together. Which task a consumer gets is decided in `take.rs`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::engine::{Answered, Engine};
use crate::memory::consumers::{ConsumerId, Subscription, Taker, TakerId, Ticket};
use crate::memory::deadlines::Due;
use crate::memory::packed::Task;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::{bad, check_positive};
use crate::operations::fail::Failure;
use crate::operations::take::Want;
use crate::transition::Operation;
use pinpriq_proto::command::{QueueName, Selection, TakeMode};
use pinpriq_proto::limits::{WAIT_OVERHEAD_BYTES, queue_bytes};
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::task::{Bytes, ClientId, Farewell, Lease, RequestId, StateKind, reasons};
use pinpriq_proto::time::Span;

impl Engine {
    /// Records that a queue has a new ready task, or may hand out tasks again.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    pub(crate) fn wake(&mut self, slot: QueueSlot) {
        let queue = &mut self.queues[slot];
        if !queue.waiting.is_empty() && !queue.to_be_served {
            queue.to_be_served = true;
            self.unserved.push(slot);
        }
    }

    /// Serves every recorded queue. Each task goes to at most one consumer.
    #[inline]
    pub(crate) fn serve(&mut self) {
        // Usually there are no waiters.
        if !self.unserved.is_empty() {
            self.serve_recorded();
        }
    }

    #[inline(never)]
    fn serve_recorded(&mut self) {
        // The first consumer in line of each queue.
        let mut lines = BinaryHeap::new();
        loop {
            while let Some(queue) = self.unserved.pop() {
                self.line_up(queue, &mut lines);
            }
            let Some(Reverse((ticket, queue))) = lines.pop() else { return };
            // A consumer may wait for several queues, so another one may be the first in line by
            // now.
            match self.next_consumer(queue) {
                Some((first, ConsumerId::Taker(taker))) if first == ticket => {
                    self.serve_taker(taker);
                }
                Some((first, ConsumerId::Subscriber(client))) if first == ticket => {
                    self.deliver(client, queue);
                }
                Some((first, ConsumerId::Recaller)) if first == ticket => self.exchange(queue),
                _ => {}
            }
            self.line_up(queue, &mut lines);
        }
    }

    /// Records which consumer is next in a queue, or that the queue is served for now.
    fn line_up(&mut self, queue: QueueSlot, lines: &mut BinaryHeap<Reverse<(Ticket, QueueSlot)>>) {
        if let Some((ticket, _)) = self.next_consumer(queue) {
            lines.push(Reverse((ticket, queue)));
        } else {
            self.queues[queue].to_be_served = false;
            self.tidy_queue(queue);
        }
    }

    pub(crate) fn subscribe(
        &mut self,
        client: ClientId,
        names: &[&[u8]],
        member: Option<&[u8]>,
        (selection, mode): (Selection, TakeMode),
        recalls: bool,
    ) -> Answered {
        self.check_subscribe(client, names, member, (selection, mode))?;
        if recalls && (mode == TakeMode::Pop || selection != Selection::DEFAULT) {
            let sentence = "what is popped, and what comes in another order, is not called back";
            return Err(bad(sentence.to_owned()));
        }
        for name in names {
            let queue = self.find_or_make(QueueName { name, member })?;
            self.note_life(queue);
            let credit = self.consumers.client(client).credit;
            let known = self.consumers.client(client).subscriptions.get(&queue).copied();
            let (served, ticket) = if let Some(known) = known {
                if let Some(ticket) = known.ticket {
                    self.queues[queue].waiting.remove(known.selection.narrow, ticket);
                }
                (known.served, known.ticket)
            } else {
                self.consumers.bytes += subscription_bytes(name);
                self.consumers.subscriptions += 1;
                self.queues[queue].subscribers.insert(client);
                let ticket = self.consumers.draw();
                (ticket, (credit > 0).then_some(ticket))
            };
            if let Some(ticket) = ticket {
                let consumer = ConsumerId::Subscriber(client);
                self.queues[queue].waiting.insert(selection.narrow, ticket, consumer);
                self.wake(queue);
            }
            let subscription = Subscription { selection, mode, recalls, ticket, served };
            self.consumers.client(client).subscriptions.insert(queue, subscription);
        }
        let count = self.consumers.client(client).subscriptions.len();
        Ok(Some(Reply::Count(count as u64)))
    }

    pub(crate) fn unsubscribe(
        &mut self,
        client: ClientId,
        names: &[&[u8]],
        member: Option<&[u8]>,
    ) -> Answered {
        if names.is_empty() && member.is_some() {
            return Err(bad("name the topics of the member, or leave it out".to_owned()));
        }
        self.find_lanes(names, member)?;
        let mut queues = if names.is_empty() { self.subscribed(client) } else { Vec::new() };
        for name in names {
            queues.extend(self.find_queue(QueueName { name, member })?);
        }
        for queue in &queues {
            self.end_subscription(client, *queue);
        }
        self.call_back_from(client, &queues);
        let left = self.consumers.clients.get(&client).map_or(0, |c| c.subscriptions.len());
        self.consumers.tidy(client);
        Ok(Some(Reply::Count(left as u64)))
    }

    /// Returns the queues that a client is subscribed to.
    fn subscribed(&self, client: ClientId) -> Vec<QueueSlot> {
        let known = self.consumers.clients.get(&client).map(|known| known.subscriptions.keys());
        known.into_iter().flatten().copied().collect()
    }

    /// Adds credit, which never exceeds [`u32::MAX`]. The reply contains the credit before the
    /// deliveries that it causes, and is sent before them.
    pub(crate) fn credit(
        &mut self,
        client: ClientId,
        request: RequestId,
        credits: u32,
    ) -> Answered {
        if credits == 0 {
            return Err(bad("the credit must be at least 1".to_owned()));
        }
        let known = self.consumers.client(client);
        let was_idle = known.credit == 0;
        known.credit = known.credit.saturating_add(credits);
        known.holds = false;
        let credit = known.credit;
        self.reply(client, request, Reply::Count(u64::from(credit)));
        if was_idle {
            self.join_lines(client);
        }
        Ok(None)
    }

    /// Replaces the credit.
    pub(crate) fn permit(&mut self, client: ClientId, credits: u32, holds: bool) -> Reply {
        let known = self.consumers.client(client);
        known.holds = holds;
        let former = std::mem::replace(&mut known.credit, credits);
        match (former, credits) {
            (0, 1..) => self.join_lines(client),
            (1.., 0) => self.leave_lines(client),
            _ => {}
        }
        self.consumers.tidy(client);
        Reply::Done
    }

    /// Returns the task that the subscriptions of a client would be sent next, if it has any.
    pub(crate) fn next_to_deliver(&mut self, client: ClientId) -> Option<Slot> {
        let known = self.consumers.clients.get(&client)?;
        let subscriptions = known.subscriptions.iter();
        let mut queues: Vec<(Ticket, QueueSlot, Selection)> =
            subscriptions.map(|(queue, it)| (it.served, *queue, it.selection)).collect();
        queues.sort_unstable_by_key(|(served, ..)| *served);
        queues.into_iter().find_map(|(_, queue, selection)| {
            let task = self.first_to_take(queue, selection)?;
            (!self.has_ended(queue)).then_some(task)
        })
    }

    /// The subscriptions of a client.
    #[must_use]
    pub fn subscriptions_of(&self, client: ClientId) -> Vec<Subscribed> {
        let known = self.consumers.clients.get(&client);
        let subscriptions = known.into_iter().flat_map(|known| &known.subscriptions);
        let named = subscriptions.map(|(slot, it)| {
            let names = self.queues[*slot].names();
            let member = names.lane.map(|lane| lane.member.clone());
            let (queue, selection, mode) = (names.queue.clone(), it.selection, it.mode);
            Subscribed { queue, member, selection, mode, recall: it.recalls }
        });
        named.collect()
    }

    pub(crate) fn end_subscription(&mut self, client: ClientId, queue: QueueSlot) {
        let Some(known) = self.consumers.clients.get_mut(&client) else { return };
        let Some(subscription) = known.subscriptions.remove(&queue) else { return };
        if let Some(ticket) = subscription.ticket {
            self.queues[queue].waiting.remove(subscription.selection.narrow, ticket);
        }
        self.queues[queue].subscribers.remove(&client);
        self.consumers.subscriptions -= 1;
        self.consumers.bytes -= subscription_bytes(&self.queues[queue].name);
        self.tidy_queue(queue);
    }

    /// Removes a blocked taker from every line.
    pub(crate) fn remove_taker(&mut self, id: TakerId) -> Option<Taker> {
        let taker = self.consumers.takers.remove(&id)?;
        self.consumers.echoes -= u64::from(taker.standing.is_echo);
        if let Some(at) = taker.until {
            // When its time is up, the deadline was removed already.
            if self.deadlines.contains(at, Due::Taker(id)) {
                self.deadlines.remove(at, Due::Taker(id));
            }
        }
        self.consumers.bytes -= self.taker_bytes(&taker.queues);
        for queue in &taker.queues {
            self.queues[*queue].waiting.remove(taker.selection.narrow, taker.ticket);
            self.tidy_queue(*queue);
        }
        if let Some(client) = self.consumers.clients.get_mut(&taker.client) {
            client.takers.remove(&id);
        }
        self.consumers.tidy(taker.client);
        Some(taker)
    }

    /// Returns the next consumer for the tasks of a queue, if there is a task and a consumer for
    /// it.
    fn next_consumer(&mut self, slot: QueueSlot) -> Option<(Ticket, ConsumerId)> {
        let queue = &self.queues[slot];
        // The waits for the lane of a member that has ended are about to end.
        if queue.waiting.is_empty() || queue.paused.output.is_on() || self.has_ended(slot) {
            return None;
        }
        // Only tasks that are still alive count. Asking for the first one also removes those that
        // are not. A queue that is to be served never loses its object.
        let narrow = Selection { narrow: true, ..Selection::DEFAULT };
        let has_narrow = self.select(slot, narrow).is_some();
        let has_any = has_narrow || self.select(slot, Selection::DEFAULT).is_some();
        if has_any && !self.is_open(slot) {
            self.note_shut(slot);
            self.await_token(slot);
            return self.recaller(slot);
        }
        let next = if self.room == Room::Least {
            self.first_who_pops(slot, has_narrow, has_any)
        } else {
            self.queues[slot].waiting.first(has_narrow, has_any)
        };
        if next.is_some() {
            return next;
        }
        if self.has_turns(slot) {
            self.await_opening(slot);
        }
        self.recaller(slot)
    }

    /// Like [`Self::next_consumer`], but for pops only, while no lease is granted. Costs a step for
    /// each consumer that waits for a lease.
    fn first_who_pops(
        &self,
        slot: QueueSlot,
        has_narrow: bool,
        has_any: bool,
    ) -> Option<(Ticket, ConsumerId)> {
        let waiting = &self.queues[slot].waiting;
        let pops = |consumer: &ConsumerId| {
            let mode = match consumer {
                ConsumerId::Taker(taker) => self.consumers.takers.get(taker).map(|it| it.mode),
                ConsumerId::Subscriber(client) => {
                    let known = self.consumers.clients.get(client);
                    known.and_then(|it| it.subscriptions.get(&slot)).map(|it| it.mode)
                }
                ConsumerId::Recaller => None,
            };
            mode == Some(TakeMode::Pop)
        };
        let narrow = waiting.narrow.iter().filter(|_| has_narrow).find(|it| pops(it.1));
        let any = waiting.any.iter().filter(|_| has_any).find(|it| pops(it.1));
        narrow.into_iter().chain(any).min_by_key(|it| it.0).map(|(ticket, it)| (*ticket, *it))
    }

    fn serve_taker(&mut self, id: TakerId) {
        let Some(taker) = self.remove_taker_for_service(id) else {
            unreachable!("{id:?} is in line and unknown")
        };
        let Taker { client, selection, mode, standing, mut count, .. } = taker;
        let is_reserve = standing.reserve.is_some();
        let is_tied = is_reserve || (standing.is_share && mode == TakeMode::Pop);
        let want = Want { client, selection, mode, is_tied, recalls: false };
        let mut tasks = Vec::new();
        if is_reserve {
            tasks.extend(self.take_most_urgent(&taker.queues, want));
        } else {
            for queue in &taker.queues {
                self.collect(*queue, want, &mut count, &mut tasks);
            }
        }
        for queue in &taker.queues {
            self.queues[*queue].pins -= 1;
            self.tidy_queue(*queue);
        }
        assert!(!tasks.is_empty(), "{id:?} was served by nothing");
        let popped = taker.pops();
        self.reply(taker.client, taker.request, Reply::Tasks { tasks, popped });
    }

    /// Removes a taker from every line, and pins its queues until it has been served.
    fn remove_taker_for_service(&mut self, id: TakerId) -> Option<Taker> {
        let queues = self.consumers.takers.get(&id)?.queues.clone();
        for queue in queues {
            self.queues[queue].pins += 1;
        }
        self.remove_taker(id)
    }

    /// Makes one delivery from this queue, which has a task for this client.
    fn deliver(&mut self, client: ClientId, queue: QueueSlot) {
        let subscription = self.consumers.client(client).subscriptions.get(&queue).copied();
        let Some(subscription) = subscription else {
            unreachable!("{client:?} is in line and not subscribed")
        };
        let (selection, mode) = (subscription.selection, subscription.mode);
        let mut tasks = Vec::new();
        let is_held = mode == TakeMode::Pop && self.consumers.client(client).holds;
        let recalls = subscription.recalls;
        let want = Want { client, selection, mode, is_tied: is_held, recalls };
        self.collect(queue, want, &mut 1, &mut tasks);
        assert!(!tasks.is_empty(), "{client:?} was served by nothing");
        let popped = mode == TakeMode::Pop && !is_held;
        self.outputs.push_back(Output::Delivery { client, tasks, popped });

        let served = self.consumers.draw();
        let known = self.consumers.client(client);
        known.credit -= 1;
        let credit = known.credit;
        if let Some(known) = known.subscriptions.get_mut(&queue) {
            known.served = served;
            if let Some(ticket) = known.ticket.replace(served) {
                let waiting = &mut self.queues[queue].waiting;
                waiting.remove(selection.narrow, ticket);
                waiting.insert(selection.narrow, served, ConsumerId::Subscriber(client));
            }
        }
        if credit == 0 {
            self.leave_lines(client);
        }
    }

    /// Gives a client that has credit now a place in the line of each of its queues, first in the
    /// line of the queue that served it least recently.
    pub(crate) fn join_lines(&mut self, client: ClientId) {
        let known = self.consumers.client(client);
        let mut queues: Vec<(Ticket, QueueSlot)> =
            known.subscriptions.iter().map(|(queue, known)| (known.served, *queue)).collect();
        queues.sort_unstable();
        for (_, queue) in queues {
            let ticket = self.consumers.draw();
            if let Some(known) = self.consumers.client(client).subscriptions.get_mut(&queue) {
                known.ticket = Some(ticket);
                let narrow = known.selection.narrow;
                let consumer = ConsumerId::Subscriber(client);
                self.queues[queue].waiting.insert(narrow, ticket, consumer);
                self.wake(queue);
            }
        }
    }

    /// Removes a client without credit from every line.
    fn leave_lines(&mut self, client: ClientId) {
        let Some(known) = self.consumers.clients.get_mut(&client) else { return };
        for (queue, subscription) in &mut known.subscriptions {
            if let Some(ticket) = subscription.ticket.take() {
                self.queues[*queue].waiting.remove(subscription.selection.narrow, ticket);
            }
        }
    }

    fn check_subscribe(
        &mut self,
        client: ClientId,
        names: &[&[u8]],
        member: Option<&[u8]>,
        (selection, mode): (Selection, TakeMode),
    ) -> Result<(), Refusal> {
        if names.is_empty() {
            return Err(bad("a subscription needs a queue".to_owned()));
        }
        check_positive("the TTR", mode.ttr())?;
        self.moment("the TTR", mode.ttr().unwrap_or(Span::ZERO))?;
        let most = self.limits.queues_per_client_max;
        let mut fresh: BTreeSet<&[u8]> = BTreeSet::new();
        for name in names {
            let slot = self.find_queue(QueueName { name, member })?;
            let known = self.consumers.clients.get(&client);
            let is_known = slot.is_some_and(|slot| {
                known.is_some_and(|known| known.subscriptions.contains_key(&slot))
            });
            if !is_known {
                fresh.insert(name);
            }
        }
        self.check_order(names, member, selection)?;
        let known = self.consumers.clients.get(&client);
        let total = known.map_or(0, |known| known.subscriptions.len()) + fresh.len();
        if total > most {
            return Err(Refusal::new(
                RefusalKind::Busy,
                format!("a connection has at most {most} subscriptions, and these make {total}"),
            ));
        }
        self.check_waiting_room(fresh.into_iter().map(subscription_bytes).sum())
    }
}

/// A subscription, as a client has asked for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subscribed {
    /// The queue, or the topic.
    pub queue: Bytes,
    /// If given, the lane of this member is meant.
    pub member: Option<Bytes>,
    /// What a delivery contains.
    pub selection: Selection,
    /// Whether a delivery is leased or popped.
    pub mode: TakeMode,
    /// Whether a delivery can be called back until it is started.
    pub recall: bool,
}

/// The number of bytes that a subscription to a queue of this name counts.
pub(crate) const fn subscription_bytes(name: &[u8]) -> u64 {
    WAIT_OVERHEAD_BYTES + queue_bytes(name.len())
}

impl Engine {
    /// Forgets everything about a client, and ends the leases that depend on its connection.
    pub(crate) fn forget_client(&mut self, client: ClientId, farewell: Farewell<'_>) {
        let Some(known) = self.consumers.clients.get_mut(&client) else { return };
        known.credit = 0;
        let takers: Vec<TakerId> = known.takers.iter().copied().collect();
        let awaiters: Vec<_> = known.awaiters.iter().copied().collect();
        let putters: Vec<_> = known.putters.iter().copied().collect();
        let leases = std::mem::take(&mut known.leases);
        let unstarted = std::mem::take(&mut known.unstarted);
        for queue in self.subscribed(client) {
            self.end_subscription(client, queue);
        }
        for taker in takers {
            self.remove_taker(taker);
        }
        for awaiter in awaiters {
            self.remove_awaiter(awaiter);
        }
        for putter in putters {
            self.remove_putter(putter);
        }
        for (_, number) in unstarted {
            if let Some(slot) = self.live(number) {
                self.take_back(slot);
            }
        }
        for number in leases {
            self.end_with_connection(number, farewell);
        }
    }

    /// Ends the leases that are tied to the connection of a client that was forgotten, in the order
    /// in which they were granted. Who waits gets each task before the next one is ready.
    pub(crate) fn end_tied(&mut self, client: ClientId, farewell: Farewell<'_>) {
        for number in self.tied_in_order(client) {
            self.end_with_connection(number, farewell);
            self.serve();
        }
        self.consumers.clients.remove(&client);
    }

    /// Returns the numbers of the tasks whose leases are tied to the connection of a client, in the
    /// order in which they were granted.
    pub(crate) fn tied_in_order(&self, client: ClientId) -> Vec<u64> {
        let tied = self.consumers.clients.get(&client).map(|known| known.tied.iter());
        let live = tied.into_iter().flatten().filter_map(|(_, number)| self.live(*number));
        let granted =
            |slot: Slot| Some((self.tasks[slot].lease()?.grant, self.tasks[slot].number()));
        let mut granted: Vec<_> = live.filter_map(granted).collect();
        granted.sort_unstable();
        granted.into_iter().map(|(_, number)| number).collect()
    }

    /// Ends the lease of a task, since the connection of its holder has ended.
    fn end_with_connection(&mut self, number: u64, farewell: Farewell<'_>) {
        if let Some(slot) = self.live(number) {
            debug_assert_eq!(self.tasks[slot].kind(), StateKind::Taken, "a lease is held");
            if is_unsent(&self.tasks[slot], farewell) {
                let is_refunded = farewell != Farewell::ServerStops;
                let charged = if is_refunded { self.charged(slot) } else { None };
                if is_refunded {
                    self.refund(self.tasks[slot].queue, self.tasks[slot].cost());
                }
                self.end_lease(slot, Operation::HolderGone);
                self.uncharge_turn(charged);
            } else {
                let failure = Failure::at(self.now, reasons::CONNECTION_CLOSED);
                self.fail(slot, Operation::HolderGone, failure);
            }
        }
    }
}

/// Whether the end of a connection is no failure of this task, which it had taken.
fn is_unsent(task: &Task, farewell: Farewell<'_>) -> bool {
    match farewell {
        Farewell::ServerStops => true,
        Farewell::Ended { unsent } => {
            // It was held for a pop that has not chosen it.
            if task.lease().is_some_and(Lease::is_held_for_pop) {
                return true;
            }
            let grant = task.lease().map(|lease| lease.grant);
            unsent.iter().any(|it| it.number == task.number() && Some(it.grant) == grant)
        }
    }
}
