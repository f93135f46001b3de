//! One run of a suite, with a bug or without, and what it means.
//!
//! An objection is only what a test program reports itself: failed tests, with the matching exit
//! code. Everything else that is not a pass is broken.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use super::VARIABLE;
use super::programs::{Programs, directory_of};
use super::table::Suite;

/// How long a run may take. All seeds of the simulator take four minutes, and more beside others.
/// Tests that wait forever report it themselves after two minutes.
const BOUND: Duration = Duration::from_mins(12);

/// How many seeds the simulator tries with each bug. It stops at the first that objects. The bug
/// that is hardest to find shows in one of some 350. Keep this margin: other seeds find the bugs
/// when the simulator changes.
const SEEDS: u64 = 1_200;

/// How many seeds the simulator of clusters tries with each bug. It stops at the first that
/// objects, which was one of the first ten for each bug that names it. A seed takes half a second
/// without optimisation.
const CLUSTER_SEEDS: u64 = 40;

/// The number of requests for each seed that the simulator runs here.
const OPERATIONS: &str = "700";

/// How many of the last lines are shown that a program says which must pass and does not. Seeds and
/// steps are among them.
const LINES_SHOWN: usize = 200;

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Some tests ran, and all passed.
    Passed,
    /// A test failed, or the simulator objects: the first of these.
    Objected(String),
    /// Neither: it crashed, hung, or there was nothing to run.
    Broken(String),
}

/// Runs a suite, with this bug if one is given.
pub(crate) fn run(suite: &Suite, bug: Option<&str>, programs: &Programs) -> Verdict {
    let (package, kind, filter) = match suite {
        Suite::Simulator => {
            return simulate(bug, SEEDS, |seeds| {
                let mut command = Command::new(&programs.simulator);
                command.args(["--operations", OPERATIONS, "--seeds", seeds]);
                command
            });
        }
        Suite::ClusterSimulator => {
            return simulate(bug, CLUSTER_SEEDS, |seeds| {
                let mut command = Command::new(&programs.cluster_simulator);
                command.args(["--first-failure", "--seeds", seeds]);
                command
            });
        }
        Suite::Tests { package, kind, filter } => (package, *kind, filter),
    };
    let Some(program) = programs.tests_of(package, kind) else {
        return Verdict::Broken("was not built".to_owned());
    };
    let mut command = Command::new(program);
    // One thread, since other programs run at the same time.
    let directory = directory_of(package);
    command.args(["--test-threads=1", filter]).current_dir(&directory);
    // Cargo sets this too. Some tests find their expected results by it.
    command.env("CARGO_MANIFEST_DIR", directory);
    // A test that did not run has not passed.
    command.env("PINPRIQ_ENGINES", "required");
    judge(command, bug, tested)
}

/// Runs a simulator with the seeds below `end`. The seed at which it objects to a bug must pass
/// without the bug.
fn simulate(bug: Option<&str>, end: u64, command: impl Fn(&str) -> Command) -> Verdict {
    let verdict = judge(command(&format!("0..{end}")), bug, simulated);
    let (Some(_), Verdict::Objected(what)) = (bug, &verdict) else { return verdict };
    let Some(seed) = seed_of(what) else {
        return Verdict::Broken(format!("does not say at which seed it objects: {what}"));
    };
    match judge(command(&format!("{seed}..{}", seed + 1)), None, simulated) {
        Verdict::Passed => verdict,
        Verdict::Objected(what) => Verdict::Broken(format!("objects without the bug too: {what}")),
        broken @ Verdict::Broken(_) => broken,
    }
}

/// Returns the seed that an objection of a simulator names.
fn seed_of(objection: &str) -> Option<u64> {
    objection.strip_prefix("seed ")?.split(':').next()?.parse().ok()
}

/// Runs a program to its end, but no longer than the bound.
fn judge(
    mut command: Command,
    bug: Option<&str>,
    verdict: fn(ExitStatus, &str) -> Verdict,
) -> Verdict {
    command.env(VARIABLE, bug.unwrap_or_default());
    // A deliberate failure must neither be remembered nor become the expected result.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env_remove("UPDATE_EXPECT");
    // A deliberate failure need not be made smaller, which repeats it a thousand times.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    // Nor is a backtrace needed: printing the frames takes longer than most tests.
    command.env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let broken = |what: &str| Verdict::Broken(what.to_owned());
    let Ok(mut child) = command.spawn() else { return broken("cannot be started") };
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return broken("says nothing");
    };
    let (ended, end) = sync_channel(1);
    let output = thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.read_to_end(&mut bytes);
        // The receiver has gone if it took too long.
        _ = ended.send(());
        read.map(|_| bytes)
    });
    let errors = thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).map(|_| bytes)
    });
    let in_time = end.recv_timeout(BOUND).is_ok();
    if !in_time {
        // It may have ended by itself meanwhile.
        drop(child.kill());
    }
    let status = child.wait();
    let mut text = String::new();
    for said in [output, errors] {
        let Ok(Ok(bytes)) = said.join() else { return broken("cannot be read") };
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    let verdict = match status {
        _ if !in_time => broken("hangs"),
        Ok(status) => verdict(status, &text),
        Err(_) => broken("cannot be waited for"),
    };
    if bug.is_none() && verdict != Verdict::Passed {
        println!("{}", last_lines(&text));
    }
    verdict
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}

/// Returns what the result of a test program means.
fn tested(status: ExitStatus, text: &str) -> Verdict {
    let mut failed = text.lines().filter_map(|line| {
        line.strip_prefix("    ").filter(|name| !name.contains(' ') && name.contains("::"))
    });
    match status.code() {
        Some(0) if text.contains("test result: ok. 0 passed") => {
            Verdict::Broken("has no such test".to_owned())
        }
        Some(0) if text.contains("test result: ok.") => Verdict::Passed,
        Some(101) if text.contains("test result: FAILED.") => {
            Verdict::Objected(failed.next().unwrap_or("some test").to_owned())
        }
        _ => Verdict::Broken(format!("crashes ({status})")),
    }
}

/// Returns what the result of the simulator means.
fn simulated(status: ExitStatus, text: &str) -> Verdict {
    let after = |word: &str| text.split_once(word).map(|(_, rest)| rest);
    match (status.code(), after("FAILED: ")) {
        (Some(0), None) => Verdict::Passed,
        (Some(1), Some(message)) => {
            let seed = after("seed=").and_then(|rest| rest.split_whitespace().next());
            let message = message.lines().next().unwrap_or_default();
            let message: String = message.chars().take(80).collect();
            Verdict::Objected(format!("seed {}: {message}", seed.unwrap_or("?")))
        }
        _ => Verdict::Broken(format!("crashes ({status})")),
    }
}

#[cfg(test)]
mod tests;
