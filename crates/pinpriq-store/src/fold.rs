//! The state that a sequence of changes leads to, computed in the simplest way.
//!
//! The state is a few ordered maps. `check` counts with it, `salvage` writes it out, and the tests
//! compare every store with it. Emptying a queue costs a walk over all tasks, so no server uses it.
//! It validates nothing: a note about an unknown task is ignored, as on loading a log whose older
//! records were written again further on.

use std::collections::BTreeMap;

use pinpriq_proto::batches::BatchRecord;
use pinpriq_proto::change::{
    Change, Copied, Granted, LaneRecord, MemberRecord, Moved, Place, Publication, QueueRecord,
    RecordKey, ScheduleRecord,
};
use pinpriq_proto::details::{Detail, DetailKind, DetailRecord};
use pinpriq_proto::task::{Bytes, Grant, Lease, State, TaskRecord};

/// The state that a sequence of changes leads to, with the places of the records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fold {
    /// Every task of a queue or lane by its number. A task that is recorded only in its publication
    /// has no place.
    pub tasks: BTreeMap<u64, (TaskRecord, Option<Place>)>,
    /// Every queue that has settings or a pause, by its name.
    pub queues: BTreeMap<Bytes, (QueueRecord, Option<Place>)>,
    /// Every publication by its number.
    pub publications: BTreeMap<u64, (Publication, Option<Place>)>,
    /// Every lane by its number.
    pub lanes: BTreeMap<u64, (LaneRecord, Option<Place>)>,
    /// Every registered member by its incarnation.
    pub members: BTreeMap<u64, (MemberRecord, Option<Place>)>,
    /// Every schedule by its number.
    pub schedules: BTreeMap<u64, (ScheduleRecord, Option<Place>)>,
    /// Every detail by its kind and number.
    pub details: BTreeMap<(DetailKind, u64), (Detail, Option<Place>)>,
}

impl Fold {
    /// An empty state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one change. `freed` receives the places of records that no longer count.
    pub fn apply(&mut self, change: &Change, place: Option<Place>, freed: &mut Vec<Place>) {
        match change {
            Change::Task(task) => {
                let old = self.tasks.insert(task.number, ((**task).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::Moved(moved) => self.note_moved(moved),
            Change::Granted(granted) => self.note_granted(granted),
            Change::Gone(number) => {
                freed.extend(self.tasks.remove(number).and_then(|old| old.1));
            }
            Change::Queue(queue) => {
                let old = self.queues.insert(queue.name.clone(), ((**queue).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::QueueGone(name) => {
                freed.extend(self.queues.remove(name).and_then(|old| old.1));
            }
            Change::Emptied(name) => {
                self.empty(|task| task.lane.is_none() && task.queue == *name, freed);
            }
            Change::Published(publication, copies) => {
                self.publish(publication, copies, place, freed);
            }
            Change::Lane(lane) => {
                let old = self.lanes.insert(lane.number, ((**lane).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::LaneGone(number) => {
                freed.extend(self.lanes.remove(number).and_then(|old| old.1));
                self.empty(|task| is_in_lane(task, *number), freed);
            }
            Change::LaneEmptied(number) => self.empty(|task| is_in_lane(task, *number), freed),
            Change::Member(member) => {
                let old = self.members.insert(member.incarnation, ((**member).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::MemberGone(incarnation) => {
                freed.extend(self.members.remove(incarnation).and_then(|old| old.1));
            }
            Change::Schedule(schedule) => {
                let old = self.schedules.insert(schedule.number, ((**schedule).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::ScheduleMoved(moved) => {
                if let Some((schedule, _)) = self.schedules.get_mut(&moved.number) {
                    schedule.course = moved.course.clone();
                }
            }
            Change::ScheduleGone(number) => {
                freed.extend(self.schedules.remove(number).and_then(|old| old.1));
            }
            Change::Detail(detail) => {
                let key = (detail.kind(), detail.number());
                let old = self.details.insert(key, ((**detail).clone(), place));
                freed.extend(old.and_then(|old| old.1));
            }
            Change::DetailGone(kind, number) => {
                freed.extend(self.details.remove(&(*kind, *number)).and_then(|old| old.1));
            }
        }
    }

    /// Returns the changes that write the record of this key again in its current form, if its
    /// place is still this one; none otherwise.
    #[must_use]
    pub fn current(&self, key: &RecordKey, place: Place) -> Vec<Change> {
        fn still<T>(known: Option<&(T, Option<Place>)>, place: Place) -> Option<&T> {
            known.filter(|(_, at)| *at == Some(place)).map(|(record, _)| record)
        }
        let change = match key {
            RecordKey::Task(number) => still(self.tasks.get(number), place)
                .map(|task| Change::Task(Box::new(task.clone()))),
            RecordKey::Queue(name) => still(self.queues.get(name), place)
                .map(|queue| Change::Queue(Box::new(queue.clone()))),
            RecordKey::Lane(number) => still(self.lanes.get(number), place)
                .map(|lane| Change::Lane(Box::new(lane.clone()))),
            RecordKey::Member(incarnation) => still(self.members.get(incarnation), place)
                .map(|member| Change::Member(Box::new(member.clone()))),
            RecordKey::Schedule(number) => still(self.schedules.get(number), place)
                .map(|schedule| Change::Schedule(Box::new(schedule.clone()))),
            RecordKey::Detail(kind, number) => {
                let known = self.details.get(&(*kind, *number));
                still(known, place).map(|detail| Change::detail(detail.clone()))
            }
            RecordKey::Published(first) => {
                return still(self.publications.get(first), place)
                    .map(|publication| self.whole(publication))
                    .unwrap_or_default();
            }
        };
        change.into_iter().collect()
    }

    /// The changes that describe a publication and those of its copies that have no record of their
    /// own.
    #[must_use]
    pub fn whole(&self, publication: &Publication) -> Vec<Change> {
        let mut copies = Vec::new();
        let mut moved = Vec::new();
        for (task, place) in self.copies(publication) {
            let Some(lane) = task.lane.as_ref().filter(|_| place.is_none()) else { continue };
            let as_put = Copied { number: task.number, lane: lane.number };
            if *task == publication.copy(as_put) {
                copies.push(as_put);
            } else {
                moved.push(Change::Task(Box::new(task.clone())));
            }
        }
        let published = Change::Published(Box::new(publication.clone()), copies);
        std::iter::once(published).chain(moved).collect()
    }

    /// The remaining copies of a publication.
    fn copies(
        &self,
        publication: &Publication,
    ) -> impl Iterator<Item = &(TaskRecord, Option<Place>)> {
        self.tasks.range(publication.first..=publication.last).map(|(_, task)| task)
    }

    /// Whether any task still shares this publication.
    fn is_shared(&self, publication: &Publication) -> bool {
        self.copies(publication).any(|(task, _)| task.shared)
    }

    /// Forgets publications that no task shares. Call it after the last change of a log,
    /// or of a batch that is made: within a compacted log, the record of a task can come after the
    /// end of all other tasks that share its publication.
    pub fn forget_unshared(&mut self, freed: &mut Vec<Place>) {
        let unshared = self.publications.values().filter(|(known, _)| !self.is_shared(known));
        let unshared: Vec<u64> = unshared.map(|(known, _)| known.first).collect();
        for first in unshared {
            freed.extend(self.publications.remove(&first).and_then(|old| old.1));
        }
    }

    fn note_moved(&mut self, moved: &Moved) {
        if let Some((task, _)) = self.tasks.get_mut(&moved.number) {
            task.progress = moved.progress.clone();
        }
    }

    fn note_granted(&mut self, granted: &Granted) {
        if let Some((task, _)) = self.tasks.get_mut(&granted.number) {
            task.progress.attempts = granted.attempts;
            task.progress.state = State::Taken(Lease {
                grant: Grant { incarnation: granted.incarnation, serial: granted.serial },
                holder: None,
                deadline: granted.deadline,
                ttr: granted.ttr,
            });
        }
    }

    fn publish(
        &mut self,
        publication: &Publication,
        copies: &[Copied],
        place: Option<Place>,
        freed: &mut Vec<Place>,
    ) {
        for copied in copies {
            let task = publication.copy(*copied);
            freed.extend(self.tasks.insert(copied.number, (task, None)).and_then(|old| old.1));
        }
        let old = self.publications.insert(publication.first, (publication.clone(), place));
        freed.extend(old.and_then(|old| old.1));
    }

    /// Removes the selected tasks.
    fn empty(&mut self, is_meant: impl Fn(&TaskRecord) -> bool, freed: &mut Vec<Place>) {
        self.tasks.retain(|_, (task, place)| {
            let goes = is_meant(task);
            if goes {
                freed.extend(*place);
            }
            !goes
        });
    }

    /// Returns batches of the changes that lead to this state, oldest first: each has at most this
    /// many records, and no more once their payloads have this many bytes. They can be written one
    /// after the other. Copies every record and no payload.
    pub fn batches(
        &self,
        records_max: usize,
        payload_bytes_max: u64,
    ) -> impl Iterator<Item = Vec<Change>> + '_ {
        let mut changes = self.changes();
        std::iter::from_fn(move || {
            let mut batch = Vec::new();
            let mut payload_bytes = 0;
            while batch.len() < records_max
                && payload_bytes < payload_bytes_max
                && let Some(change) = changes.next()
            {
                payload_bytes += bytes_of_payload(&change);
                batch.push(change);
            }
            (!batch.is_empty()).then_some(batch)
        })
    }

    /// The changes that lead to this state. What others refer to comes first.
    fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        let queues = self.queues.values().map(|(queue, _)| Change::Queue(Box::new(queue.clone())));
        // The others are described by their publication.
        let tasks = self.tasks.values().filter(|(task, place)| !task.shared || place.is_some());
        let tasks = tasks.map(|(task, _)| Change::Task(Box::new(task.clone())));
        let members = self.members.values();
        let members = members.map(|(member, _)| Change::Member(Box::new(member.clone())));
        let lanes = self.lanes.values().map(|(lane, _)| Change::Lane(Box::new(lane.clone())));
        let publications = self.publications.values().flat_map(|(known, _)| self.whole(known));
        let of_topics = members.chain(lanes).chain(publications);
        let schedules = self.schedules.values();
        let schedules = schedules.map(|(known, _)| Change::Schedule(Box::new(known.clone())));
        let details = self.details.values().map(|(known, _)| Change::detail(known.clone()));
        queues.chain(details).chain(of_topics).chain(schedules).chain(tasks)
    }

    /// All details of one kind, by number.
    pub fn details_of<'f, R: DetailRecord + 'f>(&'f self) -> impl Iterator<Item = &'f R> {
        let of_kind = (R::KIND, 0)..=(R::KIND, u64::MAX);
        self.details.range(of_kind).filter_map(|(_, (detail, _))| R::of(detail))
    }

    /// The batches that there are, by name.
    #[must_use]
    pub fn batches_by_name(&self) -> BTreeMap<&Bytes, &BatchRecord> {
        self.details_of().map(|record: &BatchRecord| (&record.name, record)).collect()
    }

    /// The total size of the records that count, in bytes.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        let tasks = self.tasks.values().filter_map(|(_, place)| *place);
        let queues = self.queues.values().filter_map(|(_, place)| *place);
        let publications = self.publications.values().filter_map(|(_, place)| *place);
        let lanes = self.lanes.values().filter_map(|(_, place)| *place);
        let members = self.members.values().filter_map(|(_, place)| *place);
        let schedules = self.schedules.values().filter_map(|(_, place)| *place);
        let details = self.details.values().filter_map(|(_, place)| *place);
        let of_queues = tasks.chain(queues).chain(schedules).chain(details);
        let of_topics = publications.chain(lanes).chain(members);
        of_queues.chain(of_topics).map(|place| u64::from(place.length.get())).sum()
    }

    /// Returns a copy without places, to compare contents stored in different places.
    #[must_use]
    pub fn without_places(&self) -> Self {
        let mut copy = self.clone();
        copy.tasks.values_mut().for_each(|task| task.1 = None);
        copy.queues.values_mut().for_each(|queue| queue.1 = None);
        copy.publications.values_mut().for_each(|publication| publication.1 = None);
        copy.lanes.values_mut().for_each(|lane| lane.1 = None);
        copy.members.values_mut().for_each(|member| member.1 = None);
        copy.schedules.values_mut().for_each(|schedule| schedule.1 = None);
        copy.details.values_mut().for_each(|detail| detail.1 = None);
        copy
    }
}

fn is_in_lane(task: &TaskRecord, number: u64) -> bool {
    task.lane.as_ref().is_some_and(|lane| lane.number == number)
}

fn bytes_of_payload(change: &Change) -> u64 {
    let payload = match change {
        Change::Task(task) => &task.payload,
        Change::Published(publication, _) => &publication.payload,
        Change::Schedule(schedule) => &schedule.plan.payload,
        _ => return 0,
    };
    payload.len() as u64
}
