//! The puts that wait for room, in one line for each queue, in the order in which they came.
//!
//! Nothing here knows whether there is room. `operations/line.rs` decides that.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::slots::QueueSlot;
use pinpriq_proto::batches::{Bonds, OnlyIf};
use pinpriq_proto::command::{Delay, Put, TimeToLive, Wait};
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::task::{Bytes, ClientId, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

/// A put that waits for room. Lower ones came first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PutterId(pub(crate) u64);

/// A put that waits for room.
#[derive(Debug)]
pub(crate) struct Putter {
    pub(crate) client: ClientId,
    pub(crate) request: RequestId,
    pub(crate) queue: QueueSlot,
    pub(crate) until: Timestamp,
    pub(crate) put: KeptPut,
    /// What is charged with the task.
    pub(crate) account: Option<Bytes>,
}

/// What a put says, which owns its bytes.
#[derive(Debug)]
pub(crate) struct KeptPut {
    queue: Bytes,
    payload: Bytes,
    terms: Terms,
    priority: Option<i64>,
    delay: Delay,
    ttl: TimeToLive,
    id: Option<Bytes>,
    wait: Option<Wait>,
    result: bool,
    unique: Option<(Bytes, Option<Span>, OnDuplicate)>,
    batch: Option<Bytes>,
    after: Option<Bytes>,
    only_if: OnlyIf,
}

/// All puts that wait for room.
#[derive(Debug, Default)]
pub(crate) struct Putters {
    all: BTreeMap<PutterId, Putter>,
    /// Those of each queue for which any wait.
    lines: BTreeMap<QueueSlot, BTreeSet<PutterId>>,
    /// Queues that may have room now, by the first in line.
    vacant: BTreeSet<(PutterId, QueueSlot)>,
}

impl KeptPut {
    pub(crate) fn of(put: &Put<'_>) -> Self {
        Self {
            queue: put.queue.into(),
            payload: put.payload.into(),
            terms: put.terms.kept(),
            priority: put.priority,
            delay: put.delay,
            ttl: put.ttl,
            id: put.id.map(Into::into),
            wait: put.wait,
            result: put.result,
            unique: put.unique.map(|it| (it.key.into(), it.window, it.on_duplicate)),
            batch: put.bonds.batch.map(Into::into),
            after: put.bonds.after.map(Into::into),
            only_if: put.only_if,
        }
    }

    pub(crate) fn put(&self) -> Put<'_> {
        let unique = self.unique.as_ref();
        Put {
            queue: &self.queue,
            payload: &self.payload,
            terms: self.terms.borrowed(),
            priority: self.priority,
            delay: self.delay,
            ttl: self.ttl,
            id: self.id.as_deref(),
            wait: self.wait,
            result: self.result,
            unique: unique.map(|(key, window, on_duplicate)| Unique {
                key,
                window: *window,
                on_duplicate: *on_duplicate,
            }),
            bonds: Bonds { batch: self.batch.as_deref(), after: self.after.as_deref() },
            only_if: self.only_if,
        }
    }
}

/// The number of bytes that a put counts while it waits for room.
pub(crate) fn putter_bytes(put: &Put<'_>) -> u64 {
    let names = put.queue.len() + put.id.map_or(0, <[u8]>::len);
    let content = put.payload.len() + put.terms.bytes();
    let unique = put.unique.map_or(0, |unique| unique.key.len());
    WAIT_OVERHEAD_BYTES + (names + content + unique + put.bonds.bytes()) as u64
}

impl Putters {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn find(&self, id: PutterId) -> Option<&Putter> {
        self.all.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PutterId, &Putter)> {
        self.all.iter().map(|(id, putter)| (*id, putter))
    }

    /// Whether any put waits for room in this queue.
    pub(crate) fn wait_for(&self, queue: QueueSlot) -> bool {
        self.lines.contains_key(&queue)
    }

    /// The number of puts that wait for room in this queue.
    pub(crate) fn count_of(&self, queue: QueueSlot) -> usize {
        self.lines.get(&queue).map_or(0, BTreeSet::len)
    }

    /// Adds a put at the end of the line of its queue.
    pub(crate) fn insert(&mut self, id: PutterId, putter: Putter) {
        self.lines.entry(putter.queue).or_default().insert(id);
        self.all.insert(id, putter);
    }

    /// Removes a put. There may be room for the next one in its line.
    pub(crate) fn remove(&mut self, id: PutterId) -> Option<Putter> {
        let putter = self.all.remove(&id)?;
        if let Some(line) = self.lines.get_mut(&putter.queue) {
            line.remove(&id);
            if line.is_empty() {
                self.lines.remove(&putter.queue);
            }
        }
        self.note_vacancy(putter.queue);
        Some(putter)
    }

    /// Takes the line of a queue away, for as long as its former first one is put.
    pub(crate) fn set_aside(&mut self, queue: QueueSlot) -> Option<BTreeSet<PutterId>> {
        self.lines.remove(&queue)
    }

    /// Puts a line back that was set aside.
    pub(crate) fn put_back(&mut self, queue: QueueSlot, line: Option<BTreeSet<PutterId>>) {
        if let Some(line) = line {
            self.lines.insert(queue, line);
            self.note_vacancy(queue);
        }
    }

    /// Notes that there may be room in a queue.
    pub(crate) fn note_vacancy(&mut self, queue: QueueSlot) {
        if let Some(first) = self.lines.get(&queue).and_then(BTreeSet::first) {
            self.vacant.insert((*first, queue));
        }
    }

    /// Whether there may be room in any of the queues.
    #[inline]
    pub(crate) fn have_vacancies(&self) -> bool {
        !self.vacant.is_empty()
    }

    /// Returns the put that came first among those that are first in line for a queue that may have
    /// room. That queue is forgotten until it may have room again.
    pub(crate) fn next(&mut self) -> Option<PutterId> {
        loop {
            let (id, queue) = self.vacant.pop_first()?;
            if self.lines.get(&queue).and_then(BTreeSet::first) == Some(&id) {
                return Some(id);
            }
        }
    }
}
