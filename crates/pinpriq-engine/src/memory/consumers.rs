//! Everyone who waits: blocked takers, subscribers with their credits, awaiters, and puts that wait
//! for room, which are in `putters.rs`.
//!
//! A consumer holds one ticket for each queue that it waits for. Tickets only grow, so the lowest
//! ticket is the one that became ready first. Tasks are handed out in `serve.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::putters::{PutterId, Putters};
use crate::memory::slots::QueueSlot;
use pinpriq_proto::batches::BatchShown;
use pinpriq_proto::command::{Selection, TakeMode};
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::reply::{Outcome, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, StateKind, TaskId};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::unique::{Awaited, PutUnique};

/// A place in the line of consumers that wait. Never issued twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Ticket(pub(crate) u64);

impl Ticket {
    /// The place of the grant of this number among those to be called back, which comes behind
    /// everyone who has credit.
    pub(crate) const fn to_recall(grant: u64) -> Self {
        Self(1 << 63 | grant)
    }
}

/// A blocked take or pop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TakerId(pub(crate) u64);

/// A blocked await.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct AwaiterId(pub(crate) u64);

/// A consumer that waits for tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConsumerId {
    /// A blocked take or pop.
    Taker(TakerId),
    /// A subscriber with credit.
    Subscriber(ClientId),
    /// A subscriber that gets a more urgent task for one that it has not started.
    Recaller,
}

/// A blocked take or pop.
#[derive(Debug)]
pub(crate) struct Taker {
    pub(crate) client: ClientId,
    pub(crate) request: RequestId,
    /// The queues in the order in which they are tried.
    pub(crate) queues: Vec<QueueSlot>,
    pub(crate) count: u32,
    pub(crate) selection: Selection,
    pub(crate) mode: TakeMode,
    /// When it is looked at again, at the latest.
    pub(crate) until: Option<Timestamp>,
    /// Its place in each of its queues.
    pub(crate) ticket: Ticket,
    pub(crate) standing: Standing,
}

impl Taker {
    /// Whether what it is handed is popped at once.
    pub(crate) fn pops(&self) -> bool {
        self.mode == TakeMode::Pop && !self.standing.is_share
    }
}

/// What sets a blocked take apart from others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// For a reserve: how long it waits.
    pub(crate) reserve: Option<Patience>,
    /// Whether its client may wait for the same in other engines.
    pub(crate) is_share: bool,
    /// Whether another engine counts it.
    pub(crate) is_echo: bool,
}

/// How long a blocked reserve waits: until this moment, if ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Patience {
    pub(crate) until: Option<Timestamp>,
}

/// A blocked await, or a put that waits for its task to be finished.
#[derive(Debug)]
pub(crate) struct Awaiter {
    pub(crate) client: ClientId,
    pub(crate) request: RequestId,
    /// The number of the task.
    pub(crate) number: u64,
    pub(crate) until: Option<Timestamp>,
    /// For a put: what to return with the outcome.
    pub(crate) put: Option<PutAwaited>,
    /// Whether the reply tells what has come of the work.
    pub(crate) wants_result: bool,
}

/// How a task has ended, for those who wait for that.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Its state; `None` if it has left its queue.
    pub(crate) state: Option<StateKind>,
    /// What has come of the work, if that was said.
    pub(crate) result: Option<Bytes>,
    /// The batch, for those that wait for one.
    pub(crate) batch: Option<Box<BatchShown>>,
}

/// A reply, with what has come of the work if that is wanted.
pub(crate) fn with_result(reply: Reply, is_wanted: bool, result: Option<Bytes>) -> Reply {
    if is_wanted { Reply::WithResult { reply: Box::new(reply), result } } else { reply }
}

/// What a put returns with the outcome of its task.
#[derive(Debug)]
pub(crate) struct PutAwaited {
    pub(crate) id: TaskId,
    /// For a unique task: whether it was a new one.
    pub(crate) unique: Option<bool>,
}

impl PutAwaited {
    /// The reply to the put.
    pub(crate) fn reply(self, outcome: Outcome) -> Reply {
        let Self { id, unique } = self;
        match unique {
            None => Reply::PutOutcome(id, outcome),
            Some(new) => Reply::PutUnique(PutUnique { id, new, awaited: Awaited::Known(outcome) }),
        }
    }
}

/// A subscription of one client to one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    pub(crate) selection: Selection,
    pub(crate) mode: TakeMode,
    /// Whether a delivery can be called back until it is started.
    pub(crate) recalls: bool,
    /// Its place in the line, while there is credit.
    pub(crate) ticket: Option<Ticket>,
    /// The ticket that was drawn when it was last served, or when it began if it was never served.
    pub(crate) served: Ticket,
}

/// How a lease depends on the connection of its holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bond {
    /// It has no deadline.
    Lasting,
    /// It ends at this moment at the latest.
    Until(Timestamp),
    /// It is that of a delivery from this queue that was not started.
    Unstarted(QueueSlot),
}

/// What the engine stores for a connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) credit: u32,
    /// Whether deliveries for this credit that pop hold their tasks first.
    pub(crate) holds: bool,
    pub(crate) subscriptions: BTreeMap<QueueSlot, Subscription>,
    pub(crate) takers: BTreeSet<TakerId>,
    pub(crate) awaiters: BTreeSet<AwaiterId>,
    pub(crate) putters: BTreeSet<PutterId>,
    /// The numbers of the tasks that it holds as long as it is connected.
    pub(crate) leases: BTreeSet<u64>,
    /// The numbers of the tasks that it holds as long as it is connected, and at most until this
    /// moment.
    pub(crate) tied: BTreeSet<(Timestamp, u64)>,
    /// What was delivered to it and not started: the queues, and the numbers of the tasks.
    pub(crate) unstarted: BTreeSet<(QueueSlot, u64)>,
}

/// Everyone who waits, in one shard.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    pub(crate) clients: BTreeMap<ClientId, Client>,
    pub(crate) takers: BTreeMap<TakerId, Taker>,
    pub(crate) awaiters: BTreeMap<AwaiterId, Awaiter>,
    /// Awaiters by the number of their task.
    pub(crate) awaited: BTreeSet<(u64, AwaiterId)>,
    pub(crate) putters: Putters,
    /// The number of awaiters and of puts that wait for room: of those to whom it may matter that a
    /// task is finished.
    pub(crate) watchers: usize,
    /// See [`crate::Engine::waiting_bytes`].
    pub(crate) bytes: u64,
    /// The number of subscriptions.
    pub(crate) subscriptions: u64,
    /// The number of takers that another engine counts.
    pub(crate) echoes: u64,
    last_ticket: u64,
}

impl Client {
    /// Whether nothing about this client needs to be stored.
    pub(crate) fn is_idle(&self) -> bool {
        self.credit == 0
            && self.subscriptions.is_empty()
            && self.takers.is_empty()
            && self.awaiters.is_empty()
            && self.putters.is_empty()
            && self.leases.is_empty()
            && self.tied.is_empty()
            && self.unstarted.is_empty()
    }

    /// Notes that it holds a task as long as it is connected, at most.
    pub(crate) fn hold(&mut self, number: u64, bond: Bond) {
        match bond {
            Bond::Lasting => self.leases.insert(number),
            Bond::Until(at) => self.tied.insert((at, number)),
            Bond::Unstarted(queue) => self.unstarted.insert((queue, number)),
        };
    }

    /// Notes that it holds that task no longer.
    pub(crate) fn let_go(&mut self, number: u64, bond: Bond) {
        match bond {
            Bond::Lasting => self.leases.remove(&number),
            Bond::Until(at) => self.tied.remove(&(at, number)),
            Bond::Unstarted(queue) => self.unstarted.remove(&(queue, number)),
        };
    }

    /// Returns the numbers of the tasks that were delivered to it from a queue and not started.
    pub(crate) fn unstarted_of(&self, queue: QueueSlot) -> impl Iterator<Item = u64> {
        let of_queue = self.unstarted.range((queue, 0)..=(queue, u64::MAX));
        of_queue.map(|(_, number)| *number)
    }

    /// The number of its requests that are blocked.
    pub(crate) fn waits(&self) -> usize {
        self.takers.len() + self.awaiters.len() + self.putters.len()
    }
}

impl Consumers {
    /// Draws the next ticket.
    pub(crate) const fn draw(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Returns what is stored for a client. Creates it if there is nothing yet.
    pub(crate) fn client(&mut self, client: ClientId) -> &mut Client {
        self.clients.entry(client).or_default()
    }

    /// Forgets a client if nothing about it needs to be stored.
    pub(crate) fn tidy(&mut self, client: ClientId) {
        if self.clients.get(&client).is_some_and(Client::is_idle) {
            self.clients.remove(&client);
        }
    }

    /// Whether it matters to anyone that a task is finished.
    #[inline]
    pub(crate) const fn has_watchers(&self) -> bool {
        self.watchers > 0
    }

    /// Removes and returns the awaiters of one task, if any.
    pub(crate) fn take_awaiters_of(&mut self, number: u64) -> Vec<(AwaiterId, Awaiter)> {
        let first = (number, AwaiterId(0));
        let last = (number, AwaiterId(u64::MAX));
        let ids: Vec<AwaiterId> = self.awaited.range(first..=last).map(|(_, id)| *id).collect();
        ids.into_iter().filter_map(|id| self.remove_awaiter(id).map(|found| (id, found))).collect()
    }

    /// Removes an awaiter from every index.
    pub(crate) fn remove_awaiter(&mut self, id: AwaiterId) -> Option<Awaiter> {
        let awaiter = self.awaiters.remove(&id)?;
        self.watchers -= 1;
        self.bytes -= WAIT_OVERHEAD_BYTES;
        self.awaited.remove(&(awaiter.number, id));
        if let Some(client) = self.clients.get_mut(&awaiter.client) {
            client.awaiters.remove(&id);
        }
        self.tidy(awaiter.client);
        Some(awaiter)
    }
}
