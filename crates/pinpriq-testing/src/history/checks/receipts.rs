//! RECEIPT-REUSED, STALE-ACCEPTED, and receipts refused while they were certainly current.
//!
//! Receipts are not parsed: a receipt is a text that is given out once.

use super::bounds::current_until_us;
use super::windows;
use crate::history::book::Book;
use crate::history::lease::{Deed, Fate, Handed, Lasting};
use crate::history::report::{Report, Verdict};
use crate::history::shelf::Task;
use crate::history::tolerance::Tolerance;

pub(super) fn check(book: &Book, tolerance: Tolerance, report: &mut Report) {
    for (call, receipt) in &book.repeated {
        let detail = format!("receipt {receipt:?} had been given out before call {call}");
        report.object(Verdict::ReceiptReused, detail);
    }
    for task in book.tasks.iter().filter(|task| !task.several) {
        check_task(book, task, tolerance, report);
    }
}

/// Checks all leases of one task.
pub(super) fn check_task(book: &Book, task: &Task, tolerance: Tolerance, report: &mut Report) {
    let next_us = windows::earliest_next(task);
    for (handed, next_us) in task.handed.iter().zip(next_us) {
        check_lease(book, task, handed, next_us, tolerance, report);
    }
    two_acks(book, task, report);
}

/// Checks one lease. `next_us` is when another client certainly had the task.
fn check_lease(
    book: &Book,
    task: &Task,
    handed: &Handed,
    next_us: u64,
    tolerance: Tolerance,
    report: &mut Report,
) {
    let accepted = || handed.deeds.iter().filter(|deed| deed.is_accepted());
    let object = |report: &mut Report, verdict: Verdict, deed: &Deed, why: &str| {
        let (name, wish, fate) = (book.name_of(task, handed), deed.wish, deed.fate);
        let (from_us, to_us) = (deed.span.from_us, deed.span.to_us);
        let call = format!("call {}, from {from_us} to {to_us} us", deed.call);
        let detail = format!("{name}: {wish:?} was {fate:?} ({call}), {why}");
        report.object(verdict, detail);
    };
    for second in accepted().filter(|deed| deed.ends_lease()).skip(1) {
        object(report, Verdict::StaleAccepted, second, "and its lease had been ended before");
    }
    let ended_us = accepted().filter(|deed| deed.ends_lease()).map(|deed| deed.span.to_us).min();
    let killed = task.kills.iter().filter(|kill| kill.certain).map(|kill| kill.span.to_us).min();
    let deadline_us = match handed.lasting {
        Lasting::Us(ttr_us) => handed.latest_deadline_us(ttr_us, tolerance),
        Lasting::Connection => connection_end_us(book, handed),
        Lasting::Uncertain => u64::MAX,
    };
    for deed in accepted() {
        let why = if deed.span.from_us > ended_us.unwrap_or(u64::MAX) && !deed.ends_lease() {
            "and its lease had been ended"
        } else if deed.span.from_us > killed.unwrap_or(u64::MAX) {
            "and the task had been killed"
        } else if deed.span.from_us > next_us {
            "and the task had been handed out again"
        } else if deed.span.from_us > deadline_us {
            "and the time of its lease was up"
        } else {
            continue;
        };
        if book.disturbed_us(task) > deed.span.to_us {
            object(report, Verdict::StaleAccepted, deed, why);
        }
    }
    let until_us = current_until_us(book, task, handed, tolerance);
    for deed in handed.deeds.iter().filter(|deed| deed.fate == Fate::Stale) {
        if deed.span.to_us < until_us {
            object(report, Verdict::EarlyExpired, deed, "and its lease was certainly current");
        }
    }
}

/// When a lease that lasts as long as its connection has certainly ended: together with its server.
fn connection_end_us(book: &Book, handed: &Handed) -> u64 {
    let first = book.lives.partition_point(|(killed_us, _)| *killed_us <= handed.span.to_us);
    book.lives.get(first).map_or(u64::MAX, |(_, started_us)| *started_us)
}

/// Checks that a task ends only once, whatever the receipts.
fn two_acks(book: &Book, task: &Task, report: &mut Report) {
    let ack = |deed: &&Deed| deed.is_accepted() && deed.wish == crate::history::lease::Wish::Ack;
    let leases = task.handed.iter().filter(|handed| handed.deeds.iter().any(|deed| ack(&deed)));
    let count = leases.count();
    if count > 1 && book.disturbed_us(task) == u64::MAX {
        let detail = format!("{} was acknowledged under {count} leases", book.name(task));
        report.object(Verdict::StaleAccepted, detail);
    }
}
