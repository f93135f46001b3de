//! What everything occupies, added up anew for each question, and whether there is room for more.

use std::collections::BTreeMap;

use pinpriq_engine::command::{Amendment, Assign};
use pinpriq_engine::limits::{
    LANE_OVERHEAD_BYTES, MEMBER_OVERHEAD_BYTES, QUEUE_OVERHEAD_BYTES, TASK_OVERHEAD_BYTES,
    WAIT_OVERHEAD_BYTES,
};
use pinpriq_engine::reply::RefusalKind;
use pinpriq_engine::task::{Bytes, State, TaskId, TaskRecord};

use super::{Home, Model};

/// Which copies share what was published, and what emptied queues left behind.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// By the number of its first copy.
    publications: BTreeMap<u64, Published>,
    /// The publication of each copy that has no payload of its own.
    shares: BTreeMap<u64, u64>,
    /// Publications of copies that were popped just now.
    popped: BTreeMap<u64, u64>,
    /// What tasks of emptied queues occupy until they are freed.
    emptied: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Published {
    content: u64,
    /// The payload as the engine handed it out, by which it knows a popped copy again.
    handed_out: Option<Bytes>,
}

impl Kept {
    pub(super) fn publish(&mut self, first: u64, copies: &[u64], content: usize) {
        if !copies.is_empty() {
            let published = Published { content: content as u64, handed_out: None };
            self.publications.insert(first, published);
            self.shares.extend(copies.iter().map(|number| (*number, first)));
        }
    }

    /// A copy shares what was published no longer.
    pub(super) fn part(&mut self, number: u64) {
        if let Some(first) = self.shares.remove(&number)
            && self.sharers(first) == 0
        {
            self.publications.remove(&first);
        }
    }

    fn sharers(&self, first: u64) -> usize {
        self.shares.values().filter(|own| **own == first).count()
    }

    pub(super) fn note_pop(&mut self, number: u64) {
        if let Some(first) = self.shares.get(&number) {
            self.popped.insert(number, *first);
        }
    }

    /// The engine has handed out a task that was popped.
    pub(crate) fn note_handed_out(&mut self, task: &TaskRecord) {
        if let Some(first) = self.popped.remove(&task.number)
            && let Some(published) = self.publications.get_mut(&first)
        {
            published.handed_out = Some(task.payload.clone());
        }
    }

    /// A popped task is back.
    pub(super) fn put_back(&mut self, task: &TaskRecord) {
        let known = self.publications.iter().find(|(_, published)| {
            let payload = published.handed_out.as_ref();
            payload.is_some_and(|payload| Bytes::ptr_eq(payload, &task.payload))
        });
        if let Some((first, _)) = known {
            self.shares.insert(task.number, *first);
        }
    }

    /// What a task of an emptied queue left is freed.
    pub(super) fn free(&mut self, number: u64) {
        self.emptied.remove(&number);
        self.part(number);
    }

    /// A new engine has only what is still there.
    pub(super) fn restart(&mut self) {
        for number in std::mem::take(&mut self.emptied).into_keys() {
            self.part(number);
        }
        self.popped.clear();
        self.publications.values_mut().for_each(|published| published.handed_out = None);
    }
}

impl Model {
    /// What tasks, queues, members and lanes occupy.
    pub(crate) fn bytes(&self) -> u64 {
        let tasks = self.tasks.iter().map(|task| TASK_OVERHEAD_BYTES + self.own_bytes(task));
        let emptied = self.kept.emptied.values().map(|own| TASK_OVERHEAD_BYTES + own);
        let published = self.kept.publications.values().map(|published| published.content);
        let members = self.members.iter().map(|it| MEMBER_OVERHEAD_BYTES + it.name.len() as u64);
        let queues = self.queues.keys().map(|home| match home.lane {
            None => queue_bytes(&home.name),
            Some(_) => LANE_OVERHEAD_BYTES + home.name.len() as u64,
        });
        tasks.chain(emptied).chain(published).chain(members).chain(queues).sum()
    }

    /// What all who wait occupy.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let takers = self.takers.iter().map(|taker| take_bytes(&taker.queues));
        let subscriptions = self.subscriptions.iter();
        let subscriptions =
            subscriptions.map(|known| WAIT_OVERHEAD_BYTES + queue_bytes(&known.queue.name));
        let awaiters = self.awaiters.iter().map(|_| WAIT_OVERHEAD_BYTES);
        takers.chain(subscriptions).chain(awaiters).sum()
    }

    /// What a task occupies alone.
    fn own_bytes(&self, task: &TaskRecord) -> u64 {
        if self.kept.shares.contains_key(&task.number) {
            besides_bytes(task)
        } else {
            besides_bytes(task) + (task.payload.len() + key_bytes(task)) as u64
        }
    }

    pub(super) fn note_emptied(&mut self, task: &TaskRecord) {
        let own = self.own_bytes(task);
        self.kept.emptied.insert(task.number, own);
    }

    pub(super) fn has_room(&self, bytes: u64) -> Result<(), RefusalKind> {
        let fits = self.bytes() + bytes <= self.limits.bytes_max;
        if fits { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    pub(super) fn has_waiting_room(&self, bytes: u64) -> Result<(), RefusalKind> {
        let fits = self.waiting_bytes() + bytes <= self.limits.waiting_bytes_max;
        if fits { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    /// Room for a queue, unless it is there.
    pub(super) fn room_of_queue(&self, home: &Home) -> u64 {
        if self.queues.contains_key(home) { 0 } else { queue_bytes(&home.name) }
    }

    /// Whether a task may have another payload, and a reason of this many bytes to be buried.
    pub(super) fn may_grow(
        &self,
        at: usize,
        payload: Option<&[u8]>,
        reason: usize,
    ) -> Result<(), RefusalKind> {
        let task = &self.tasks[at];
        let shared = self.kept.shares.get(&task.number).copied();
        let (mut former, mut current) = (self.own_bytes(task), self.own_bytes(task));
        if let Some(payload) = payload {
            current = besides_bytes(task) + (payload.len() + key_bytes(task)) as u64;
            if let Some(first) = shared.filter(|first| self.kept.sharers(*first) == 1) {
                former += self.kept.publications[&first].content;
            }
        }
        let current = current - reason_bytes(task) + reason as u64;
        if current > former { self.has_room(current - former) } else { Ok(()) }
    }

    /// The same for a task that is to be brought back, unless its TTL is over by then.
    pub(super) fn may_return(
        &self,
        at: usize,
        amendment: &Amendment<'_>,
    ) -> Result<(), RefusalKind> {
        let expires_at = match amendment.ttl {
            Assign::To(ttl) => ttl.map(|ttl| self.now.after(ttl)),
            Assign::Keep => self.tasks[at].expires_at,
        };
        if expires_at.is_some_and(|at| at <= self.now) {
            return Ok(());
        }
        self.may_grow(at, amendment.payload, 0)
    }

    /// Gives a task a payload of its own.
    pub(super) fn give_payload(&mut self, at: usize, payload: &[u8]) {
        self.tasks[at].payload = payload.into();
        let number = self.tasks[at].number;
        self.kept.part(number);
    }
}

/// What a blocked take of these queues occupies.
pub(super) fn take_bytes(queues: &[Home]) -> u64 {
    let mut queues = queues.to_vec();
    queues.sort();
    queues.dedup();
    WAIT_OVERHEAD_BYTES + queues.iter().map(|home| queue_bytes(&home.name)).sum::<u64>()
}

pub(super) const fn queue_bytes(name: &[u8]) -> u64 {
    QUEUE_OVERHEAD_BYTES + name.len() as u64
}

fn key_bytes(task: &TaskRecord) -> usize {
    task.key.as_ref().map_or(0, |key| key.len())
}

pub(super) fn reason_bytes(task: &TaskRecord) -> u64 {
    if let State::Buried { reason } = &task.state { reason.len() as u64 } else { 0 }
}

/// What a task occupies besides payload and key.
fn besides_bytes(task: &TaskRecord) -> u64 {
    let id = if let TaskId::Given(id) = &task.id { id.len() as u64 } else { 0 };
    id + reason_bytes(task)
}
