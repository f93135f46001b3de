//! EARLY-DELIVERED and AFTER-TTL: deliveries before the delay or back-off, and after the time to
//! live.
//!
//! Times are judged with a tolerance, since client and server read different clocks.

use super::bounds::{forgotten_us, own_end_us};
use super::failures::{least_failures, returned};
use crate::history::book::Book;
use crate::history::lease::{Handed, Span, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::routes::Policy;
use crate::history::shelf::{Entry, Task};
use crate::history::tolerance::Tolerance;

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    for task in book.tasks.iter().filter(|task| !task.several) {
        check_task(book, task, tolerance, report);
    }
}

/// Checks all deliveries of one task.
pub(super) fn check_task(book: &Book, task: &Task, tolerance: Tolerance, report: &mut Report) {
    let Some(entry) = task.entry.as_ref().filter(|entry| !entry.ambiguous) else { return };
    let disturbed_us = book.disturbed_us(task);
    for handed in task.handed.iter().filter(|handed| handed.span.to_us < disturbed_us) {
        check_put(book, task, entry, handed, tolerance, report);
    }
    let failures = least_failures(book, task);
    for (handed, failures) in task.handed.iter().zip(failures) {
        check_returns(book, task, handed, failures, tolerance, report);
        check_end(book, task, handed, failures, tolerance, report);
    }
}

fn check_put(
    book: &Book,
    task: &Task,
    entry: &Entry,
    handed: &Handed,
    tolerance: Tolerance,
    report: &mut Report,
) {
    let name = book.name_of(task, handed);
    let ready_us = entry.span.from_us.saturating_add(entry.delay_us);
    if entry.delay_us > 0
        && handed.span.to_us.saturating_add(tolerance.of_us(entry.delay_us)) < ready_us
    {
        let at_us = handed.span.to_us;
        let detail = format!("{name} came at {at_us} us and was to wait until {ready_us} us");
        report.object(Verdict::EarlyDelivered, detail);
    }
    // A dead letter has no time to live.
    let may_be_letter =
        book.routes.may_leave(task.queue) && (!task.is_home_known() || handed.station != 0);
    let keeps = !is_renewed(task) && !may_be_letter;
    let Some(ttl_us) = entry.ttl_us.filter(|_| keeps) else { return };
    let gone_us = entry.span.to_us.saturating_add(ttl_us).saturating_add(tolerance.of_us(ttl_us));
    if handed.span.from_us > gone_us {
        let at_us = handed.span.to_us;
        let detail = format!("{name} came at {at_us} us and was to live until {gone_us} us");
        report.object(Verdict::AfterTtl, detail);
    }
}

/// Whether the task may have been given another time to live.
fn is_renewed(task: &Task) -> bool {
    let mut deeds = task.handed.iter().flat_map(|handed| &handed.deeds);
    let renews = |wish: Wish| matches!(wish, Wish::Release { ttl_us: Some(_), .. });
    task.changed || deeds.any(|deed| deed.may_count() && renews(deed.wish))
}

/// The next delivery that was certainly later.
fn next_of<'a>(task: &'a Task, handed: &Handed) -> Option<&'a Handed> {
    let later = task.handed.partition_point(|it| it.span.from_us <= handed.span.to_us);
    task.handed.get(later)
}

/// Checks how soon a task came after it had been given back. `failures` is how often it had failed
/// before, at least.
fn check_returns(
    book: &Book,
    task: &Task,
    handed: &Handed,
    failures: u64,
    tolerance: Tolerance,
    report: &mut Report,
) {
    for deed in handed.deeds.iter().filter(|deed| deed.is_accepted()) {
        let wait_us = match deed.wish {
            Wish::Release { delay_us, .. } => delay_us,
            Wish::Fail { delay_us } if returned(deed) => delay_us.unwrap_or_else(|| {
                let queue = task.queue_of(handed);
                book.routes.least_wait_us(queue, deed.span, failures + 1)
            }),
            _ => continue,
        };
        if wait_us == 0 {
            continue;
        }
        let ready_us = deed.span.from_us.saturating_add(wait_us);
        let ready_us = ready_us.saturating_sub(tolerance.of_us(wait_us));
        let next = next_of(task, handed).filter(|next| next.span.to_us < ready_us);
        let Some(next) = next else { continue };
        if book.disturbed_us(task) > next.span.to_us {
            let at_us = next.span.to_us;
            let name = book.name_of(task, next);
            let how = if matches!(deed.wish, Wish::Fail { .. }) { "failed" } else { "released" };
            let detail = format!("{name} came at {at_us} us, {how} until {ready_us} us");
            report.object(Verdict::EarlyDelivered, detail);
        }
    }
}

/// Checks how soon a task came after its lease had ended by itself, which is a failure too.
fn check_end(
    book: &Book,
    task: &Task,
    handed: &Handed,
    failures: u64,
    tolerance: Tolerance,
    report: &mut Report,
) {
    let queue = task.queue_of(handed);
    let Some(next) = next_of(task, handed).filter(|next| next.station == handed.station) else {
        return;
    };
    let policies = book.routes.policies_of(queue);
    let may_bury = policies.iter().any(Policy::may_bury);
    if policies.is_empty() || may_bury || handed.popped || handed.enders().next().is_some() {
        return;
    }
    let between = Span { from_us: handed.span.from_us, to_us: next.span.to_us };
    let wait_us = book.routes.least_wait_us(queue, between, failures + 1);
    if wait_us == 0 {
        return;
    }
    let ready_us = own_end_us(book, handed, tolerance).saturating_add(wait_us);
    let ready_us = ready_us.saturating_sub(tolerance.of_us(wait_us));
    let ready_us = ready_us.min(forgotten_us(book, handed)).min(book.disturbed_us(task));
    if next.span.to_us < ready_us {
        let (name, at_us) = (book.name_of(task, next), next.span.to_us);
        let detail = format!("{name} came at {at_us} us, and its lease failed until {ready_us} us");
        report.object(Verdict::EarlyDelivered, detail);
    }
}
