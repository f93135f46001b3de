//! DUPLICATED, RESURRECTED and EARLY-EXPIRED: deliveries of a task that had been delivered before.
//!
//! A second delivery is correct if the first lease may have ended: because its time was up, its
//! connection or server ended, or its holder ended it.

use super::bounds::next_from_us;
use crate::history::book::Book;
use crate::history::lease::{Fate, Handed, Lasting, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::shelf::{Naming, Task};
use crate::history::tolerance::Tolerance;

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    for task in book.tasks.iter().filter(|task| !task.several) {
        check_task(book, task, tolerance, report);
    }
}

/// Checks all deliveries of one task.
pub(super) fn check_task(book: &Book, task: &Task, tolerance: Tolerance, report: &mut Report) {
    let gone_us = gone_us(task);
    let left_us = left_us(task);
    for (place, second) in task.handed.iter().enumerate() {
        if book.disturbed_us(task) <= second.span.to_us {
            continue;
        }
        let first = place.checked_sub(1).map(|before| &task.handed[before]);
        let ended_us = gone_us.min(left_us[second.station]);
        if second.span.from_us > ended_us || follows_an_end(first, second) {
            let at_us = second.span.to_us;
            let detail = format!("{} came at {at_us} us and had ended", book.name_of(task, second));
            report.object(Verdict::Resurrected, detail);
        } else if let Some(first) = first {
            check_pair(book, task, first, second, tolerance, report);
        }
    }
    if task.stations.len() > 1 && !is_given(task) {
        check_returns(book, task, report);
    }
}

/// Whether its id may come back because clients gave it.
fn is_given(task: &Task) -> bool {
    task.entry.as_ref().is_some_and(|entry| entry.naming == Naming::Given)
}

/// For each station, when the task had certainly left it after a failure.
fn left_us(task: &Task) -> Vec<u64> {
    let mut left_us = vec![u64::MAX; task.stations.len()];
    for handed in task.handed.iter().filter(|_| !is_given(task)) {
        for deed in handed.deeds.iter().filter(|deed| deed.fate == Fate::Left) {
            left_us[handed.station] = deed.span.to_us.min(left_us[handed.station]);
        }
    }
    left_us
}

/// Checks that a task that came in another queue did not come again where it had been before. It
/// would have another id there.
fn check_returns(book: &Book, task: &Task, report: &mut Report) {
    let mut stays: Vec<(u64, u64)> = vec![(u64::MAX, 0); task.stations.len()];
    if let Some(entry) = task.entry.as_ref().filter(|_| task.is_home_known()) {
        stays[0].0 = entry.span.to_us;
    }
    for handed in &task.handed {
        let (there_us, again_us) = &mut stays[handed.station];
        *there_us = handed.span.to_us.min(*there_us);
        *again_us = handed.span.from_us.max(*again_us);
    }
    for handed in &task.handed {
        if book.disturbed_us(task) <= handed.span.to_us {
            continue;
        }
        let others = task.stations.iter().zip(&stays).enumerate();
        for (place, (station, (there_us, again_us))) in others {
            if place != handed.station
                && *there_us < handed.span.from_us
                && handed.span.to_us < *again_us
            {
                let (name, again) = (book.name_of(task, handed), &book.queues[station.queue].name);
                let when = format!("came at {} us", handed.span.to_us);
                let detail =
                    format!("{name} {when}, and at {again_us} us again in queue {again:?}");
                report.object(Verdict::Duplicated, format!("{detail} as {:?}", station.id));
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
    let one_way = next_from_us(book, task, first, second, tolerance) <= second.span.to_us;
    let other_way = !first.span.is_before(second.span)
        && next_from_us(book, task, second, first, tolerance) <= first.span.to_us;
    if one_way || other_way {
        return;
    }
    let name = book.name_of(task, second);
    let (first_us, second_us) = (first.span.from_us, second.span.to_us);
    let calls = format!("calls {} and {}", first.call, second.call);
    let (verdict, why) = match first.lasting {
        Lasting::Us(ttr_us) if !first.popped && first.station == second.station => {
            (Verdict::EarlyExpired, format!("under a lease of {ttr_us} us"))
        }
        _ if first.station == second.station => {
            (Verdict::Duplicated, "and nothing can have ended the lease".to_owned())
        }
        _ => {
            let from = book.name_of(task, first);
            (Verdict::Duplicated, format!("and nothing can have brought it there as {from}"))
        }
    };
    let detail = format!(
        "{name} came from {first_us} us on and again before {second_us} us, {why} ({calls})"
    );
    report.object(verdict, detail);
}
