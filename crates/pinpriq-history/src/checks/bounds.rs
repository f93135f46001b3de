//! Until when a lease certainly lasted, and the earliest moment at which somebody else may have its
//! task.
//!
//! Both are the earliest moment at which the server can have had a reason.

use crate::book::Book;
use crate::lease::{Handed, Lasting, Wish};
use crate::shelf::Task;
use crate::tolerance::Tolerance;

/// The earliest moment at which the lease can have run out, its connection closed or the server
/// restarted.
fn undisturbed_us(book: &Book, handed: &Handed, tolerance: Tolerance) -> u64 {
    let own = match handed.lasting {
        Lasting::Us(ttr_us) => handed.earliest_deadline_us(ttr_us, tolerance),
        Lasting::Connection => book.closed_us(handed.client),
        Lasting::Uncertain => 0,
    };
    // A restart forgets a lease, unless it lasts for a time and a renewal has made it durable.
    let first = book.restarts_us.partition_point(|at_us| *at_us < handed.span.from_us);
    let forgotten = book.restarts_us.get(first).copied();
    let forgotten = forgotten.filter(|at_us| !handed.is_durable_at(*at_us));
    own.min(forgotten.unwrap_or(u64::MAX))
}

/// The earliest moment at which the task of a lease can have been handed out again.
pub(super) fn free_from_us(book: &Book, task: &Task, handed: &Handed, tolerance: Tolerance) -> u64 {
    let disturbed_us = book.disturbed_us(task);
    if handed.popped {
        return disturbed_us;
    }
    let mut free_us = undisturbed_us(book, handed, tolerance).min(disturbed_us);
    for deed in handed.deeds.iter().filter(|deed| deed.may_count()) {
        match deed.wish {
            Wish::Release { .. } => free_us = free_us.min(deed.span.from_us),
            Wish::Bury => {
                let plows = book.queues[task.queue].plows.iter();
                let digs = task.digs.iter().map(|dig| &dig.span).chain(plows);
                let after = digs.filter(|dig| dig.to_us >= deed.span.from_us);
                let dug_us = after.map(|dig| dig.from_us.max(deed.span.from_us)).min();
                free_us = free_us.min(dug_us.unwrap_or(u64::MAX));
            }
            Wish::Ack | Wish::Touch { .. } => {}
        }
    }
    free_us
}

/// Until when the receipt of a lease was certainly current.
pub(super) fn current_until_us(
    book: &Book,
    task: &Task,
    handed: &Handed,
    tolerance: Tolerance,
) -> u64 {
    let enders = handed.deeds.iter().filter(|deed| deed.may_count() && deed.ends_lease());
    let ended_us = enders.map(|deed| deed.span.from_us).min().unwrap_or(u64::MAX);
    let killed_us = task.kills.iter().map(|kill| kill.span.from_us).min().unwrap_or(u64::MAX);
    undisturbed_us(book, handed, tolerance)
        .min(book.disturbed_us(task))
        .min(ended_us)
        .min(killed_us)
}
