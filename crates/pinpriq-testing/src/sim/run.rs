//! Runs one seed, or many.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sim::bugs::Bug;
use crate::sim::faults::Counts;
use crate::sim::knobs::Knobs;
use crate::sim::trail::Trail;
use crate::sim::world::World;

/// One of this many seeds runs twice.
const TWICE_IN: u64 = 100;

/// The result of a run that found nothing wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The number of requests of clients.
    pub operations: u64,
    /// The number of commands that reached the engine.
    pub commands: u64,
    /// How often each kind of fault has struck.
    pub faults: Counts,
    /// A digest of all bytes sent to clients.
    pub digest: u64,
}

/// A run that found something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The knobs that replay it.
    pub knobs: Knobs,
    /// What is wrong.
    pub message: String,
}

/// The result of many runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The number of seeds run.
    pub seeds: u64,
    /// The number of seeds run twice.
    pub twice: u64,
    /// The sum of their outcomes.
    pub outcome: Outcome,
    /// The failures found.
    pub failures: Vec<Failure>,
}

/// Runs with these knobs, and with a planted bug if there is one.
pub fn run(knobs: &Knobs, bug: Option<Bug>) -> Result<Outcome, Box<Failure>> {
    replay(knobs, bug, &Trail::default())
}

/// Like [`run`], and records a trail of what happened.
pub fn replay(knobs: &Knobs, bug: Option<Bug>, trail: &Trail) -> Result<Outcome, Box<Failure>> {
    let simulate = || {
        let mut world = World::new(knobs, bug, trail.clone());
        world.run();
        world.calm_down();
        Outcome {
            operations: world.operations,
            commands: world.oracle.borrow().commands,
            faults: world.counts.clone(),
            digest: world.known.digest,
        }
    };
    catch_unwind(AssertUnwindSafe(simulate)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let message = text.unwrap_or_else(|| "a panic without words".to_owned());
        Box::new(Failure { knobs: *knobs, message })
    })
}

/// Runs seeds, some of them twice, until `enough` of them have failed.
pub fn run_seeds(
    seeds: impl Iterator<Item = u64>,
    adjust: impl Fn(&mut Knobs),
    bug: Option<Bug>,
    enough: usize,
) -> Summary {
    let mut summary = Summary::default();
    for seed in seeds {
        let mut knobs = Knobs::draw(seed);
        adjust(&mut knobs);
        summary.seeds += 1;
        match run(&knobs, bug) {
            Ok(outcome) => {
                if seed % TWICE_IN == 0 && run(&knobs, bug).as_ref() != Ok(&outcome) {
                    let message = "the same seed runs differently the second time".to_owned();
                    summary.failures.push(Failure { knobs, message });
                }
                summary.twice += u64::from(seed % TWICE_IN == 0);
                summary.outcome.operations += outcome.operations;
                summary.outcome.commands += outcome.commands;
                summary.outcome.faults.merge(&outcome.faults);
                summary.outcome.digest ^= outcome.digest;
            }
            Err(failure) => summary.failures.push(*failure),
        }
        if summary.failures.len() >= enough {
            break;
        }
    }
    summary
}
