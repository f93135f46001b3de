//! The scenarios of fair shares and limits against the real server, in real time, with a kill in
//! the one that has a restart. Prints a table.
//!
//! Who asks is one thread with one connection. Tasks come and are worked on ten times slower than
//! in simulated time, so that what the asking and the disk take does not count for much.
//!
//! Three scenarios need more than one client, and are judged by the history of all of them: a named
//! limit with kills (`named`), and two loads on a cluster whose owner is killed (`failover`).

mod failover;
mod named;
mod shop;

use std::path::PathBuf;
use std::time::Duration;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::history::Verdict as Wrong;
use pinpriq_testing::shares::{self, Fault, Figure, SCENARIOS, table};

use crate::args::Wanted;
use crate::clock::{Clock, let_pass};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::ledger::Ledger;
use crate::report::say;
use crate::server::{Program, Server};
use crate::wire;

/// How long each scenario lasts, unless that is said.
const SECONDS: u64 = 30;
/// How many times slower everything happens than in simulated time.
const SLOWNESS: u64 = 10;
/// The most leases of each limit with a name.
const MAX: u64 = 8;

/// A server, and the connection to it.
struct Real {
    program: Program,
    data: PathBuf,
    server: Server,
    wire: Resp,
    clock: Clock,
}

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    let lasts_ms = wanted.seconds.unwrap_or(SECONDS) * 1_000;
    let mut played = Vec::new();
    for scenario in SCENARIOS {
        let scenario = scenario.in_real_time(lasts_ms);
        let scratch = files::scratch(&wanted.scratch)?;
        let data = scratch.path().join("data");
        let program = wanted.program.clone();
        let server = program.start(&data)?;
        let wire = wire::connect(server.address)?;
        let mut real = Real { program, data, server, wire, clock: Clock::starting() };
        let figures = shares::run(&scenario, &mut real);
        played
            .push((scenario.what, figures.map_err(|fault| format!("{}: {fault}", scenario.name))?));
        real.server.kill()?;
    }
    let lasts = Duration::from_millis(lasts_ms);
    played.push((named::WHAT, named::play(wanted, lasts)?));
    let mut missing = None;
    for scenario in &failover::SCENARIOS {
        match failover::play(scenario, wanted, lasts)? {
            Ok(figures) => played.push((scenario.what, figures)),
            Err(why) => missing = Some(why),
        }
    }
    let text = table(&played);
    say(&text);
    let figures = played.iter().flat_map(|(_, figures)| figures);
    let wrong = figures.clone().filter(|figure| !figure.holds);
    let failures: Vec<String> =
        wrong.map(|it| format!("{}: {}, not {}", it.what, it.measured, it.bound)).collect();
    let verdict = Verdict::of(format!("{} figures", figures.count()), &failures);
    Ok(match (verdict, missing) {
        (Verdict::Passed(_), Some(why)) => Verdict::NotRun(format!("a fail-over: {why}")),
        (verdict, _) => verdict,
    })
}

/// Judges the history of the clients: the named limit, which allows [`MAX`] leases, and all other
/// rules. Keeps the history if it breaks one. The order of deliveries is among them if any are
/// `is_ordered`.
fn of_history(
    wanted: &Wanted,
    ledger: &Ledger,
    scenario: &str,
    is_ordered: bool,
) -> Fallible<Vec<Figure>> {
    let report = ledger.check()?;
    if !report.is_clean() {
        let kept = ledger.keep(&format!("shares-max-{MAX}-seed-{}.jsonl", wanted.seed))?;
        say(format_args!("{scenario}: {}: {}", kept.display(), report.text(5)));
    }
    let (counts, tally) = (report.counts(), report.tally);
    let count = |wrong: &[Wrong]| wrong.iter().filter_map(|it| counts.get(it)).sum::<usize>();
    let none = |what: &str, wrong: usize, of: String, is_empty: bool| Figure {
        what: what.to_owned(),
        measured: format!("{wrong} of {of}"),
        bound: "0".to_owned(),
        holds: wrong == 0 && !is_empty,
    };
    let known = [Wrong::OverLimit, Wrong::Lost, Wrong::OutOfOrder, Wrong::KeyPassed];
    let [over, lost, out_of_order, passed] = known.map(|it| count(&[it]));
    let others = counts.values().sum::<usize>() - count(&known);
    let (leases, puts, ordered) = (tally.limited, tally.puts, tally.ordered);
    let mut figures = vec![
        Figure {
            what: "taken at once of the limit".to_owned(),
            measured: format!("at most {}", tally.named_most),
            bound: format!("at most {MAX}"),
            // What never comes near to it shows nothing.
            holds: (MAX / 2 + 1..=MAX).contains(&tally.named_most),
        },
        none("over any limit", over, format!("{leases} leases"), leases == 0),
        none("acknowledged and lost", lost, format!("{puts} puts"), puts == 0),
        none("anything else wrong", others, format!("{} requests", tally.calls), false),
    ];
    if is_ordered || out_of_order + passed > 0 {
        let (wrong, of) = (out_of_order + passed, format!("{ordered} deliveries"));
        figures.push(none("out of order", wrong, of, ordered == 0));
    }
    Ok(figures)
}

/// Something that must have happened often enough.
fn at_least(what: &str, count: u64, least: u64) -> Figure {
    let (measured, bound) = (count.to_string(), format!("at least {least}"));
    Figure { what: what.to_owned(), measured, bound, holds: count >= least }
}

fn told(error: impl std::fmt::Display) -> Fault {
    error.to_string()
}

impl shares::Server for Real {
    fn ask(&mut self, requests: &[Words]) -> Result<Vec<Value>, Fault> {
        self.wire.send(requests.iter()).map_err(told)?;
        requests.iter().map(|_| self.wire.reply().map_err(told)).collect()
    }

    fn now_us(&self) -> u64 {
        self.clock.us()
    }

    fn wait_until_us(&mut self, at_us: u64) -> Result<(), Fault> {
        let left_us = at_us.saturating_sub(self.clock.us());
        if left_us > 0 {
            let_pass(Duration::from_micros(left_us));
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Fault> {
        self.server.kill().map_err(told)?;
        self.server = self.program.start(&self.data).map_err(told)?;
        self.wire = wire::connect(self.server.address).map_err(told)?;
        Ok(())
    }

    fn slowness(&self) -> u64 {
        SLOWNESS
    }
}
