//! Rounds of load and catastrophe, and a drain after some of them.
//!
//! A directory and a history are used for several rounds, and then everything is drained. The
//! history is checked after each round, so that a failure is found near its cause.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinpriq_testing::history::Event;

use crate::args::Wanted;
use crate::clock::{Clock, let_pass};
use crate::drain::drain;
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::ledger::Ledger;
use crate::load::{Load, QUEUES};
use crate::payload::Payloads;
use crate::report::say;
use crate::server::Server;
use crate::totals::Totals;
use pinpriq_testing::Dice;

/// The number of catastrophes for a directory before it is drained.
const ROUNDS: u64 = 20;
/// The longest time that the load runs before a catastrophe.
pub(crate) const LOAD_MS: u64 = 250;

/// What happens to the server under load.
pub(crate) trait Catastrophe {
    /// Ends the server.
    fn strike(&mut self, server: &mut Server) -> Fallible<()>;

    /// Makes it possible to start again.
    fn recover(&mut self) -> Fallible<()>;
}

/// Runs the requested number of rounds.
pub(crate) fn run(
    wanted: &Wanted,
    histories: &Path,
    data: &Path,
    catastrophe: &mut impl Catastrophe,
) -> Fallible<Verdict> {
    let clock = Clock::starting();
    let mut dice = Dice::new(wanted.seed);
    let mut totals = Totals::default();
    let name = &wanted.scenario;
    let mut struck = 0;
    while struck < wanted.kills && wanted.has_time(clock) {
        files::remove_directory(data)?;
        let ledger = Ledger::new(histories, "history.jsonl", wanted.tolerance)?;
        let payloads = Payloads::default();
        let load = Load::new(&ledger, &payloads);
        for round in 0..ROUNDS.min(wanted.kills - struck) {
            let mut server = wanted.program.start(data)?;
            ledger.event(Event::ServerStarted)?;
            if round == 0 {
                load.prepare(server.address)?;
            }
            let moment = Duration::from_micros(dice.below(LOAD_MS * 1_000));
            load.run(server.address, &mut dice, || {
                let_pass(moment);
                ledger.event(Event::ServerKilled)?;
                catastrophe.strike(&mut server)
            })?;
            catastrophe.recover()?;
            struck += 1;
            let report = ledger.check()?;
            if !report.is_clean() {
                let kept = kept(wanted, &ledger, struck)?;
                return Ok(Verdict::Failed(format!("{}: {}", kept.display(), report.text(5))));
            }
        }
        if usize::try_from(load.shards_reached())? < wanted.program.shards && struck >= ROUNDS {
            let reached = load.shards_reached();
            return Err(format!("only {reached} shards had any tasks").into());
        }
        let mut server = wanted.program.start(data)?;
        ledger.event(Event::ServerStarted)?;
        drain(&server, &ledger, &QUEUES)?;
        let status = server.stop()?;
        let report = ledger.check()?;
        totals.add(&report);
        if !report.is_clean() || !status.success() {
            let kept = kept(wanted, &ledger, struck)?;
            let text = report.text(5);
            return Ok(Verdict::Failed(format!("{} ({status}): {text}", kept.display())));
        }
        say(format_args!("{name}: {struck} times, {totals}"));
    }
    Ok(Verdict::Passed(format!("{struck} times, {totals}")))
}

fn kept(wanted: &Wanted, ledger: &Ledger, struck: u64) -> Fallible<PathBuf> {
    ledger.keep(&format!("{}-seed-{}-after-{struck}.jsonl", wanted.scenario, wanted.seed))
}
