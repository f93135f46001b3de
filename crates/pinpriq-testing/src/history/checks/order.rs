//! OUT-OF-ORDER: a delivery while a better task was certainly ready all the time.
//!
//! A task is certainly ready from the answer to its put or release until the next request that may
//! have changed it. Three cases are not considered: readiness after a lease has run out by itself,
//! that after a move or as a dead letter before the first delivery, and times when a take whose
//! answer was lost may hide tasks.
//!
//! Where keys may hold tasks back, only tasks of one key are compared, and where shares take turns,
//! those of one share. Where a task that has failed holds its key, it goes before better ones, so
//! only first deliveries are judged.

use std::collections::HashMap;

use super::limits::first_time;
use crate::history::book::Book;
use crate::history::lease::{Deed, Fate, Span, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::shelf::{Entry, Limits, Naming, Queue, Task};
use crate::history::tolerance::Tolerance;

/// A time in which a task was certainly ready, and its place in the order.
struct Ready {
    priority: i64,
    /// The latest moment from which its place among its equals may be counted.
    placed_us: u64,
    from_us: u64,
    /// Until this moment, and perhaps longer.
    to_us: u64,
    task: usize,
}

/// A delivery whose order can be judged.
struct Choice {
    span: Span,
    priority: i64,
    /// The earliest moment from which its place among its equals may be counted.
    placed_us: u64,
    task: usize,
}

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    let mut ready: Vec<Vec<Ready>> = book.queues.iter().map(|_| Vec::new()).collect();
    let mut choices: Vec<Vec<Choice>> = book.queues.iter().map(|_| Vec::new()).collect();
    for (place, task) in book.tasks.iter().enumerate() {
        if task.several || task.changed {
            continue;
        }
        let entry = task.entry.as_ref().filter(|entry| !entry.ambiguous);
        // An id that a client gave may come back from another queue.
        let may_return =
            |entry: &Entry| entry.naming == Naming::Given && book.routes.may_leave(task.queue);
        if let Some(entry) = entry.filter(|entry| !may_return(entry)) {
            follow(book, place, task, entry, tolerance, &mut ready, &mut choices);
        }
    }
    for (queue, (ready, choices)) in ready.into_iter().zip(choices).enumerate() {
        for (ready, choices) in comparable(book, queue, ready, choices) {
            judge(book, queue, ready, choices, report);
        }
    }
}

/// Divides the tasks of a queue into those that can be compared with each other.
fn comparable(
    book: &Book,
    place: usize,
    ready: Vec<Ready>,
    choices: Vec<Choice>,
) -> Vec<(Vec<Ready>, Vec<Choice>)> {
    let queue = &book.queues[place];
    if queue.limits.is_empty() {
        return vec![(ready, choices)];
    }
    let holds = queue.limits.iter().any(|limits| limits.holds_keys);
    let mut parts: HashMap<&str, (Vec<Ready>, Vec<Choice>)> = HashMap::new();
    for ready in ready {
        if let Some(part) = part_of(queue, &book.tasks[ready.task]) {
            parts.entry(part).or_default().0.push(ready);
        }
    }
    for choice in choices {
        let task = &book.tasks[choice.task];
        let is_first = || first_time(book, place, task).is_some_and(|it| it.span == choice.span);
        if let Some(part) = part_of(queue, task).filter(|_| !holds || is_first()) {
            parts.entry(part).or_default().1.push(choice);
        }
    }
    parts.into_values().collect()
}

/// The part of the tasks of a queue that a task can be compared with.
fn part_of<'t>(queue: &Queue, task: &'t Task) -> Option<&'t str> {
    let entry = task.entry.as_ref()?;
    if queue.limits.iter().any(Limits::is_by_key) {
        entry.key.as_deref()
    } else if queue.limits.iter().any(|limits| limits.is_fair) {
        Some(entry.share())
    } else {
        Some("")
    }
}

/// Follows one task through its deliveries.
fn follow(
    book: &Book,
    place: usize,
    task: &Task,
    entry: &Entry,
    tolerance: Tolerance,
    ready: &mut [Vec<Ready>],
    choices: &mut [Vec<Choice>],
) {
    let expired_us = expires_us(task, entry, tolerance);
    let killed_us = task.kills.iter().map(|kill| kill.span.from_us).min().unwrap_or(u64::MAX);
    let end_us = expired_us.min(killed_us).min(book.disturbed_us(task));
    let mut priority = entry.priority;
    let mut placed = entry.span;
    let mut from_us = entry.acknowledged.then(|| after(entry.span, entry.delay_us, tolerance));
    // Where it was before, and the earliest moment at which it can have left.
    let mut before = (0, entry.span.from_us);
    for (turn, handed) in task.handed.iter().enumerate() {
        let Some(number) = priority else { return };
        let queue = task.queue_of(handed);
        if handed.station != before.0 {
            // When it arrived here is not certain, but it was here in time.
            placed = Span { from_us: before.1, to_us: handed.span.to_us };
            from_us = None;
        }
        before = (handed.station, handed.span.from_us);
        // A task that is not delivered again may have been removed by a pop whose answer was lost,
        // or may have gone to another queue. So only the times before a delivery in the same place
        // count.
        if let Some(from_us) = from_us {
            let to_us = handed.span.from_us.min(end_us);
            let placed_us = placed.to_us;
            ready[queue].push(Ready { priority: number, placed_us, from_us, to_us, task: place });
        }
        if handed.ordered && handed.span.to_us < book.disturbed_us(task) {
            let (span, placed_us) = (handed.span, placed.from_us);
            choices[queue].push(Choice { span, priority: number, placed_us, task: place });
        }
        let next = task.handed.get(turn + 1);
        if next.is_some_and(|next| !handed.span.is_before(next.span)) {
            return;
        }
        let Some(returned) = handed.only_ender().filter(|deed| returns(deed)) else {
            // How it came back is not certain, but nothing changed its place.
            if handed.enders().any(|deed| moves(deed.wish)) {
                return;
            }
            from_us = None;
            continue;
        };
        let delay_us = match returned.wish {
            Wish::Release { delay_us, priority: to, tail, .. } => {
                priority = to.or(priority);
                placed = if tail { returned.span } else { placed };
                Some(delay_us)
            }
            Wish::Fail { .. } if returned.fate == Fate::Accepted => Some(0),
            Wish::Fail { delay_us } => delay_us,
            Wish::Ack | Wish::Bury | Wish::Touch { .. } => return,
        };
        from_us = delay_us.map(|delay_us| after(returned.span, delay_us, tolerance));
    }
}

/// The latest moment at which a task is ready that waits from some moment of `span` on.
fn after(span: Span, delay_us: u64, tolerance: Tolerance) -> u64 {
    let tolerance_us = if delay_us == 0 { 0 } else { tolerance.of_us(delay_us) };
    span.to_us.saturating_add(delay_us).saturating_add(tolerance_us)
}

/// Whether it has certainly brought the task back into its queue.
fn returns(deed: &Deed) -> bool {
    match deed.wish {
        Wish::Release { .. } => deed.is_accepted(),
        Wish::Fail { .. } => matches!(deed.fate, Fate::Accepted | Fate::Waiting),
        Wish::Ack | Wish::Bury | Wish::Touch { .. } => false,
    }
}

/// Whether it moves the task to another place.
const fn moves(wish: Wish) -> bool {
    matches!(wish, Wish::Release { tail: true, .. } | Wish::Release { priority: Some(_), .. })
}

/// The earliest moment at which the task can have expired.
fn expires_us(task: &Task, entry: &Entry, tolerance: Tolerance) -> u64 {
    let from = |span: Span, ttl_us: u64| {
        span.from_us.saturating_add(ttl_us).saturating_sub(tolerance.of_us(ttl_us))
    };
    let own = entry.ttl_us.map(|ttl_us| from(entry.span, ttl_us));
    let deeds = task.handed.iter().flat_map(|handed| &handed.deeds);
    let given = deeds.filter_map(|deed| match deed.wish {
        Wish::Release { ttl_us: Some(ttl_us), .. } => Some(from(deed.span, ttl_us)),
        _ => None,
    });
    own.into_iter().chain(given).min().unwrap_or(u64::MAX)
}

/// Checks the deliveries of a queue in the order of their beginnings. Of all tasks that were ready
/// by then and have a better place, it considers the one that stayed ready longest.
fn judge(
    book: &Book,
    queue: usize,
    mut ready: Vec<Ready>,
    mut choices: Vec<Choice>,
    report: &mut Report,
) {
    let hidden = Hidden::of(&book.queues[queue].hidden);
    choices.retain(|choice| !hidden.overlaps(choice.span));
    report.tally.ordered += u64::try_from(choices.len()).unwrap_or(u64::MAX);
    let mut keys: Vec<(i64, u64)> = ready.iter().map(|it| (it.priority, it.placed_us)).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut longest = Longest(vec![None; keys.len() + 1]);
    ready.sort_unstable_by_key(|ready| ready.from_us);
    choices.sort_unstable_by_key(|choice| choice.span.from_us);
    let mut rest = ready.as_slice();
    for choice in &choices {
        while let Some((next, after)) = rest.split_first()
            && next.from_us < choice.span.from_us
        {
            let key = keys.partition_point(|key| *key < (next.priority, next.placed_us));
            longest.add(key, (next.to_us, next.task));
            rest = after;
        }
        let better = keys.partition_point(|key| *key < (choice.priority, choice.placed_us));
        if let Some((to_us, task)) = longest.among(better)
            && to_us > choice.span.to_us
        {
            let (came, better) = (&book.tasks[choice.task], book.name(&book.tasks[task]));
            let (from_us, until_us) = (choice.span.from_us, choice.span.to_us);
            let (name, here) = (book.name(came), &book.queues[queue].name);
            let when = format!("in queue {here:?} between {from_us} and {until_us} us");
            let detail = format!("{name} came {when} while {better} was ready until {to_us} us");
            report.object(Verdict::OutOfOrder, detail);
        }
    }
}

/// The latest end among the first keys, kept in a Fenwick tree.
struct Longest(Vec<Option<(u64, usize)>>);

impl Longest {
    fn add(&mut self, key: usize, end: (u64, usize)) {
        let mut place = key + 1;
        while let Some(slot) = self.0.get_mut(place) {
            *slot = (*slot).max(Some(end));
            place += place & place.wrapping_neg();
        }
    }

    fn among(&self, keys: usize) -> Option<(u64, usize)> {
        let mut place = keys;
        let mut longest = None;
        while place > 0 {
            longest = longest.max(self.0[place]);
            place &= place - 1;
        }
        longest
    }
}

/// The times in which tasks may be hidden, merged and in order.
struct Hidden(Vec<Span>);

impl Hidden {
    fn of(spans: &[Span]) -> Self {
        let mut spans = spans.to_vec();
        spans.sort_unstable_by_key(|span| span.from_us);
        let mut merged: Vec<Span> = Vec::new();
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.from_us <= last.to_us => last.to_us = last.to_us.max(span.to_us),
                _ => merged.push(span),
            }
        }
        Self(merged)
    }

    fn overlaps(&self, span: Span) -> bool {
        let first = self.0.partition_point(|hidden| hidden.to_us < span.from_us);
        self.0.get(first).is_some_and(|hidden| hidden.from_us <= span.to_us)
    }
}
