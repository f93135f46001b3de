//! EARLY-DELIVERED and AFTER-TTL: deliveries before the delay and after the time to live.
//!
//! Times are judged with a tolerance, since client and server read different clocks.

use crate::book::Book;
use crate::lease::{Handed, Wish};
use crate::report::{Report, Verdict};
use crate::shelf::{Entry, Task};
use crate::tolerance::Tolerance;

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    for task in book.tasks.iter().filter(|task| !task.several) {
        let Some(entry) = task.entry.as_ref().filter(|entry| !entry.ambiguous) else { continue };
        let disturbed_us = book.disturbed_us(task);
        for handed in task.handed.iter().filter(|handed| handed.span.to_us < disturbed_us) {
            check_put(book, task, entry, handed, tolerance, report);
        }
        check_releases(book, task, tolerance, report);
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
    let name = book.name(task);
    let ready_us = entry.span.from_us.saturating_add(entry.delay_us);
    if entry.delay_us > 0
        && handed.span.to_us.saturating_add(tolerance.of_us(entry.delay_us)) < ready_us
    {
        let at_us = handed.span.to_us;
        let detail = format!("{name} came at {at_us} us and was to wait until {ready_us} us");
        report.object(Verdict::EarlyDelivered, detail);
    }
    let Some(ttl_us) = entry.ttl_us.filter(|_| !is_renewed(task)) else { return };
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

fn check_releases(book: &Book, task: &Task, tolerance: Tolerance, report: &mut Report) {
    for handed in &task.handed {
        for deed in handed.deeds.iter().filter(|deed| deed.is_accepted()) {
            let Wish::Release { delay_us, .. } = deed.wish else { continue };
            if delay_us == 0 {
                continue;
            }
            let ready_us = deed.span.from_us.saturating_add(delay_us);
            let ready_us = ready_us.saturating_sub(tolerance.of_us(delay_us));
            let later = task.handed.partition_point(|it| it.span.from_us <= handed.span.to_us);
            let next = task.handed.get(later).filter(|next| next.span.to_us < ready_us);
            let Some(next) = next else { continue };
            if book.disturbed_us(task) > next.span.to_us {
                let at_us = next.span.to_us;
                let name = book.name(task);
                let detail = format!("{name} came at {at_us} us, released until {ready_us} us");
                report.object(Verdict::EarlyDelivered, detail);
            }
        }
    }
}
