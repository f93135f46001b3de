//! DUPLICATED, RESURRECTED and EARLY-EXPIRED: deliveries of a task that had been delivered before.
//!
//! A second delivery is correct if the first lease may have ended: because its time was up, its
//! connection or server ended, or its holder ended it.

use super::bounds::free_from_us;
use crate::book::Book;
use crate::lease::{Handed, Lasting, Wish};
use crate::report::{Report, Verdict};
use crate::shelf::Task;
use crate::tolerance::Tolerance;

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    for task in book.tasks.iter().filter(|task| !task.several) {
        let gone_us = gone_us(task);
        for (place, second) in task.handed.iter().enumerate() {
            if book.disturbed_us(task) <= second.span.to_us {
                continue;
            }
            let first = place.checked_sub(1).map(|before| &task.handed[before]);
            if second.span.from_us > gone_us || follows_an_end(first, second) {
                let at_us = second.span.to_us;
                let detail = format!("{} came at {at_us} us and had ended", book.name(task));
                report.object(Verdict::Resurrected, detail);
            } else if let Some(first) = first {
                check_pair(book, task, first, second, tolerance, report);
            }
        }
    }
}

/// When the task had certainly ended.
fn gone_us(task: &Task) -> u64 {
    let popped = task.handed.iter().filter(|handed| handed.popped);
    let popped_us = popped.map(|handed| handed.span.to_us).min();
    let acks = task.handed.iter().flat_map(|handed| &handed.deeds);
    let acks = acks.filter(|deed| deed.is_accepted() && deed.wish == Wish::Ack);
    let acked_us = acks.map(|deed| deed.span.to_us).min();
    let killed = task.kills.iter().filter(|kill| kill.certain);
    let killed_us = killed.map(|kill| kill.span.to_us).min();
    let expired_us = task.expired.iter().map(|expired| expired.to_us).min();
    [popped_us, acked_us, killed_us, expired_us].into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// Whether the first lease was finished and the second delivery was certainly after the first, so
/// that it was either too late or while the lease lasted.
fn follows_an_end(first: Option<&Handed>, second: &Handed) -> bool {
    first.is_some_and(|first| {
        let finished = |handed: &Handed| {
            let mut deeds = handed.deeds.iter();
            deeds.any(|deed| deed.is_accepted() && deed.wish == Wish::Ack)
        };
        first.span.is_before(second.span) && (first.popped || finished(first))
    })
}

fn check_pair(
    book: &Book,
    task: &Task,
    first: &Handed,
    second: &Handed,
    tolerance: Tolerance,
    report: &mut Report,
) {
    let free_us = free_from_us(book, task, first, tolerance);
    let one_way = free_us <= second.span.to_us;
    let other_way = !first.span.is_before(second.span)
        && free_from_us(book, task, second, tolerance) <= first.span.to_us;
    if one_way || other_way {
        return;
    }
    let name = book.name(task);
    let (first_us, second_us) = (first.span.from_us, second.span.to_us);
    let calls = format!("calls {} and {}", first.call, second.call);
    let (verdict, why) = match first.lasting {
        Lasting::Us(ttr_us) if !first.popped => {
            (Verdict::EarlyExpired, format!("under a lease of {ttr_us} us"))
        }
        _ => (Verdict::Duplicated, "and nothing can have ended the lease".to_owned()),
    };
    let detail = format!(
        "{name} came from {first_us} us on and again before {second_us} us, {why} ({calls})"
    );
    report.object(verdict, detail);
}
