//! The checks: each looks for one kind of thing that a correct server never does.
//!
//! Apart from sorting, all of them run in time proportional to the history. None objects where a
//! correct server could have behaved the same. `docs/internals/history.md` describes what they
//! cannot detect.

mod bounds;
mod failures;
mod identity;
mod limits;
mod loss;
mod order;
mod receipts;
mod redelivery;
mod timing;
mod torn;
mod windows;

use std::collections::HashSet;

use crate::history::book::Book;
use crate::history::reading::History;
use crate::history::record::{Event, Operation, Outcome};
use crate::history::report::{Report, Tally};
use crate::history::tolerance::Tolerance;

/// Checks a history.
#[must_use]
pub fn check(history: &History, tolerance: Tolerance) -> Report {
    let book = Book::of(history, tolerance);
    let mut report = Report { tally: tally(history, &book), violations: Vec::new() };
    identity::check(&book, &mut report);
    receipts::check(&book, tolerance, &mut report);
    redelivery::check(&book, tolerance, &mut report);
    timing::check(&book, tolerance, &mut report);
    order::check(&book, tolerance, &mut report);
    failures::check(&book, &mut report);
    limits::check(&book, tolerance, &mut report);
    let ends = loss::Ends::of(&book, tolerance);
    loss::check(&book, &ends, &mut report);
    torn::check(&book, &ends, tolerance, &mut report);
    report
}

fn tally(history: &History, book: &Book) -> Tally {
    let mut tally = Tally::default();
    let mut transactions = HashSet::new();
    for call in &history.calls {
        tally.calls += 1;
        if call.in_transaction && transactions.insert(call.number) {
            tally.transactions += 1;
        }
        match (&call.operation, &call.outcome) {
            (_, Outcome::Unknown) => tally.unknown += 1,
            (_, Outcome::Put { .. }) => tally.puts += 1,
            (Operation::Ack { .. }, Outcome::Done) => tally.acks += 1,
            (Operation::Fail { .. }, Outcome::Turned(_)) => tally.failures += 1,
            (Operation::Move { .. }, Outcome::Count(count)) => tally.moved += count,
            _ => {}
        }
    }
    for task in &book.tasks {
        let handed = u64::try_from(task.handed.len()).unwrap_or(u64::MAX);
        tally.deliveries += handed;
        tally.redeliveries += handed.saturating_sub(1);
    }
    let drained = |(_, event): &&(u64, Event)| matches!(event, Event::Drained { .. });
    let count = history.events.iter().filter(drained).count();
    tally.drained = u64::try_from(count).unwrap_or(u64::MAX);
    tally.restarts = u64::try_from(book.lives.len()).unwrap_or(u64::MAX);
    tally
}
