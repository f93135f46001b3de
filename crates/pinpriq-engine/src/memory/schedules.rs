//! All schedules of a shard, by number, by name and by queue. What they do is in
//! `operations/schedules.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::memory::details::start_of;
use pinpriq_proto::change::{Place, ScheduleRecord};
use pinpriq_proto::limits::SCHEDULE_OVERHEAD_BYTES;
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::schedule::{Course, Plan};
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;

/// A schedule.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) name: Bytes,
    pub(crate) plan: Arc<Plan>,
    pub(crate) course: Course,
    /// The slot under which it is in the index of deadlines.
    pub(crate) armed: Option<Timestamp>,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
}

/// See the start of this file. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    known: BTreeMap<u64, Schedule>,
    numbers: BTreeMap<Bytes, u64>,
    /// The names of the schedules of each queue.
    of_queues: BTreeMap<Bytes, BTreeSet<Bytes>>,
}

/// What a schedule occupies.
pub(crate) fn schedule_bytes(name: &[u8], plan: &Plan) -> u64 {
    SCHEDULE_OVERHEAD_BYTES + (name.len() + plan.bytes()) as u64
}

impl Schedule {
    /// The schedule as the store keeps it.
    pub(crate) fn record(&self, number: u64) -> ScheduleRecord {
        let (name, course) = (self.name.clone(), self.course.clone());
        ScheduleRecord { number, name, plan: (*self.plan).clone(), course }
    }

    pub(crate) fn bytes(&self) -> u64 {
        schedule_bytes(&self.name, &self.plan)
    }
}

impl Schedules {
    /// Adds a schedule, or replaces the one of its number. Returns the one that it replaces.
    ///
    /// A name belongs to one schedule. After damage the store may have kept two, and then the later
    /// one counts.
    pub(crate) fn insert(&mut self, number: u64, schedule: Schedule) -> Option<Schedule> {
        let replaced = self.remove(number);
        let other = self.find(&schedule.name).and_then(|other| self.remove(other));
        self.numbers.insert(schedule.name.clone(), number);
        self.join_queue(&schedule.plan.queue, &schedule.name);
        self.known.insert(number, schedule);
        other.or(replaced)
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Schedule> {
        let schedule = self.known.remove(&number)?;
        self.numbers.remove(&schedule.name);
        self.leave_queue(&schedule.plan.queue, &schedule.name);
        Some(schedule)
    }

    /// Gives a schedule, which must exist, another plan.
    pub(crate) fn replan(&mut self, number: u64, plan: Arc<Plan>) {
        let schedule = self.schedule_mut(number);
        let name = schedule.name.clone();
        let queue = plan.queue.clone();
        let former = std::mem::replace(&mut schedule.plan, plan);
        if former.queue != queue {
            self.leave_queue(&former.queue, &name);
            self.join_queue(&queue, &name);
        }
    }

    fn join_queue(&mut self, queue: &Bytes, name: &Bytes) {
        self.of_queues.entry(queue.clone()).or_default().insert(name.clone());
    }

    fn leave_queue(&mut self, queue: &Bytes, name: &Bytes) {
        if let Some(names) = self.of_queues.get_mut(queue) {
            names.remove(name);
            if names.is_empty() {
                self.of_queues.remove(queue);
            }
        }
    }

    /// The number of the schedule of this name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn find_mut(&mut self, number: u64) -> Option<&mut Schedule> {
        self.known.get_mut(&number)
    }

    /// Returns the schedule of this number, which must exist.
    pub(crate) fn schedule(&self, number: u64) -> &Schedule {
        match self.known.get(&number) {
            Some(schedule) => schedule,
            None => unreachable!("no schedule {number}"),
        }
    }

    /// Like [`Self::schedule`], but mutable.
    pub(crate) fn schedule_mut(&mut self, number: u64) -> &mut Schedule {
        match self.known.get_mut(&number) {
            Some(schedule) => schedule,
            None => unreachable!("no schedule {number}"),
        }
    }

    pub(crate) fn place_of(&mut self, number: u64) -> Option<&mut Option<Place>> {
        self.known.get_mut(&number).map(|schedule| &mut schedule.place)
    }

    /// All schedules, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Schedule)> {
        self.known.iter().map(|(number, schedule)| (*number, schedule))
    }

    /// Those whose number is above this one, the oldest first.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = (u64, &Schedule)> {
        let later = self.known.range((Bound::Excluded(number), Bound::Unbounded));
        later.map(|(number, schedule)| (*number, schedule))
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Bytes> {
        self.numbers.keys()
    }

    /// The names that begin with a prefix and come after another name, in order.
    pub(crate) fn names_after<'s>(
        &'s self,
        prefix: &'s [u8],
        after: Option<&'s [u8]>,
    ) -> impl Iterator<Item = &'s Bytes> {
        let names = self.numbers.range::<[u8], _>((start_of(prefix, after), Bound::Unbounded));
        names.map(|(name, _)| name).take_while(move |name| name.starts_with(prefix))
    }

    /// Like [`Self::names_after`], but only the first of the schedules whose queues match. Costs
    /// O(log n) and at most `count` steps for each of these queues.
    pub(crate) fn first_matching<'p>(
        &self,
        patterns: impl Iterator<Item = NamePattern<'p>>,
        (prefix, after): (&[u8], Option<&[u8]>),
        count: usize,
    ) -> BTreeSet<&Bytes> {
        let mut first = BTreeSet::new();
        for pattern in patterns {
            let from = Bound::Included(pattern.bytes);
            let queues = self.of_queues.range::<[u8], _>((from, Bound::Unbounded));
            for (_, names) in queues.take_while(|(queue, _)| pattern.matches(queue)) {
                let names = names.range::<[u8], _>((start_of(prefix, after), Bound::Unbounded));
                for name in names.take_while(|name| name.starts_with(prefix)) {
                    first.insert(name);
                    // Those after it would not stay either.
                    if first.len() > count && first.pop_last() == Some(name) {
                        break;
                    }
                }
            }
        }
        first
    }

    /// The number of schedules that are found by their queue.
    pub(crate) fn count_by_queue(&self) -> usize {
        self.of_queues.values().map(BTreeSet::len).sum()
    }

    /// Whether a schedule is found by its queue.
    pub(crate) fn is_found_by_queue(&self, schedule: &Schedule) -> bool {
        let names = self.of_queues.get(&schedule.plan.queue);
        names.is_some_and(|names| names.contains(&schedule.name))
    }
}
