//! What a sequence of changes means, in the plainest way.
//!
//! Two ordered maps and nothing clever: `check` counts with it, `salvage` writes down what it
//! holds, and the tests hold every store against it. It costs a walk over all tasks to empty a
//! queue, so no server runs on it. It judges nothing: a note about a task that it does not know is
//! passed over, as on loading a log whose older records were written again further on.

use std::collections::BTreeMap;

use pinpriq_engine::change::{Change, Place, QueueRecord, RecordKey};
use pinpriq_engine::task::{Bytes, Grant, Lease, State, TaskRecord};

/// The tasks and queues that a sequence of changes leads to, with the places of their records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fold {
    /// Every task by its number.
    pub tasks: BTreeMap<u64, (TaskRecord, Option<Place>)>,
    /// Every queue that has settings or a pause, by its name.
    pub queues: BTreeMap<Bytes, (QueueRecord, Option<Place>)>,
}

impl Fold {
    /// Nothing at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one change in. `freed` receives the places of records that no longer count.
    pub fn apply(&mut self, change: &Change, place: Option<Place>, freed: &mut Vec<Place>) {
        match change {
            Change::Task(task) => {
                let mut task = (**task).clone();
                forget_holder(&mut task.state);
                freed.extend(self.tasks.insert(task.number, (task, place)).and_then(|old| old.1));
            }
            Change::Moved(moved) => {
                if let Some((task, _)) = self.tasks.get_mut(&moved.number) {
                    task.seq = moved.seq;
                    task.priority = moved.priority;
                    task.expires_at = moved.expires_at;
                    task.attempts = moved.attempts;
                    task.state = moved.state.clone();
                    forget_holder(&mut task.state);
                }
            }
            Change::Granted(granted) => {
                if let Some((task, _)) = self.tasks.get_mut(&granted.number) {
                    task.attempts = granted.attempts;
                    task.state = State::Taken(Box::new(Lease {
                        grant: Grant { incarnation: granted.incarnation, serial: granted.serial },
                        holder: None,
                        deadline: granted.deadline,
                        ttr: granted.ttr,
                    }));
                }
            }
            Change::Gone(number) => freed.extend(self.tasks.remove(number).and_then(|old| old.1)),
            Change::Queue(queue) => {
                let old = self.queues.insert(queue.name.clone(), ((**queue).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::QueueGone(name) => {
                freed.extend(self.queues.remove(name).and_then(|old| old.1));
            }
            Change::Emptied(name) => self.tasks.retain(|_, (task, place)| {
                let stays = task.queue != *name;
                if !stays {
                    freed.extend(*place);
                }
                stays
            }),
        }
    }

    /// The record of this key as it is now, if its place is still that one.
    #[must_use]
    pub fn current(&self, key: &RecordKey, place: Place) -> Option<Change> {
        match key {
            RecordKey::Task(number) => {
                let (task, at) = self.tasks.get(number)?;
                (*at == Some(place)).then(|| Change::Task(Box::new(task.clone())))
            }
            RecordKey::Queue(name) => {
                let (queue, at) = self.queues.get(name)?;
                (*at == Some(place)).then(|| Change::Queue(Box::new(queue.clone())))
            }
        }
    }

    /// The bytes of all records that count.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        let tasks = self.tasks.values().filter_map(|(_, place)| *place);
        let queues = self.queues.values().filter_map(|(_, place)| *place);
        tasks.chain(queues).map(|place| u64::from(place.length)).sum()
    }

    /// The same without places, to compare contents that lie elsewhere.
    #[must_use]
    pub fn without_places(&self) -> Self {
        let mut copy = self.clone();
        copy.tasks.values_mut().for_each(|task| task.1 = None);
        copy.queues.values_mut().for_each(|queue| queue.1 = None);
        copy
    }
}

/// The holder of a lease is a connection, and no connection outlives its server.
fn forget_holder(state: &mut State) {
    if let State::Taken(lease) = state {
        lease.holder = None;
    }
}
