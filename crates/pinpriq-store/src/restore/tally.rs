//! What the log of a shard holds, without the contents of tasks: how much there is of everything,
//! and what there is to pause.
//!
//! Follows the rules of [`Fold`](crate::fold::Fold), which keeps everything. This keeps some
//! hundred bytes for each task, and emptying a queue costs no walk over the others.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_proto::change::{
    Change, Header, LaneRecord, QueueRecord, ScheduleMoved, ScheduleRecord,
};
use pinpriq_proto::schedule::Course;
use pinpriq_proto::settings::{Paused, Settings};
use pinpriq_proto::task::{Bytes, TaskRecord};

use crate::reshard::ReshardReport;

/// What a log holds.
#[derive(Default)]
pub(super) struct Tally {
    /// Where each task is, and whether it shares a publication.
    tasks: BTreeMap<u64, (Home, bool)>,
    /// The tasks of each queue and lane that has any.
    homes: BTreeMap<Home, BTreeSet<u64>>,
    queues: BTreeMap<Bytes, QueueRecord>,
    lanes: BTreeMap<u64, LaneRecord>,
    members: BTreeSet<u64>,
    /// The first and last number of each publication.
    publications: BTreeMap<u64, u64>,
    schedules: BTreeMap<u64, Course>,
}

/// Where a task is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Queue(Bytes),
    Lane(u64),
}

impl Home {
    fn of(task: TaskRecord) -> Self {
        task.lane.map_or(Self::Queue(task.queue), |lane| Self::Lane(lane.number))
    }
}

impl Tally {
    /// Notes the next change of the log.
    pub(super) fn note(&mut self, change: Change) {
        match change {
            Change::Task(task) => {
                let (number, shared) = (task.number, task.shared);
                self.add(number, Home::of(*task), shared);
            }
            Change::Gone(number) => self.remove(number),
            Change::Queue(queue) => _ = self.queues.insert(queue.name.clone(), *queue),
            Change::QueueGone(name) => _ = self.queues.remove(&name),
            Change::Emptied(name) => self.empty(&Home::Queue(name)),
            Change::Published(publication, copies) => {
                for copied in copies {
                    self.add(copied.number, Home::Lane(copied.lane), true);
                }
                self.publications.insert(publication.first, publication.last);
            }
            Change::Lane(lane) => _ = self.lanes.insert(lane.number, *lane),
            Change::LaneGone(number) => {
                self.lanes.remove(&number);
                self.empty(&Home::Lane(number));
            }
            Change::LaneEmptied(number) => self.empty(&Home::Lane(number)),
            Change::Member(member) => _ = self.members.insert(member.incarnation),
            Change::MemberGone(incarnation) => _ = self.members.remove(&incarnation),
            Change::Schedule(schedule) => {
                let ScheduleRecord { number, course, .. } = *schedule;
                self.schedules.insert(number, course);
            }
            Change::ScheduleMoved(moved) => {
                if let Some(course) = self.schedules.get_mut(&moved.number) {
                    *course = moved.course;
                }
            }
            Change::ScheduleGone(number) => _ = self.schedules.remove(&number),
            Change::Moved(_) | Change::Granted(_) | Change::Detail(_) | Change::DetailGone(..) => {}
        }
    }

    fn add(&mut self, number: u64, home: Home, shared: bool) {
        self.remove(number);
        self.homes.entry(home.clone()).or_default().insert(number);
        self.tasks.insert(number, (home, shared));
    }

    fn remove(&mut self, number: u64) {
        let Some((home, _)) = self.tasks.remove(&number) else { return };
        let Some(there) = self.homes.get_mut(&home) else { return };
        there.remove(&number);
        if there.is_empty() {
            self.homes.remove(&home);
        }
    }

    fn empty(&mut self, home: &Home) {
        for number in self.homes.remove(home).unwrap_or_default() {
            self.tasks.remove(&number);
        }
    }

    /// The queues that have tasks, settings or a pause.
    fn names(&self) -> BTreeSet<&Bytes> {
        let with_tasks = self.homes.keys().filter_map(|home| match home {
            Home::Queue(name) => Some(name),
            Home::Lane(_) => None,
        });
        with_tasks.chain(self.queues.keys()).collect()
    }

    /// The changes that pause every queue, lane and schedule.
    pub(super) fn pauses(&self) -> Vec<Change> {
        let paused = Paused::endlessly(true, true);
        let fresh = |name: &Bytes| QueueRecord {
            name: name.clone(),
            created: false,
            settings: Settings::default(),
            paused,
        };
        let queues = self.names().into_iter().map(|name| {
            let known = self.queues.get(name).cloned().unwrap_or_else(|| fresh(name));
            Change::Queue(Box::new(QueueRecord { paused, ..known }))
        });
        let lanes = self.lanes.values().cloned();
        let lanes = lanes.map(|lane| Change::Lane(Box::new(LaneRecord { paused, ..lane })));
        let schedules = self.schedules.iter().map(|(number, course)| {
            let course = Course { paused: true, ..course.clone() };
            Change::ScheduleMoved(Box::new(ScheduleMoved { number: *number, course }))
        });
        queues.chain(lanes).chain(schedules).collect()
    }

    /// How much there is of everything.
    pub(super) fn report(&self, header: &Header) -> ReshardReport {
        let is_shared = |first: u64, last: u64| {
            self.tasks.range(first..=last).any(|(_, (_, is_shared))| *is_shared)
        };
        let shared = self.publications.iter().filter(|(first, last)| is_shared(**first, **last));
        ReshardReport {
            tasks: self.tasks.len() as u64,
            queues: self.names().len() as u64,
            members: self.members.len() as u64,
            lanes: self.lanes.len() as u64,
            publications: shared.count() as u64,
            schedules: self.schedules.len() as u64,
            header: *header,
        }
    }
}
