//! LOST: acknowledged tasks of which nothing is left although nothing can have ended them.
//!
//! Only queues that were found to be empty are checked. A pop whose answer was lost may have ended
//! as many tasks as it asked for, so this number of tasks is not counted.

use crate::book::Book;
use crate::lease::Wish;
use crate::report::{Report, Verdict};
use crate::shelf::Task;
use crate::tolerance::Tolerance;

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    let mut missing: Vec<Vec<&Task>> = vec![Vec::new(); book.queues.len()];
    for task in book.tasks.iter().filter(|task| !task.several) {
        let Some((drained_us, buried_stay)) = book.queues[task.queue].drained else { continue };
        if is_missing(book, task, drained_us, buried_stay, tolerance) {
            missing[task.queue].push(task);
        }
    }
    for (queue, tasks) in book.queues.iter().zip(missing) {
        let count = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        let lost = count.saturating_sub(queue.unheard_pops);
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

fn is_missing(
    book: &Book,
    task: &Task,
    drained_us: u64,
    buried_stay: bool,
    tolerance: Tolerance,
) -> bool {
    let Some(entry) = task.entry.as_ref().filter(|entry| entry.acknowledged) else { return false };
    if entry.span.to_us >= drained_us
        || book.disturbed_us(task) != u64::MAX
        || task.changed
        || !task.kills.is_empty()
        || !task.expired.is_empty()
    {
        return false;
    }
    let expires = |from_us: u64, ttl_us: Option<u64>| {
        ttl_us.is_some_and(|ttl_us| {
            let earliest_us = from_us.saturating_add(ttl_us);
            earliest_us.saturating_sub(tolerance.of_us(ttl_us)) <= drained_us
        })
    };
    let mut deeds = task.handed.iter().flat_map(|handed| &handed.deeds);
    let may_have_ended = deeds.any(|deed| match deed.wish {
        _ if !deed.may_count() => false,
        Wish::Ack => true,
        Wish::Bury => buried_stay,
        Wish::Release { ttl_us, .. } => expires(deed.span.from_us, ttl_us),
        Wish::Touch { .. } => false,
    });
    let popped = task.handed.iter().any(|handed| handed.popped);
    !may_have_ended && !popped && !expires(entry.span.from_us, entry.ttl_us)
}
