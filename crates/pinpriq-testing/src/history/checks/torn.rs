//! TORN: a transaction whose answer was lost, and of which a part has certainly happened while
//! another part certainly has not.
//!
//! For each task that such a transaction concerns, both cases are tried on a copy. If what the
//! clients saw of the task contradicts one of them, the other one is certain.

use std::collections::{BTreeMap, BTreeSet};

use super::loss::Ends;
use super::{receipts, redelivery, timing};
use crate::history::book::Book;
use crate::history::lease::{Deed, Fate, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::shelf::Task;
use crate::history::tolerance::Tolerance;

/// What is certain of a transaction: the names of tasks that show it.
#[derive(Default)]
struct Evidence {
    happened: Option<String>,
    not: Option<String>,
}

pub(super) fn check(book: &Book, ends: &Ends<'_>, tolerance: Tolerance, report: &mut Report) {
    let mut found: BTreeMap<u64, Evidence> = BTreeMap::new();
    for task in &book.tasks {
        weigh(book, task, ends, tolerance, &mut found);
    }
    for task in book.unseen() {
        weigh(book, &task, ends, tolerance, &mut found);
    }
    for (call, evidence) in found {
        if let Evidence { happened: Some(happened), not: Some(not) } = evidence {
            let detail = format!("call {call} has happened to {happened}, and not to {not}");
            report.object(Verdict::Torn, detail);
        }
    }
}

/// Adds what a task shows of the transactions that concern it.
fn weigh(
    book: &Book,
    task: &Task,
    ends: &Ends<'_>,
    tolerance: Tolerance,
    found: &mut BTreeMap<u64, Evidence>,
) {
    let is_certain = task.entry.as_ref().is_some_and(|entry| !entry.ambiguous);
    let calls = calls_of(task);
    if calls.is_empty() || !is_certain || task.several {
        return;
    }
    let is_possible = |task: &Task| {
        let mut report = Report::default();
        receipts::check_task(book, task, tolerance, &mut report);
        redelivery::check_task(book, task, tolerance, &mut report);
        timing::check_task(book, task, tolerance, &mut report);
        report.is_clean() && !ends.is_lost(task)
    };
    if book.disturbed_us(task) != u64::MAX || !is_possible(task) {
        return;
    }
    for call in calls {
        let name = || Some(book.name(task));
        let evidence = found.entry(call).or_default();
        match without(task, call) {
            Some(without) if is_possible(&without) => {}
            _ => evidence.happened = evidence.happened.take().or_else(name),
        }
        if !is_possible(&with(book, task, call)) {
            evidence.not = evidence.not.take().or_else(name);
        }
    }
}

/// The transactions of unknown outcome that concern a task.
fn calls_of(task: &Task) -> BTreeSet<u64> {
    let put = task.entry.as_ref().and_then(|entry| entry.open);
    let deeds = task.handed.iter().flat_map(|handed| &handed.deeds);
    let visits = task.kills.iter().chain(&task.digs);
    let open = deeds.filter_map(|deed| deed.open).chain(visits.filter_map(|visit| visit.open));
    open.chain(put).collect()
}

/// The task if this transaction has not happened. None if it would not be there.
fn without(task: &Task, call: u64) -> Option<Task> {
    let is_put = task.entry.as_ref().is_some_and(|entry| entry.open == Some(call));
    if is_put && !task.handed.is_empty() {
        return None;
    }
    let mut task = task.clone();
    for deed in deeds_of(&mut task, call) {
        deed.fate = Fate::Refused;
    }
    task.kills.retain(|visit| visit.open != Some(call));
    task.digs.retain(|visit| visit.open != Some(call));
    Some(task)
}

/// The task if this transaction has happened, as long as its server ran.
fn with(book: &Book, task: &Task, call: u64) -> Task {
    let mut task = task.clone();
    for deed in deeds_of(&mut task, call) {
        deed.span.to_us = book.life_end_us(deed.span.from_us);
        deed.fate = match deed.wish {
            Wish::Fail { .. } => Fate::Ended,
            _ => Fate::Accepted,
        };
    }
    if let Some(entry) = task.entry.as_mut().filter(|entry| entry.open == Some(call)) {
        entry.acknowledged = true;
        entry.span.to_us = book.life_end_us(entry.span.from_us);
    }
    task
}

fn deeds_of(task: &mut Task, call: u64) -> impl Iterator<Item = &mut Deed> {
    let deeds = task.handed.iter_mut().flat_map(|handed| &mut handed.deeds);
    deeds.filter(move |deed| deed.open == Some(call))
}
