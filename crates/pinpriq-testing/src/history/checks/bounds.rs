//! Until when a lease certainly lasted, and the earliest moment at which another client may have
//! its task.
//!
//! Both are the earliest moment at which the server can have had a reason.

use crate::history::book::Book;
use crate::history::lease::{Handed, Lasting, Wish};
use crate::history::shelf::Task;
use crate::history::tolerance::Tolerance;

/// The earliest moment at which the lease can have run out or its connection closed.
pub(super) fn own_end_us(book: &Book, handed: &Handed, tolerance: Tolerance) -> u64 {
    match handed.lasting {
        Lasting::Us(ttr_us) => handed.earliest_deadline_us(ttr_us, tolerance),
        Lasting::Connection => book.closed_us(handed.client),
        Lasting::Uncertain => 0,
    }
}

/// The earliest moment at which a restart can have forgotten the lease.
pub(super) fn forgotten_us(book: &Book, handed: &Handed) -> u64 {
    // A restart forgets a lease, unless it lasts for a time and a renewal has made it durable.
    let first = book.restarts_us.partition_point(|at_us| *at_us < handed.span.from_us);
    let forgotten = book.restarts_us.get(first).copied();
    forgotten.filter(|at_us| !handed.is_durable_at(*at_us)).unwrap_or(u64::MAX)
}

/// The earliest moment at which the lease can have run out, its connection closed or the server
/// restarted.
fn undisturbed_us(book: &Book, handed: &Handed, tolerance: Tolerance) -> u64 {
    own_end_us(book, handed, tolerance).min(forgotten_us(book, handed))
}

/// The earliest moment at which a task that was set aside no earlier than `from_us` can have been
/// brought back.
fn dug_us(book: &Book, task: &Task, handed: &Handed, from_us: u64) -> u64 {
    let plows = book.queues[task.queue_of(handed)].plows.iter();
    let digs = task.digs.iter().map(|dig| &dig.span).chain(plows);
    let after = digs.filter(|dig| dig.to_us >= from_us);
    after.map(|dig| dig.from_us.max(from_us)).min().unwrap_or(u64::MAX)
}

/// The earliest moment at which the task of a lease can have been handed out again.
fn free_from_us(book: &Book, task: &Task, handed: &Handed, tolerance: Tolerance) -> u64 {
    let disturbed_us = book.disturbed_us(task);
    if handed.popped {
        return disturbed_us;
    }
    let mut free_us = undisturbed_us(book, handed, tolerance).min(disturbed_us);
    for deed in handed.enders() {
        match deed.wish {
            _ if deed.buries() => {
                free_us = free_us.min(dug_us(book, task, handed, deed.span.from_us));
            }
            Wish::Release { .. } | Wish::Fail { .. } => free_us = free_us.min(deed.span.from_us),
            Wish::Ack | Wish::Bury | Wish::Touch { .. } => {}
        }
    }
    free_us
}

/// The earliest moment at which the task of a lease can have been handed out again in that queue
/// under
/// its id, or in the place where it was next.
pub(super) fn next_from_us(
    book: &Book,
    task: &Task,
    handed: &Handed,
    next: &Handed,
    tolerance: Tolerance,
) -> u64 {
    let free_us = free_from_us(book, task, handed, tolerance);
    if handed.station == next.station {
        return free_us;
    }
    let (from, to) = (task.queue_of(handed), task.queue_of(next));
    book.routes.arrival_us(from, to, free_us).min(book.disturbed_us(task))
}

/// Until when the receipt of a lease was certainly current.
pub(super) fn current_until_us(
    book: &Book,
    task: &Task,
    handed: &Handed,
    tolerance: Tolerance,
) -> u64 {
    let ended_us = handed.enders().map(|deed| deed.span.from_us).min().unwrap_or(u64::MAX);
    let killed_us = task.kills.iter().map(|kill| kill.span.from_us).min().unwrap_or(u64::MAX);
    undisturbed_us(book, handed, tolerance)
        .min(book.disturbed_us(task))
        .min(ended_us)
        .min(killed_us)
}
