//! Shows the leases of a queue, or of all queues and lanes, page by page.
//!
//! There is no index of leases. A queue has its taken tasks by seq, and the queues are gone through
//! in the order of their names, the lanes after them. A queue without leases costs a step.

use std::cmp::Ordering;
use std::ops::Bound::Included;

use crate::engine::{Answered, Engine};
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::scan::check_looked;
use crate::operations::within::Within;
use pinpriq_proto::limits::{LOOKED_BYTES_MAX, LOOKED_STEPS_MAX};
use pinpriq_proto::looking::{LeasePlace, LeaseShown, Leases};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::task::{Bytes, StateKind, TaskId};

/// A page of leases while it is filled.
struct Page {
    leases: Vec<LeaseShown>,
    count: usize,
    /// The bytes of their names and ids.
    bytes: usize,
    steps: usize,
    /// The last place that was looked at.
    last: Option<LeasePlace>,
    /// Whether there may be more after that place.
    is_full: bool,
}

impl Page {
    /// Takes a step, if one is left.
    fn has_step(&mut self) -> bool {
        self.is_full = self.steps == LOOKED_STEPS_MAX;
        self.steps += usize::from(!self.is_full);
        !self.is_full
    }

    /// Passes over a lane that is not to be shown. The next page may begin after it, and does not
    /// tell its topic.
    fn pass_over(&mut self, lane: Option<u64>) {
        if self.has_step() {
            self.last = Some(LeasePlace { lane, queue: Bytes::from([]), seq: u64::MAX });
        }
    }
}

impl Engine {
    /// Returns the next leases, of all queues and lanes only those that match if names are given.
    /// Looks at [`LOOKED_STEPS_MAX`] leases and queues at most.
    #[inline(never)]
    pub(crate) fn leases(&mut self, leases: &Leases<'_>, names: Option<&Within<'_>>) -> Answered {
        check_looked(leases.count)?;
        let count = leases.count as usize;
        let mut page =
            Page { leases: Vec::new(), count, bytes: 0, steps: 0, last: None, is_full: false };
        let after = leases.after.map_or(0, |place| place.seq);
        if let Some(name) = leases.queue {
            if let Some(queue) = self.find_queue(name)? {
                self.add_leases(queue, after, &mut page);
            }
        } else {
            let (lane, name) = leases.after.map_or((None, &[][..]), |it| (it.lane, it.queue));
            for slot in self.queues_onwards(lane, name, names) {
                let queue = &self.queues[slot];
                let found = queue.lane_name().map(|lane| lane.number);
                if names.is_some_and(|names| !names.matches(&queue.name)) {
                    page.pass_over(found);
                } else {
                    // Another shard may have a lane of this number, before this one or after it.
                    let after = match (found, &*queue.name).cmp(&(lane, name)) {
                        Ordering::Less => continue,
                        Ordering::Equal => after,
                        Ordering::Greater => 0,
                    };
                    self.add_leases(slot, after, &mut page);
                }
                if page.is_full {
                    break;
                }
            }
        }
        let next = match page.leases.last() {
            _ if !page.is_full => None,
            Some(last) if page.leases.len() == count => Some(last.place.clone()),
            _ => page.last,
        };
        Ok(Some(Reply::Leases { leases: page.leases, next: next.map(Box::new) }))
    }

    /// Iterates over all queue objects from this name on, and then over all lanes. If names are
    /// given, queues that do not match are left out. Lanes are in the order of their numbers, so
    /// each of them has to be looked at.
    fn queues_onwards<'s>(
        &'s self,
        lane: Option<u64>,
        name: &'s [u8],
        names: Option<&'s Within<'s>>,
    ) -> Box<dyn Iterator<Item = QueueSlot> + 's> {
        let Some(names) = names else { return Box::new(self.queues.onwards(lane, name)) };
        let patterns = names.patterns().take_while(move |_| lane.is_none());
        let queues = patterns.flat_map(move |it| self.queues.matching(it, Included(name)));
        Box::new(queues.map(|(_, slot)| slot).chain(self.queues.lanes_onwards(lane)))
    }

    /// Adds the leases of one queue whose seq is above `after`, as long as there is room.
    fn add_leases(&self, slot: QueueSlot, after: u64, page: &mut Page) {
        if !page.has_step() {
            return;
        }
        let queue = &self.queues[slot];
        let number = queue.lane_name().map(|lane| lane.number);
        let place = |seq| LeasePlace { lane: number, queue: queue.name.clone(), seq };
        if queue.counters.count(StateKind::Taken) > 0 && !self.has_no_owner(slot) {
            for (seq, task) in queue.indexes.by_seq(after, Some(StateKind::Taken)) {
                let is_long = page.bytes >= LOOKED_BYTES_MAX;
                if page.leases.len() == page.count || page.steps == LOOKED_STEPS_MAX || is_long {
                    page.is_full = true;
                    return;
                }
                page.steps += 1;
                page.last = Some(place(seq));
                if let Some(lease) = self.lease_shown(task, place(seq)) {
                    page.bytes += bytes_of(&lease);
                    page.leases.push(lease);
                }
            }
        }
        page.last = Some(place(u64::MAX));
    }

    /// Returns the lease of a task, unless its deadline has passed and was not fired yet.
    fn lease_shown(&self, slot: Slot, place: LeasePlace) -> Option<LeaseShown> {
        let task = &self.tasks[slot];
        let lease = task.lease()?;
        let is_over = lease.deadline.is_some_and(|at| self.now >= at);
        if is_over {
            return None;
        }
        let lane = self.queues[task.queue].lane_name();
        Some(LeaseShown {
            place,
            member: lane.map(|lane| lane.member.clone()),
            id: task.id(),
            holder: lease.client(),
            since: self.since(slot),
            until: lease.deadline,
            progress: task.progress_text().cloned(),
        })
    }

    /// Whether a queue is the lane of a member that is no longer alive.
    fn has_no_owner(&self, queue: QueueSlot) -> bool {
        let Some(lane) = &self.queues[queue].lane else { return false };
        let member = &self.members.registered[&lane.incarnation];
        member.has_ended || member.lease_until <= self.now
    }
}

/// The bytes of the names, the id and the progress of a lease.
fn bytes_of(lease: &LeaseShown) -> usize {
    let id = if let TaskId::Given(id) = &lease.id { id.len() } else { 0 };
    let texts = [&lease.member, &lease.progress].into_iter().flatten();
    lease.place.queue.len() + texts.map(|text| text.len()).sum::<usize>() + id
}
