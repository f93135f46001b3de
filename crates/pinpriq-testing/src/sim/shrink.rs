//! Shrinks a failing run: fewer operations, faults off, calmer knobs.

use crate::sim::bugs::Bug;
use crate::sim::knobs::Knobs;
use crate::sim::run::{Failure, run};

/// The most runs of a search.
const TRIES_MAX: usize = 400;

/// Searches for calmer knobs that fail too, with any message.
#[must_use]
pub fn shrink(failure: &Failure, bug: Option<Bug>) -> Failure {
    let mut best = failure.clone();
    let mut tries = 0;
    let mut again = true;
    while again && tries < TRIES_MAX {
        again = false;
        for step in [2, 4, 16] {
            let operations = best.knobs.operations - best.knobs.operations / step;
            again |= try_with(&mut best, "operations", operations, bug, &mut tries);
        }
        for name in Knobs::NAMES {
            let calm = Knobs::calm(name);
            if *name != "seed" && *name != "operations" && best.knobs.value(name) != Some(calm) {
                again |= try_with(&mut best, name, calm, bug, &mut tries);
            }
        }
    }
    best
}

fn try_with(
    best: &mut Failure,
    name: &str,
    value: u64,
    bug: Option<Bug>,
    tries: &mut usize,
) -> bool {
    let mut knobs = best.knobs;
    if *tries >= TRIES_MAX || !knobs.set(name, value) || knobs == best.knobs {
        return false;
    }
    *tries += 1;
    match run(&knobs, bug) {
        Ok(_) => false,
        Err(failure) => {
            *best = *failure;
            true
        }
    }
}
