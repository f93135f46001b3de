//! The job that shows that the tests catch bugs: it plants each bug and expects an objection.
//!
//! The product knows nothing of them. Tables beside the tests say which text of the product each
//! bug changes, and a copy of the repository has every bug beside the text that is right. The tests
//! of the copy are built once, with none switched on. First all requested tests must pass like
//! this, or nothing would be shown; of a simulator, the seed at which it objects must pass. Then
//! each bug is switched on by an environment variable, and each of its suites must fail. A crash or
//! a hang of a test program is no objection.

mod choice;
mod copy;
pub(crate) mod edits;
pub(crate) mod programs;
pub(crate) mod table;
mod trial;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use programs::Programs;
use table::{Bug, Suite};
use trial::Verdict;

use crate::tidy::tree::Tree;

/// The environment variable that names the bug which is switched on.
const VARIABLE: &str = "PINPRIQ_PLANTED";

/// Says that simulators are left out where another suite is there to object.
const QUICK: &str = "--quick";

/// Comes before a commit and a seed, which choose bugs.
const SINCE: &str = "--since";

/// Runs the job for the bugs of these names, for those that have been touched, or for all.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let (quick, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| **word == QUICK);
    let is_quick = !quick.is_empty();
    let (bugs, programs) = match prepare(&words) {
        Ok(prepared) => prepared,
        Err((code, sentence)) => {
            eprintln!("planted: {sentence}");
            return ExitCode::from(code);
        }
    };
    let started = now();
    if !passes_without(&bugs, &programs) {
        println!("planted: FAILED: the suites must pass as long as no bug is planted");
        return ExitCode::FAILURE;
    }
    let caught = at_once(&bugs, |bug| catch(bug, is_quick, &programs));
    let count = caught.iter().filter(|caught| **caught).count();
    let seconds = started.elapsed().as_secs();
    println!("planted: {count} of {} bugs were caught, in {seconds} s", bugs.len());
    if count == bugs.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the bugs that the arguments ask for, and the programs that have all bugs in them. An
/// error comes with an exit code.
fn prepare(words: &[&str]) -> Result<(Vec<Bug>, Programs), (u8, String)> {
    let tree = Tree::of_repository().map_err(|error| (1, error.to_string()))?;
    let (bugs, problems) = table::read(&tree);
    if let Some(problem) = problems.first() {
        return Err((1, format!("{}:{}: {}", problem.path, problem.line, problem.what)));
    }
    let chosen = wanted(words, &bugs, &tree).map_err(|sentence| (2, sentence))?;
    copy::write(&tree, &bugs).map_err(|sentence| (1, sentence))?;
    let programs = programs::build(&bugs).map_err(|sentence| (1, sentence))?;
    Ok((chosen, programs))
}

/// Returns those of the bugs that the arguments ask for.
fn wanted(words: &[&str], bugs: &[Bug], tree: &Tree) -> Result<Vec<Bug>, String> {
    match words {
        [] => Ok(bugs.to_vec()),
        [SINCE, commit, seed] => choice::choose(bugs.to_vec(), tree, commit, seed),
        names => names.iter().map(|name| named(name, bugs)).collect(),
    }
}

fn named(name: &str, bugs: &[Bug]) -> Result<Bug, String> {
    bugs.iter().find(|bug| bug.name == name).cloned().ok_or_else(|| {
        let known: Vec<&str> = bugs.iter().map(|bug| bug.name.as_str()).collect();
        format!("there is no bug {name:?}, only {}", known.join(", "))
    })
}

/// Whether every suite of these bugs passes without them. Simulators are looked at when they
/// object.
fn passes_without(bugs: &[Bug], programs: &Programs) -> bool {
    let suites: BTreeSet<&Suite> = bugs.iter().flat_map(|bug| &bug.tests).collect();
    let words: Vec<String> = suites.iter().map(ToString::to_string).collect();
    // The tests of one suite may be some of those of another.
    let is_part = |word: &String| words.iter().any(|it| word != it && word.starts_with(it));
    let is_wanted = |suite: &&Suite| !suite.is_simulator() && !is_part(&suite.to_string());
    let suites: Vec<&Suite> = suites.into_iter().filter(is_wanted).collect();
    let passed = at_once(&suites, |suite| {
        let started = now();
        let verdict = trial::run(suite, None, programs);
        let took = seconds(started.elapsed());
        match &verdict {
            Verdict::Passed => println!("planted: nothing, {suite} passes, {took}"),
            Verdict::Objected(what) | Verdict::Broken(what) => {
                println!("planted: nothing, {suite} FAILS: {what}, {took}");
            }
        }
        matches!(verdict, Verdict::Passed)
    });
    passed.into_iter().all(|passed| passed)
}

/// Plants one bug, and returns whether all of its suites object.
fn catch(bug: &Bug, is_quick: bool, programs: &Programs) -> bool {
    let started = now();
    let mut objections = Vec::new();
    let mut silent = Vec::new();
    let leaves_simulators = is_quick && !bug.tests.iter().all(Suite::is_simulator);
    for suite in bug.tests.iter().filter(|it| !(leaves_simulators && it.is_simulator())) {
        match trial::run(suite, Some(&bug.name), programs) {
            Verdict::Objected(what) => objections.push(format!("{suite} ({what})")),
            Verdict::Passed => silent.push(format!("{suite} passes")),
            Verdict::Broken(what) => silent.push(format!("{suite} {what}")),
        }
    }
    let (word, took) = (&bug.name, seconds(started.elapsed()));
    let is_caught = silent.is_empty() && !objections.is_empty();
    if is_caught {
        println!("planted: {word} is caught by {}, {took}", objections.join(" and "));
    } else {
        println!("planted: {word} is NOT CAUGHT: {}, {took}", silent.join("; "));
    }
    is_caught
}

/// Runs `work` for each item, two at a time for each processor: many tests that object have waited
/// for what never comes.
fn at_once<T: Sync>(items: &[T], work: impl Fn(&T) -> bool + Sync) -> Vec<bool> {
    let workers =
        std::thread::available_parallelism().map_or(2, |processors| 2 * usize::from(processors));
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(work(item));
        }
        done
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(some)).collect();
        let done = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| vec![false]));
        done.flatten().collect()
    })
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "a chore measures how long it takes")]
fn now() -> Instant {
    Instant::now()
}
