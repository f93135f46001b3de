//! OVER-LIMIT: more tasks were certainly taken at once than a limit allows. KEY-PASSED: a task was
//! handed out while another one of its key certainly held it back.
//!
//! A lease counts from the answer that brought it until the first moment at which anything can have
//! ended it. A limit that was changed counts as the loosest that may have held since the first of
//! the leases was asked for, because what is taken stays. For a named limit it counts if its queue
//! certainly used that limit all the time.
//!
//! A task that has failed holds its key until it has left its queue. That is certain as long as it
//! is seen again there later.

use std::collections::{BTreeSet, HashMap};

use super::bounds::current_until_us;
use super::failures::returned;
use crate::history::book::Book;
use crate::history::lease::{Deed, Fate, Handed, Span, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::shelf::{Entry, Limits, Task};
use crate::history::tolerance::Tolerance;

/// What a limit is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Whose {
    Queue,
    Key(String),
    Share(String),
}

/// The time in which a task was certainly taken, and the moment from which it may have been.
struct Taken {
    perhaps_us: u64,
    certain: Span,
}

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    for (place, queue) in book.queues.iter().enumerate().filter(|(_, it)| !it.limits.is_empty()) {
        let mut taken: HashMap<Whose, Vec<Taken>> = HashMap::new();
        for task in &book.tasks {
            let here = task.handed.iter().filter(|it| task.queue_of(it) == place && !it.popped);
            for handed in here {
                for whose in Whose::all(certain(task)) {
                    taken.entry(whose).or_default().extend(lease(book, task, handed, tolerance));
                }
            }
        }
        for (whose, mut taken) in taken {
            if queue.limits.iter().any(|limits| whose.limit(limits).is_some()) {
                report.tally.limited += u64::try_from(taken.len()).unwrap_or(u64::MAX);
                judge(book, place, &whose, &mut taken, report);
            }
        }
        check_keys(book, place, tolerance, report);
    }
    (0..book.named_limits.len()).for_each(|limit| check_named(book, limit, tolerance, report));
}

/// Counts the leases of all queues that use a limit.
fn check_named(book: &Book, number: usize, tolerance: Tolerance, report: &mut Report) {
    let named = &book.named_limits[number];
    let mut taken = Vec::new();
    for task in &book.tasks {
        for handed in task.handed.iter().filter(|it| !it.popped) {
            let queue = &book.queues[task.queue_of(handed)];
            let uses = |limits: &Limits| limits.uses == Some(number);
            if !queue.limits.iter().any(uses) {
                continue;
            }
            let Some(it) = lease(book, task, handed, tolerance) else { continue };
            let span = Span { from_us: it.perhaps_us, to_us: it.certain.to_us };
            if queue.limits_in(span).iter().all(uses) {
                taken.push(it);
            }
        }
    }
    report.tally.limited += u64::try_from(taken.len()).unwrap_or(u64::MAX);
    let strictest = named.said.iter().filter_map(|it| it.max).min();
    let most = count(&mut taken, strictest, |count, span| {
        // Where one of them says nothing, there may have been no limit.
        let loosest = named.most_in(span).into_iter().map(|max| max.unwrap_or(u64::MAX)).max();
        if let Some(loosest) = loosest.filter(|loosest| count > *loosest) {
            let (name, at_us) = (&named.name, span.to_us);
            let detail = format!("{count} of limit {name:?} at {at_us} us, at most {loosest}");
            report.object(Verdict::OverLimit, detail);
        }
    });
    report.tally.named_most = report.tally.named_most.max(most);
}

/// The put of a task, if it is certain.
pub(super) fn certain(task: &Task) -> Option<&Entry> {
    let is_certain = !task.several && !task.foreign && !task.changed;
    task.entry.as_ref().filter(|entry| is_certain && !entry.ambiguous)
}

/// The time in which a lease certainly lasted, if there is any.
fn lease(book: &Book, task: &Task, handed: &Handed, tolerance: Tolerance) -> Option<Taken> {
    let (perhaps_us, from_us) = (handed.span.from_us, handed.span.to_us);
    let until_us = current_until_us(book, task, handed, tolerance);
    let certain = Span { from_us, to_us: until_us };
    (from_us < until_us).then_some(Taken { perhaps_us, certain })
}

impl Whose {
    /// What a task counts for.
    fn all(entry: Option<&Entry>) -> impl Iterator<Item = Self> {
        let key = entry.and_then(|entry| entry.key.clone()).map(Self::Key);
        let share = entry.map(|entry| Self::Share(entry.share().to_owned()));
        [Some(Self::Queue), key, share].into_iter().flatten()
    }

    const fn limit(&self, limits: &Limits) -> Option<u64> {
        match self {
            Self::Queue => limits.of_queue,
            Self::Key(_) => limits.of_key,
            Self::Share(_) => limits.of_share,
        }
    }
}

fn judge(book: &Book, place: usize, whose: &Whose, taken: &mut [Taken], report: &mut Report) {
    let queue = &book.queues[place];
    let strictest = queue.limits.iter().filter_map(|limits| whose.limit(limits)).min();
    count(taken, strictest, |count, span| {
        let limits = queue.limits_in(span);
        // Where one of them says nothing, there may have been no limit.
        let loosest = limits.iter().map(|limits| whose.limit(limits).unwrap_or(u64::MAX)).max();
        if let Some(loosest) = loosest.filter(|loosest| count > *loosest) {
            let (name, at_us) = (&queue.name, span.to_us);
            let detail =
                format!("{count} of {whose:?} in queue {name:?} at {at_us} us, at most {loosest}");
            report.object(Verdict::OverLimit, detail);
        }
    });
}

/// Goes through the beginnings of leases in the order of time. Where more than this last, it tells
/// how many, and the time since the first of them may have begun. Returns the most.
fn count(taken: &mut [Taken], strictest: Option<u64>, mut tell: impl FnMut(u64, Span)) -> u64 {
    taken.sort_unstable_by_key(|it| it.certain.from_us);
    let mut most = 0;
    // Those that last, by their end.
    let mut lasting: BTreeSet<(u64, usize)> = BTreeSet::new();
    for (number, it) in taken.iter().enumerate() {
        while lasting.first().is_some_and(|(until_us, _)| *until_us <= it.certain.from_us) {
            lasting.pop_first();
        }
        lasting.insert((it.certain.to_us, number));
        let count = u64::try_from(lasting.len()).unwrap_or(u64::MAX);
        most = most.max(count);
        if strictest.is_none_or(|strictest| count <= strictest) {
            continue;
        }
        let begun = lasting.iter().map(|(_, number)| taken[*number].perhaps_us).min();
        let from_us = begun.unwrap_or(it.perhaps_us);
        tell(count, Span { from_us, to_us: it.certain.from_us });
    }
    most
}

/// A time in which a task certainly held back the others of its key.
struct Hold {
    from_us: u64,
    until_us: u64,
    task: usize,
}

/// Checks that what had failed held back what comes after it in its key.
fn check_keys(book: &Book, place: usize, tolerance: Tolerance, report: &mut Report) {
    let queue = &book.queues[place];
    if !queue.limits.iter().any(|limits| limits.holds_keys) {
        return;
    }
    let mut holds: HashMap<&str, Vec<Hold>> = HashMap::new();
    for (number, task) in book.tasks.iter().enumerate() {
        let entry = certain(task).filter(|entry| entry.priority.is_some());
        if let Some(key) = entry.and_then(|entry| entry.key.as_deref()) {
            let of_task = holds_of(book, place, (number, task), tolerance);
            holds.entry(key).or_default().extend(of_task);
        }
    }
    for holds in holds.values_mut() {
        holds.sort_unstable_by_key(|hold| hold.from_us);
        // The one that lasts longest of those that began before.
        let mut longest = (0, 0);
        for hold in holds {
            longest = longest.max((hold.until_us, hold.task));
            (hold.until_us, hold.task) = longest;
        }
    }
    for task in &book.tasks {
        let Some(handed) = first_time(book, place, task) else { continue };
        let key = certain(task).and_then(|entry| entry.key.as_deref());
        let Some(holds) = key.and_then(|key| holds.get(key)) else { continue };
        let begun = holds.partition_point(|hold| hold.from_us < handed.span.from_us);
        let Some(hold) = begun.checked_sub(1).map(|last| &holds[last]) else { continue };
        let span = Span { from_us: hold.from_us, to_us: handed.span.to_us };
        if hold.until_us > handed.span.to_us && always_holds(book, place, span) {
            let holder = book.name(&book.tasks[hold.task]);
            let (name, from_us) = (book.name_of(task, handed), handed.span.from_us);
            let until_us = hold.until_us;
            let detail =
                format!("{name} came from {from_us} us on, held by {holder} to {until_us}");
            report.object(Verdict::KeyPassed, detail);
        }
    }
}

/// Whether keys were certainly held all the time.
fn always_holds(book: &Book, place: usize, span: Span) -> bool {
    book.queues[place].limits_in(span).iter().all(|limits| limits.holds_keys)
}

/// The delivery of a task that can have had no other one before it, so that it held nothing itself.
pub(super) fn first_time<'t>(book: &Book, place: usize, task: &'t Task) -> Option<&'t Handed> {
    let handed = task.handed.first().filter(|it| task.queue_of(it) == place)?;
    let put_us = certain(task)?.span.from_us;
    let is_first = task.stations.len() == 1 && task.digs.is_empty();
    let span = Span { from_us: put_us, to_us: handed.span.to_us };
    (is_first && book.disturbed_us(task) > span.to_us && !book.queues[place].may_hide(span))
        .then_some(handed)
}

/// The times in which a task certainly held back the others of its key.
fn holds_of(
    book: &Book,
    place: usize,
    (number, task): (usize, &Task),
    tolerance: Tolerance,
) -> Vec<Hold> {
    let mut holds = Vec::new();
    for (handed, next) in task.handed.iter().zip(task.handed.iter().skip(1)) {
        let is_here = task.stations.len() == 1 && task.queue_of(handed) == place;
        let Some(deed) = handed.only_ender().filter(|deed| is_here && begins_hold(deed)) else {
            continue;
        };
        let from_us = deed.span.to_us;
        let lasts_us = current_until_us(book, task, next, tolerance);
        let until_us =
            if next.popped { next.span.from_us } else { lasts_us.max(next.span.from_us) };
        let until_us = until_us.min(book.disturbed_us(task));
        let span = Span { from_us: deed.span.from_us, to_us: until_us };
        let asked = Span { from_us: deed.span.from_us, to_us: from_us };
        let is_certain = handed.span.is_before(next.span) && task.digs.is_empty();
        if is_certain && !book.queues[place].may_hide(span) && always_holds(book, place, asked) {
            holds.push(Hold { from_us, until_us, task: number });
        }
    }
    holds
}

/// Whether a task holds back the others of its key after this.
fn begins_hold(deed: &Deed) -> bool {
    match deed.wish {
        Wish::Fail { .. } => returned(deed),
        Wish::Release { delay_us, .. } => delay_us > 0 && deed.fate == Fate::Waiting,
        Wish::Ack | Wish::Bury | Wish::Touch { .. } => false,
    }
}
