//! SIGKILL at random moments under load on batches, while clients drop their connections too.
//!
//! For each batch, what waits for it must come exactly once: after the batch was closed and all its
//! tasks have ended, and only if its condition holds. Histories know nothing of batches, so the
//! replies to clients are compared with each other, and after some kills with what the server
//! shows. Then all batches and tasks are finished and forgotten.

use std::time::Duration;

use pinpriq_testing::Dice;

use crate::args::Wanted;
use crate::batches::book::Book;
use crate::batches::check::{prepare, settle};
use crate::batches::load;
use crate::clock::{Clock, let_pass};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::report::say;

/// The most kills before everything is finished.
const ROUNDS_MAX: u64 = 4;
/// The longest time that the load runs before a kill.
const LOAD_MS: u64 = 800;
/// The number of kills after which all shards have had tasks.
const KILLS_ENOUGH: u64 = 20;
/// The number of kills between two lines of the report.
const LINE: u64 = 50;

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let scratch = files::scratch(&wanted.scratch)?;
    let data = scratch.path().join("data");
    let clock = Clock::starting();
    let mut dice = Dice::new(wanted.seed);
    let book = Book::default();
    let goes_on = |struck: u64| {
        let is_enough = struck >= wanted.kills && book.figures().batches >= wanted.batches;
        !is_enough && wanted.has_time(clock) && book.failures().is_empty()
    };
    let (mut struck, mut told) = (0, 0);
    while goes_on(struck) {
        let last = struck + 1 + dice.below(ROUNDS_MAX);
        while goes_on(struck) && struck < last {
            let mut server = wanted.program.start(&data)?;
            if struck == 0 {
                prepare(server.address, &book)?;
            }
            let moment = Duration::from_micros(dice.below(LOAD_MS * 1_000));
            load::run(&book, server.address, &mut dice, || {
                let_pass(moment);
                server.kill()
            })?;
            struck += 1;
        }
        if !book.failures().is_empty() {
            break;
        }
        let mut server = wanted.program.start(&data)?;
        settle(server.address, &book)?;
        let status = server.stop()?;
        if !status.success() {
            book.fail(format!("an orderly stop ended with {status}"));
        }
        if struck / LINE > told {
            told = struck / LINE;
            say(format_args!("{}: {struck} kills, {}", wanted.scenario, book.figures()));
        }
    }
    let reached = book.shards_reached();
    if usize::try_from(reached)? < wanted.program.shards && struck >= KILLS_ENOUGH {
        return Err(format!("only {reached} shards had any tasks").into());
    }
    Ok(Verdict::of(format!("{struck} kills, {}", book.figures()), &book.failures()))
}
