//! Whether there is room for more: how much a command would need, and what all who wait occupy.
//!
//! How much tasks, queues and members occupy already is asked of the engine, which checks its own
//! figure; by how much a command makes it grow is told here.

use std::collections::BTreeMap;

use pinpriq_engine::Engine;
use pinpriq_engine::command::{Amendment, Assign};
use pinpriq_engine::limits::{QUEUE_OVERHEAD_BYTES, WAIT_OVERHEAD_BYTES};
use pinpriq_engine::reply::RefusalKind;
use pinpriq_engine::task::{State, TaskRecord};
use pinpriq_store::Fold;

use super::{Model, Place};

/// Which copies share what was published.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The bytes of each publication, by the number of its first copy.
    publications: BTreeMap<u64, u64>,
    /// The publication of each copy that has no payload of its own, freed or not.
    shares: BTreeMap<u64, u64>,
    /// The same for copies as they were popped last.
    popped: BTreeMap<u64, u64>,
}

impl Kept {
    pub(super) fn publish(&mut self, first: u64, copies: u64, content: u64) {
        if copies > 0 {
            self.publications.insert(first, content);
            self.shares.extend((first..first + copies).map(|number| (number, first)));
        }
    }

    /// A copy shares what was published no longer.
    pub(super) fn part(&mut self, number: u64) {
        let Some(first) = self.shares.remove(&number) else { return };
        if self.sharers(first) == 0 {
            self.publications.remove(&first);
        }
    }

    fn sharers(&self, first: u64) -> usize {
        self.shares.values().filter(|own| **own == first).count()
    }

    pub(super) fn pop(&mut self, number: u64) {
        match self.shares.get(&number) {
            Some(first) => self.popped.insert(number, *first),
            None => self.popped.remove(&number),
        };
    }

    /// A popped copy is back, and shares again what is still there.
    pub(super) fn put_back(&mut self, number: u64) {
        if let Some(first) = self.popped.remove(&number)
            && self.publications.contains_key(&first)
        {
            self.shares.insert(number, first);
        }
    }

    /// What a store has kept of it.
    pub(super) fn of(fold: &Fold) -> Self {
        let mut kept = Self::default();
        for (number, (task, _)) in &fold.lane_tasks {
            if task.own.is_none()
                && let Some((first, (published, _))) =
                    fold.publications.range(..=*number).next_back()
            {
                let key = published.key.as_ref().map_or(0, |key| key.len());
                kept.publications.insert(*first, (published.payload.len() + key) as u64);
                kept.shares.insert(*number, *first);
            }
        }
        kept
    }
}

impl Model {
    /// Notes how much room the engine has left.
    pub(super) fn look_for_room(&mut self, engine: &Engine) {
        let is_full = engine.is_busy_for(0);
        self.free = if is_full { 0 } else { self.limits.bytes_max - engine.bytes() };
    }

    /// Whether this many bytes more may be occupied, and at least one.
    pub(super) fn has_room(&self, bytes: u64) -> Result<(), RefusalKind> {
        if bytes <= self.free { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    /// What a queue needs that is not there yet.
    pub(super) fn room_of_queue(&self, name: &[u8]) -> u64 {
        let is_there = self.homes.contains_key(&Place::Queue(name.into()));
        if is_there { 0 } else { QUEUE_OVERHEAD_BYTES + name.len() as u64 }
    }

    /// Whether a task may get another payload, and a reason of this many bytes to be buried.
    pub(super) fn may_grow(
        &self,
        number: u64,
        payload: Option<&[u8]>,
        reason: usize,
    ) -> Result<(), RefusalKind> {
        let task = self.task(number);
        let key = task.key.as_ref().map_or(0, |key| key.len());
        let shared = self.kept.shares.get(&number);
        let content = |payload: usize| (payload + key) as u64;
        let mut former = if shared.is_some() { 0 } else { content(task.payload.len()) };
        let mut current = former;
        if let Some(payload) = payload {
            current = content(payload.len());
            // Nobody else needs what it shared.
            let alone = shared.filter(|first| self.kept.sharers(**first) == 1);
            former += alone.map_or(0, |first| self.kept.publications[first]);
        }
        former += reason_of(task) as u64;
        current += reason as u64;
        if current > former { self.has_room(current - former) } else { Ok(()) }
    }

    /// The same for a task that is to be brought back, unless its TTL is over by then.
    pub(super) fn may_return(
        &self,
        number: u64,
        amendment: &Amendment<'_>,
    ) -> Result<(), RefusalKind> {
        let expires_at = match amendment.ttl {
            Assign::To(ttl) => ttl.map(|ttl| self.now.after(ttl)),
            Assign::Keep => self.task(number).expires_at,
        };
        if expires_at.is_some_and(|at| at <= self.now) {
            return Ok(());
        }
        self.may_grow(number, amendment.payload, 0)
    }

    /// Gives a task a payload of its own.
    pub(super) fn give_payload(&mut self, number: u64, payload: &[u8]) {
        self.task_mut(number).payload = payload.into();
        self.kept.part(number);
    }

    /// Whether consumers may occupy this many bytes more.
    pub(super) fn has_waiting_room(&self, bytes: u64) -> Result<(), RefusalKind> {
        let takers = self.takers.iter().map(|taker| self.take_bytes(&taker.places));
        let subscriptions = self.subscriptions.iter();
        let subscriptions = subscriptions.map(|known| self.subscription_bytes(&known.place));
        let awaiters = self.awaiters.iter().map(|_| WAIT_OVERHEAD_BYTES);
        let occupied: u64 = takers.chain(subscriptions).chain(awaiters).sum();
        let fits = occupied.saturating_add(bytes) <= self.limits.waiting_bytes_max;
        if fits { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    /// What a blocked take occupies.
    pub(super) fn take_bytes(&self, places: &[Place]) -> u64 {
        let mut places: Vec<&Place> = places.iter().collect();
        places.sort_unstable();
        places.dedup();
        WAIT_OVERHEAD_BYTES + places.into_iter().map(|place| self.place_bytes(place)).sum::<u64>()
    }

    pub(super) fn subscription_bytes(&self, place: &Place) -> u64 {
        WAIT_OVERHEAD_BYTES + self.place_bytes(place)
    }

    fn place_bytes(&self, place: &Place) -> u64 {
        let name = match place {
            Place::Queue(name) => name.len(),
            Place::Lane(_) => self.homes[place].name.len(),
        };
        QUEUE_OVERHEAD_BYTES + name as u64
    }
}

/// How long the reason is for which a task is buried.
pub(super) fn reason_of(task: &TaskRecord) -> usize {
    if let State::Buried { reason } = &task.state { reason.len() } else { 0 }
}
