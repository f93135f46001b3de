//! A system call on the data directory fails: each call in turn, once or from then on.
//!
//! After a failed write or sync of the journal, nothing more may be acknowledged in this life
//! of the server, and the next life must show everything that was acknowledged. A spare file that
//! cannot be prepared is not yet part of the journal, and the unused rest of an old segment no
//! longer is, so the server may continue.

use std::sync::{Mutex, PoisonError};

use crate::args::Wanted;
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::report::say;
use crate::strace::{self, Call, Point};
use crate::totals::Totals;
use crate::traced::{self, Part};

/// A planned failure.
struct Failure {
    part: Part,
    point: Point,
    error: &'static str,
    /// Whether all further calls of this name fail too.
    for_ever: bool,
}

#[derive(Default)]
struct Sum {
    totals: Totals,
    runs: usize,
    /// Runs in which the call did not occur.
    missed: usize,
    /// Runs in which the server reported that its store had failed.
    stopped: usize,
    /// Runs in which it did not start.
    refused: usize,
    /// Runs in which it continued without a spare file, or without the room behind a segment.
    went_on: usize,
    violations: Vec<String>,
}

/// The errors to try for a system call.
fn errors_of(name: &str) -> &'static [&'static str] {
    match name {
        "fdatasync" | "fsync" | "unlink" | "unlinkat" => &["EIO"],
        "pwrite64" | "pwritev" | "pwritev2" | "writev" | "write" | "ftruncate" => {
            &["EIO", "ENOSPC"]
        }
        "fallocate" | "rename" | "renameat" | "renameat2" | "openat" => &["ENOSPC"],
        _ => &[],
    }
}

/// Whether a call changes the data directory.
fn concerns_data(call: &Call) -> bool {
    let ours = call.rest.contains("/data/") || call.rest.contains("/data>");
    ours && (call.name != "openat" || call.rest.contains("O_CREAT"))
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    if let Some(why) = strace::obstacle() {
        return Ok(Verdict::NotRun(why));
    }
    let mut failures: Vec<Failure> = Vec::new();
    for part in [Part::Start, Part::Work] {
        let clean = traced::run(wanted, part, &[])?;
        let listening_us = if part == Part::Start { clean.listening_us } else { u64::MAX };
        let matters = |call: &Call| concerns_data(call) && call.at_us <= listening_us;
        for point in strace::points(&clean.calls, matters) {
            for error in errors_of(&point.name) {
                for for_ever in [false, true] {
                    failures.push(Failure { part, point: point.clone(), error, for_ever });
                }
            }
        }
    }
    let planned = failures.len();
    let failures: Vec<Failure> = failures.into_iter().step_by(wanted.every).collect();
    say(format_args!("errors: {planned} failures, {} of them to be tried", failures.len()));
    let sum = Mutex::new(Sum::default());
    traced::try_all(&failures, |failure| try_one(wanted, failure, &sum))?;
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let figures = format!(
        "{} failures of {planned} (every {}): {} not reached, {} ended the service, {} refused \
         the start, {} concerned spare room only; {}",
        sum.runs, wanted.every, sum.missed, sum.stopped, sum.refused, sum.went_on, sum.totals,
    );
    Ok(Verdict::of(figures, &sum.violations))
}

fn try_one(wanted: &Wanted, failure: &Failure, sum: &Mutex<Sum>) -> Fallible<()> {
    let Failure { part, point: Point { name, number }, error, for_ever } = failure;
    let plus = if *for_ever { "+" } else { "" };
    let what = format!("{part:?}, {name} {number}{plus}, {error}");
    let inject = format!("inject={name}:error={error}:when={number}{plus}");
    let outcome = traced::run(wanted, *part, &["-e".to_owned(), inject])
        .map_err(|error| format!("{what}: {error}"))?;
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    sum.runs += 1;
    sum.totals.add(&outcome.report);
    let violation = judge(&outcome, &mut sum);
    if let Some(violation) = violation {
        let kept = outcome.ledger.keep(&format!("errors-{}.jsonl", sum.runs))?;
        files::keep(&outcome.log, &format!("errors-{}.strace", sum.runs))?;
        sum.violations.push(format!("{what}, {}: {violation}", kept.display()));
    }
    if sum.runs.is_multiple_of(100) {
        say(format_args!("errors: {} runs, {}", sum.runs, sum.totals));
    }
    Ok(())
}

/// Returns what was wrong, if anything, and counts how the server reacted.
fn judge(outcome: &traced::Outcome, sum: &mut Sum) -> Option<String> {
    if !outcome.report.is_clean() {
        return Some(outcome.report.text(3));
    }
    let injected = |call: &&Call| call.rest.contains("(INJECTED)") && concerns_data(call);
    if !outcome.calls.iter().any(|call| injected(&call)) {
        sum.missed += 1;
        return None;
    }
    // Only the rest of a segment behind the end recorded by its successor is ever truncated.
    let journal = |call: &&Call| {
        let is_of_spare = call.rest.contains("/spare-") || puts_away(call, &outcome.calls);
        !is_of_spare && call.name != "ftruncate"
    };
    let of_journal = outcome.calls.iter().filter(injected).find(journal);
    if outcome.status.code().is_some_and(|code| code != 0) && outcome.played.accepted == 0 {
        sum.refused += 1;
    } else if of_journal.is_none() {
        sum.went_on += 1;
    } else {
        sum.stopped += 1;
    }
    let failed = of_journal.filter(|call| call.name != "unlink" && call.name != "unlinkat")?;
    let (name, rest) = (&failed.name, &failed.rest);
    if let Some(accepted_us) = outcome.played.last_accepted_us
        && accepted_us > failed.at_us
    {
        let later_us = accepted_us - failed.at_us;
        return Some(format!("accepted a change asked for {later_us} us after {name}({rest}"));
    }
    if outcome.status.success() && !is_closing_batch(failed, &outcome.calls) {
        return Some(format!("ended as if nothing had been wrong, after {name}({rest}"));
    }
    None
}

/// Whether a call syncs the directory after a segment that is not needed was put away as a spare.
/// If that fails, the next start does it.
fn puts_away(call: &Call, calls: &[Call]) -> bool {
    let is_before = |other: &&Call| other.thread == call.thread && other.at_us < call.at_us;
    let before = calls.iter().filter(is_before).max_by_key(|other| other.at_us);
    let is_of_directory = call.name == "fsync" && call.rest.contains("/data>");
    let is_put_away = |other: &Call| {
        let (from, to) = (other.rest.find("/segment-"), other.rest.find("/spare-"));
        other.name.starts_with("rename") && from.is_some() && from < to
    };
    is_of_directory && before.is_some_and(is_put_away)
}

/// Whether a call that found no room was the last write of the journal: that of the closing batch.
/// Without it an orderly stop still loses nothing and succeeds.
fn is_closing_batch(failed: &Call, calls: &[Call]) -> bool {
    let is_later_write = |call: &Call| {
        call.at_us > failed.at_us && call.name == "pwrite64" && !call.rest.contains("/spare-")
    };
    failed.name == "pwrite64" && failed.rest.contains("ENOSPC") && !calls.iter().any(is_later_write)
}
