//! LOST: acknowledged tasks of which nothing is left although nothing can have ended them.
//!
//! Only tasks are checked that can be in no queue but those that were found to be empty. A pop
//! whose answer was lost may have ended as many tasks as it asked for, in its queue or in one from
//! which tasks come there, so this number of tasks is not counted.

use std::collections::{BTreeMap, HashMap};

use crate::history::book::Book;
use crate::history::lease::{Fate, Span, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::routes::Policy;
use crate::history::shelf::Task;
use crate::history::tolerance::Tolerance;

/// What was found at the end in a queue and in all that its tasks may have gone to.
#[derive(Clone, Copy, Debug)]
struct End {
    /// When the queue was empty.
    drained_us: u64,
    /// When the last of them was.
    last_us: u64,
    /// Whether buried tasks may have stayed.
    buried_stay: bool,
}

/// The ends of all queues whose tasks would have been found.
pub(super) struct Ends<'a> {
    book: &'a Book,
    tolerance: Tolerance,
    by_queue: Vec<Option<End>>,
    /// How many tasks unheard pops may have removed, by the root of the queues.
    unheard: HashMap<usize, u64>,
}

pub(super) fn check(book: &Book, ends: &Ends<'_>, report: &mut Report) {
    let mut missing: BTreeMap<usize, Vec<&Task>> = BTreeMap::new();
    for task in book.tasks.iter().filter(|task| !task.several) {
        if ends.is_missing(task) {
            missing.entry(book.routes.root(task.queue)).or_default().push(task);
        }
    }
    for (root, tasks) in missing {
        let count = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        let lost = count.saturating_sub(ends.unheard.get(&root).copied().unwrap_or(0));
        let certain = usize::try_from(lost).unwrap_or(usize::MAX);
        for task in tasks.into_iter().take(certain) {
            let times = task.handed.len();
            let name = book.name(task);
            let put_us = task.entry.as_ref().map_or(0, |entry| entry.span.to_us);
            let detail = format!("{name}, acknowledged at {put_us} us, came {times} times");
            report.object(Verdict::Lost, format!("{detail}, and is not there at the end"));
        }
    }
}

impl<'a> Ends<'a> {
    pub(super) fn of(book: &'a Book, tolerance: Tolerance) -> Self {
        let mut unheard = HashMap::new();
        for (place, queue) in book.queues.iter().enumerate().filter(|it| it.1.unheard_pops > 0) {
            *unheard.entry(book.routes.root(place)).or_insert(0) += queue.unheard_pops;
        }
        let by_queue = (0..book.queues.len()).map(|queue| end_of(book, queue)).collect();
        Self { book, tolerance, by_queue, unheard }
    }

    /// Whether a task is missing and no pop whose answer was lost can have removed it.
    pub(super) fn is_lost(&self, task: &Task) -> bool {
        !self.unheard.contains_key(&self.book.routes.root(task.queue)) && self.is_missing(task)
    }

    /// Whether nothing can have ended a task that is not there at the end.
    fn is_missing(&self, task: &Task) -> bool {
        let Some(End { drained_us, last_us, buried_stay }) = self.by_queue[task.queue] else {
            return false;
        };
        let Some(entry) = task.entry.as_ref().filter(|entry| entry.acknowledged) else {
            return false;
        };
        let may_be_another =
            self.book.routes.may_leave(task.queue) && self.book.is_put_again(entry);
        if entry.span.to_us >= drained_us
            || self.book.disturbed_us(task) != u64::MAX
            || may_be_another
            || task.changed
            || !task.kills.is_empty()
            || !task.expired.is_empty()
        {
            return false;
        }
        let expires = |from_us: u64, ttl_us: Option<u64>| {
            ttl_us.is_some_and(|ttl_us| {
                let earliest_us = from_us.saturating_add(ttl_us);
                earliest_us.saturating_sub(self.tolerance.of_us(ttl_us)) <= last_us
            })
        };
        let mut deeds = task.handed.iter().flat_map(|handed| &handed.deeds);
        let may_have_ended = deeds.any(|deed| match deed.wish {
            _ if !deed.may_count() => false,
            _ if deed.buries() => buried_stay,
            Wish::Ack => true,
            Wish::Fail { .. } => buried_stay && matches!(deed.fate, Fate::Unknown | Fate::Ended),
            Wish::Release { ttl_us, .. } => expires(deed.span.from_us, ttl_us),
            Wish::Bury | Wish::Touch { .. } => false,
        });
        let popped = task.handed.iter().any(|handed| handed.popped);
        let buried_by_itself = buried_stay && may_be_buried(self.book, task.queue);
        !may_have_ended
            && !popped
            && !buried_by_itself
            && !expires(entry.span.from_us, entry.ttl_us)
    }
}

/// Whether the policy of a queue, or of one that its tasks may go to, may bury tasks.
fn may_be_buried(book: &Book, queue: usize) -> bool {
    let mut policies = book.routes.reach(queue).into_iter().map(|it| book.routes.policies_of(it));
    policies.any(|policies| policies.iter().any(Policy::may_bury))
}

/// The end of a queue, if a task of it would have been found. It would not if it may have gone into
/// a queue that was not empty at the end, or only after that one had been empty.
fn end_of(book: &Book, queue: usize) -> Option<End> {
    let (drained_us, mut buried_stay) = book.queues[queue].drained?;
    if !book.routes.may_leave(queue) {
        return Some(End { drained_us, last_us: drained_us, buried_stay });
    }
    let reach = book.routes.reach(queue);
    let mut last_us = drained_us;
    for to in &reach {
        let (to_us, stay) = book.queues[*to].drained?;
        buried_stay |= stay;
        last_us = last_us.max(to_us);
        for from in &reach {
            let (from_us, _) = book.queues[*from].drained?;
            let after = Span { from_us: to_us, to_us: from_us };
            if book.routes.is_open(*from, *to, after) {
                return None;
            }
        }
    }
    Some(End { drained_us, last_us, buried_stay })
}
