//! INVENTED, CORRUPT, and one put that became two tasks.
//!
//! Payloads are compared by their digests. A put whose answer was lost may have created one task.

use crate::history::book::Book;
use crate::history::lease::Handed;
use crate::history::report::{Report, Verdict};
use crate::history::shelf::{Entry, Task};

pub(super) fn check(book: &Book, report: &mut Report) {
    for task in &book.tasks {
        for handed in &task.handed {
            match &task.entry {
                None => without_put(book, task, handed, report),
                Some(entry) => with_put(book, task, entry, handed, report),
            }
        }
        if let Some(entry) = &task.entry {
            without_way(book, task, entry, report);
        }
    }
}

fn without_put(book: &Book, task: &Task, handed: &Handed, report: &mut Report) {
    if task.foreign || book.disturbed_us(task) < handed.span.to_us {
        return;
    }
    let name = book.name(task);
    let (payload, at_us) = (&handed.payload, handed.span.to_us);
    if book.was_put(task.queue, payload) {
        let why = "every put of that payload came out as another task";
        let detail = format!("{name} came at {at_us} us with payload {payload}, and {why}");
        report.object(Verdict::Duplicated, detail);
    } else {
        let detail = format!("{name} came at {at_us} us with payload {payload}, never put there");
        report.object(Verdict::Invented, detail);
    }
}

fn with_put(book: &Book, task: &Task, entry: &Entry, handed: &Handed, report: &mut Report) {
    let name = book.name_of(task, handed);
    let at_us = handed.span.to_us;
    let is_its_own = handed.payload == entry.payload
        || (task.several && book.was_put(task.queue, &handed.payload));
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

/// Checks a task that first came in another queue than that of its put.
fn without_way(book: &Book, task: &Task, entry: &Entry, report: &mut Report) {
    let Some(first) = task.handed.first() else { return };
    let queue = task.queue_of(first);
    if queue == task.queue || task.several {
        return;
    }
    let (put_us, at_us) = (entry.span.from_us, first.span.to_us);
    let arrival_us = book.routes.arrival_us(task.queue, queue, put_us);
    if arrival_us > at_us && book.disturbed_us(task) >= at_us {
        let (name, from) = (book.name_of(task, first), &book.queues[task.queue].name);
        let detail = format!("{name} came at {at_us} us, and nothing can have brought it there");
        report.object(Verdict::Invented, format!("{detail} from queue {from:?}"));
    }
}
