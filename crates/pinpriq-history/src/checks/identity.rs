//! INVENTED, CORRUPT, and one put that became two tasks.
//!
//! Payloads are compared by their digests. A put whose answer was lost may have created one task.

use crate::book::Book;
use crate::lease::Handed;
use crate::report::{Report, Verdict};
use crate::shelf::{Entry, Task};

pub(super) fn check(book: &Book, report: &mut Report) {
    for task in &book.tasks {
        for handed in &task.handed {
            match &task.entry {
                None => without_put(book, task, handed, report),
                Some(entry) => with_put(book, task, entry, handed, report),
            }
        }
    }
}

fn without_put(book: &Book, task: &Task, handed: &Handed, report: &mut Report) {
    if book.disturbed_us(task) < handed.span.to_us {
        return;
    }
    let name = book.name(task);
    let (payload, at_us) = (&handed.payload, handed.span.to_us);
    if book.payloads.contains_key(&(task.queue, payload.clone())) {
        let why = "every put of that payload came out as another task";
        let detail = format!("{name} came at {at_us} us with payload {payload}, and {why}");
        report.object(Verdict::Duplicated, detail);
    } else {
        let detail = format!("{name} came at {at_us} us with payload {payload}, never put there");
        report.object(Verdict::Invented, detail);
    }
}

fn with_put(book: &Book, task: &Task, entry: &Entry, handed: &Handed, report: &mut Report) {
    let name = book.name(task);
    let at_us = handed.span.to_us;
    let is_its_own = handed.payload == entry.payload
        || (task.several && book.payloads.contains_key(&(task.queue, handed.payload.clone())));
    if !is_its_own && book.disturbed_us(task) >= at_us {
        let (put, came) = (&entry.payload, &handed.payload);
        let detail = format!("{name} was put with payload {put} and came at {at_us} us as {came}");
        report.object(Verdict::Corrupt, detail);
    }
    if !task.several && at_us < entry.span.from_us {
        let detail = format!("{name} came at {at_us} us, put at {} us", entry.span.from_us);
        report.object(Verdict::Invented, detail);
    }
}
