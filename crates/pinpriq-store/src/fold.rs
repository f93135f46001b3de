//! What a sequence of changes means, in the plainest way.
//!
//! A few ordered maps and nothing clever: `check` counts with it, `salvage` writes down what it
//! holds, and the tests hold every store against it. It costs a walk over all tasks to empty a
//! queue, so no server runs on it. It judges nothing: a note about a task that it does not know is
//! passed over, as on loading a log whose older records were written again further on.

use std::collections::BTreeMap;

use pinpriq_engine::change::{
    Change, Copied, Granted, LaneRecord, LaneTask, MemberRecord, Moved, Place, Publication,
    QueueRecord, RecordKey,
};
use pinpriq_engine::task::{Bytes, Grant, Lease, State, TaskId, TaskRecord};

/// Everything that a sequence of changes leads to, with the places of the records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fold {
    /// Every task of a queue by its number.
    pub tasks: BTreeMap<u64, (TaskRecord, Option<Place>)>,
    /// Every queue that has settings or a pause, by its name.
    pub queues: BTreeMap<Bytes, (QueueRecord, Option<Place>)>,
    /// Every task of a lane by its number. Those that only their publication tells of have no
    /// place.
    pub lane_tasks: BTreeMap<u64, (LaneTask, Option<Place>)>,
    /// Every publication by its number, without its copies.
    pub publications: BTreeMap<u64, (Publication, Option<Place>)>,
    /// Every lane by its number.
    pub lanes: BTreeMap<u64, (LaneRecord, Option<Place>)>,
    /// Every registered member by its incarnation.
    pub members: BTreeMap<u64, (MemberRecord, Option<Place>)>,
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
                let task = TaskRecord { state: without_holder(&task.state), ..(**task).clone() };
                freed.extend(self.tasks.insert(task.number, (task, place)).and_then(|old| old.1));
            }
            Change::Moved(moved) => self.note_moved(moved),
            Change::Granted(granted) => self.note_granted(granted),
            Change::Gone(number) => {
                freed.extend(self.tasks.remove(number).and_then(|old| old.1));
                freed.extend(self.lane_tasks.remove(number).and_then(|old| old.1));
            }
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
            Change::Published(publication) => self.publish(publication, place, freed),
            Change::LaneTask(task) => {
                let task = LaneTask { state: without_holder(&task.state), ..(**task).clone() };
                let number = task.number;
                freed.extend(self.lane_tasks.insert(number, (task, place)).and_then(|old| old.1));
            }
            Change::Lane(lane) => {
                let old = self.lanes.insert(lane.number, ((**lane).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::LaneGone(number) => {
                freed.extend(self.lanes.remove(number).and_then(|old| old.1));
                self.empty_lane(*number, freed);
            }
            Change::LaneEmptied(number) => self.empty_lane(*number, freed),
            Change::Member(member) => {
                let old = self.members.insert(member.incarnation, ((**member).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::MemberGone(incarnation) => {
                freed.extend(self.members.remove(incarnation).and_then(|old| old.1));
            }
        }
    }

    /// The changes that write the record of this key again as it is now, if its place is still
    /// that one; none otherwise.
    #[must_use]
    pub fn current(&self, key: &RecordKey, place: Place) -> Vec<Change> {
        fn still<T>(known: Option<&(T, Option<Place>)>, place: Place) -> Option<&T> {
            known.filter(|(_, at)| *at == Some(place)).map(|(record, _)| record)
        }
        let change = match key {
            RecordKey::Task(number) => {
                let task = still(self.tasks.get(number), place);
                let lane_task = still(self.lane_tasks.get(number), place);
                let task = task.map(|task| Change::Task(Box::new(task.clone())));
                task.or_else(|| lane_task.map(|task| Change::LaneTask(Box::new(task.clone()))))
            }
            RecordKey::Queue(name) => still(self.queues.get(name), place)
                .map(|queue| Change::Queue(Box::new(queue.clone()))),
            RecordKey::Lane(number) => still(self.lanes.get(number), place)
                .map(|lane| Change::Lane(Box::new(lane.clone()))),
            RecordKey::Member(incarnation) => still(self.members.get(incarnation), place)
                .map(|member| Change::Member(Box::new(member.clone()))),
            RecordKey::Published(first) => {
                return still(self.publications.get(first), place)
                    .map(|publication| self.whole(publication))
                    .unwrap_or_default();
            }
        };
        change.into_iter().collect()
    }

    /// The changes that tell of a publication and of those of its copies that have no record of
    /// their own.
    #[must_use]
    pub fn whole(&self, publication: &Publication) -> Vec<Change> {
        let copies = self.lane_tasks.range(publication.first..=publication.last);
        let untold = copies.filter(|(_, (_, place))| place.is_none()).map(|(_, (task, _))| task);
        let (plain, moved): (Vec<&LaneTask>, Vec<&LaneTask>) =
            untold.partition(|task| **task == copy_of(publication, task.number, task.lane));
        let copies = plain.iter().map(|task| Copied { number: task.number, lane: task.lane });
        let publication = Publication { copies: copies.collect(), ..publication.clone() };
        let moved = moved.into_iter().map(|task| Change::LaneTask(Box::new(task.clone())));
        std::iter::once(Change::Published(Box::new(publication))).chain(moved).collect()
    }

    /// Whether any task still shares this publication.
    fn is_shared(&self, publication: &Publication) -> bool {
        let mut copies = self.lane_tasks.range(publication.first..=publication.last);
        copies.any(|(_, (task, _))| task.own.is_none())
    }

    /// Forgets publications that no task shares any more. To be called after the last change of a
    /// log, or of a batch that is made: within a log that was compacted the record of a task can
    /// come behind the end of all others that share its publication.
    pub fn forget_unshared(&mut self, freed: &mut Vec<Place>) {
        let unshared = self.publications.values().filter(|(known, _)| !self.is_shared(known));
        let unshared: Vec<u64> = unshared.map(|(known, _)| known.first).collect();
        for first in unshared {
            freed.extend(self.publications.remove(&first).and_then(|old| old.1));
        }
    }

    fn note_moved(&mut self, moved: &Moved) {
        let state = without_holder(&moved.state);
        if let Some((task, _)) = self.tasks.get_mut(&moved.number) {
            (task.seq, task.priority, task.expires_at) =
                (moved.seq, moved.priority, moved.expires_at);
            (task.attempts, task.state) = (moved.attempts, state);
        } else if let Some((task, _)) = self.lane_tasks.get_mut(&moved.number) {
            (task.seq, task.priority, task.expires_at) =
                (moved.seq, moved.priority, moved.expires_at);
            (task.attempts, task.state) = (moved.attempts, state);
        }
    }

    fn note_granted(&mut self, granted: &Granted) {
        let state = State::Taken(Lease {
            grant: Grant { incarnation: granted.incarnation, serial: granted.serial },
            holder: None,
            deadline: granted.deadline,
            ttr: granted.ttr,
        });
        if let Some((task, _)) = self.tasks.get_mut(&granted.number) {
            (task.attempts, task.state) = (granted.attempts, state);
        } else if let Some((task, _)) = self.lane_tasks.get_mut(&granted.number) {
            (task.attempts, task.state) = (granted.attempts, state);
        }
    }

    fn publish(&mut self, publication: &Publication, place: Option<Place>, freed: &mut Vec<Place>) {
        for copied in &publication.copies {
            let task = copy_of(publication, copied.number, copied.lane);
            freed.extend(self.lane_tasks.insert(copied.number, (task, None)).and_then(|old| old.1));
        }
        let known = Publication { copies: Vec::new(), ..publication.clone() };
        let old = self.publications.insert(publication.first, (known, place));
        freed.extend(old.and_then(|old| old.1));
    }

    fn empty_lane(&mut self, lane: u64, freed: &mut Vec<Place>) {
        let tasks = self.lane_tasks.iter().filter(|(_, (task, _))| task.lane == lane);
        let numbers: Vec<u64> = tasks.map(|(number, _)| *number).collect();
        for number in numbers {
            freed.extend(self.lane_tasks.remove(&number).and_then(|old| old.1));
        }
    }

    /// The bytes of all records that count.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        let tasks = self.tasks.values().filter_map(|(_, place)| *place);
        let queues = self.queues.values().filter_map(|(_, place)| *place);
        let lane_tasks = self.lane_tasks.values().filter_map(|(_, place)| *place);
        let publications = self.publications.values().filter_map(|(_, place)| *place);
        let lanes = self.lanes.values().filter_map(|(_, place)| *place);
        let members = self.members.values().filter_map(|(_, place)| *place);
        let of_queues = tasks.chain(queues);
        let of_topics = lane_tasks.chain(publications).chain(lanes).chain(members);
        of_queues.chain(of_topics).map(|place| u64::from(place.length)).sum()
    }

    /// The same without places, to compare contents that lie elsewhere.
    #[must_use]
    pub fn without_places(&self) -> Self {
        let mut copy = self.clone();
        copy.tasks.values_mut().for_each(|task| task.1 = None);
        copy.queues.values_mut().for_each(|queue| queue.1 = None);
        copy.lane_tasks.values_mut().for_each(|task| task.1 = None);
        copy.publications.values_mut().for_each(|publication| publication.1 = None);
        copy.lanes.values_mut().for_each(|lane| lane.1 = None);
        copy.members.values_mut().for_each(|member| member.1 = None);
        copy
    }
}

/// A copy as it was put.
fn copy_of(publication: &Publication, number: u64, lane: u64) -> LaneTask {
    LaneTask {
        number,
        lane,
        id: TaskId::Number(number),
        seq: number,
        priority: publication.priority,
        put_at: publication.put_at,
        expires_at: publication.expires_at,
        attempts: 0,
        state: State::Ready,
        own: None,
    }
}

/// The holder of a lease is a connection, and no connection outlives its server.
fn without_holder(state: &State) -> State {
    match state {
        State::Taken(lease) => State::Taken(Lease { holder: None, ..*lease }),
        other => other.clone(),
    }
}
