//! SIGKILL at every system call that writes, one run for each.
//!
//! A first run counts the calls. The kill happens on entry to the call, before it has any effect.
//! The effects of earlier calls remain.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::{Mutex, PoisonError};

use crate::args::Wanted;
use crate::fault::{Fallible, Verdict};
use crate::report::say;
use crate::strace::{self, Call, Point};
use crate::totals::Totals;
use crate::traced::{self, Part};

/// The number of SIGKILL.
const SIGKILL: i32 = 9;

/// Whether a call writes. Opening a file does so only if it creates it.
fn writes(call: &Call) -> bool {
    call.name != "openat" || call.rest.contains("O_CREAT")
}

#[derive(Default)]
struct Sum {
    totals: Totals,
    runs: usize,
    /// Runs in which the call did not occur because threads were scheduled differently.
    missed: usize,
    failures: Vec<String>,
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    if let Some(why) = strace::obstacle() {
        return Ok(Verdict::NotRun(why));
    }
    let mut points: Vec<(Part, Point)> = Vec::new();
    let mut counts: BTreeMap<(Part, String), usize> = BTreeMap::new();
    for part in [Part::Start, Part::Work] {
        let clean = traced::run(wanted, part, &[])?;
        if !clean.report.is_clean() || !clean.played.is_whole {
            return Ok(Verdict::Failed(format!("without any kill: {}", clean.report.text(5))));
        }
        let listening_us = if part == Part::Start { clean.listening_us } else { u64::MAX };
        let matters = |call: &Call| writes(call) && call.at_us <= listening_us;
        for point in strace::points(&clean.calls, matters) {
            *counts.entry((part, point.name.clone())).or_insert(0) += 1;
            points.push((part, point));
        }
    }
    let counts: Vec<String> =
        counts.iter().map(|((part, name), count)| format!("{part:?} {name} {count}")).collect();
    say(format_args!("syscalls: {} points: {}", points.len(), counts.join(", ")));
    let points: Vec<(Part, Point)> = points.into_iter().step_by(wanted.every).collect();

    let sum = Mutex::new(Sum::default());
    traced::try_all(&points, |(part, point)| try_one(wanted, *part, point, &sum))?;
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let figures = format!(
        "{} kills, each at another call of {} (every {}), {} more calls did not come; {}",
        sum.runs - sum.missed,
        points.len(),
        wanted.every,
        sum.missed,
        sum.totals,
    );
    Ok(Verdict::of(figures, &sum.failures))
}

fn try_one(wanted: &Wanted, part: Part, point: &Point, sum: &Mutex<Sum>) -> Fallible<()> {
    let Point { name, number } = point;
    let inject = format!("inject={name}:signal=KILL:when={number}");
    let outcome = traced::run(wanted, part, &["-e".to_owned(), inject])
        .map_err(|error| format!("{part:?}, {name} {number}: {error}"))?;
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    sum.runs += 1;
    sum.missed += usize::from(outcome.status.signal() != Some(SIGKILL));
    sum.totals.add(&outcome.report);
    if !outcome.report.is_clean() {
        let kept = outcome.ledger.keep(&format!("syscalls-{part:?}-{name}-{number}.jsonl"))?;
        let text = outcome.report.text(3);
        sum.failures.push(format!("{part:?}, {name} {number}, {}: {text}", kept.display()));
    }
    if sum.runs.is_multiple_of(100) {
        say(format_args!("syscalls: {} runs, {}", sum.runs, sum.totals));
    }
    Ok(())
}
