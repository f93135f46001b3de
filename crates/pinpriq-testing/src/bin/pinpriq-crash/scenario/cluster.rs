//! Three nodes on etcd or PostgreSQL, under load, with one trouble after another.
//!
//! After some rounds the load pauses, all queues are drained and the history is checked. So are the
//! batches that other clients have made, of which histories know nothing. Besides, each trouble
//! must be over in time, and the logs in the engine must be in order.

use std::path::Path;
use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::Tolerance;

use crate::args::Wanted;
use crate::batches::IN_CLUSTER;
use crate::batches::book::Book;
use crate::clock::{Clock, let_pass};
use crate::cluster::NODES;
use crate::cluster::batches;
use crate::cluster::engine::{Engine, Kind};
use crate::cluster::etcd::MEMBERS;
use crate::cluster::load::{Load, ON_ALL};
use crate::cluster::logs::Logs;
use crate::cluster::nodes::Nodes;
use crate::cluster::probe::gap;
use crate::cluster::trouble::{Gaps, Stage, Trouble};
use crate::fault::{Fallible, Verdict};
use crate::files;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use crate::report::say;
use crate::totals::Totals;

/// The number of rounds between two drains.
const ROUNDS: u64 = 10;

/// How much longer a lease may last than its TTR: as long as its shard has no owner, and some
/// seconds.
pub(super) const PROLONGED_US: u64 = 120_000_000;

/// The longest time between two troubles, in milliseconds.
const CALM_MS: u64 = 1_000;

/// In the long run, once in this many rounds the cluster rests for longer, so that shards move.
const REST_IN: u64 = 8;
const REST: Duration = Duration::from_secs(6);

pub(crate) fn run(wanted: &Wanted) -> Fallible<Verdict> {
    if let Some(why) = wanted.engine.missing()? {
        return Ok(Verdict::NotRun(why));
    }
    let scratch = files::scratch(&wanted.scratch)?;
    let engine = Engine::start(wanted.engine, scratch.path())?;
    let nodes = Nodes::start(&wanted.program.path, scratch.path(), &engine)?;
    let dice = Dice::new(wanted.seed);
    let mut stage = Stage { nodes, engine, dice, gaps: Gaps::default(), slack: wanted.slack };
    match stage.play(wanted, scratch.path()) {
        Ok(figures) => {
            let failures = stage.nodes.board.failures();
            if !failures.is_empty() {
                say(stage.nodes.logs());
            }
            Ok(Verdict::of(figures, &failures))
        }
        Err(fault) => {
            say(stage.nodes.logs());
            Err(fault)
        }
    }
}

impl Stage {
    /// Goes through all rounds. Returns the figures. What was wrong is on the board.
    fn play(&mut self, wanted: &Wanted, directory: &Path) -> Fallible<String> {
        let clock = Clock::starting();
        let payloads = Payloads::default();
        let book = Book::of(IN_CLUSTER);
        let mut totals = Totals::default();
        let mut logs = Logs::default();
        let mut round = 0;
        while round < wanted.rounds
            && wanted.has_time(clock)
            && self.nodes.board.failures().is_empty()
        {
            let tolerance = Tolerance { prolonged_us: PROLONGED_US, ..wanted.tolerance };
            let ledger = Ledger::new(directory, "history.jsonl", tolerance)?;
            let last = (round + ROUNDS).min(wanted.rounds);
            let kept = (&ledger, &payloads, &book);
            self.segment(wanted.engine, (round, last), kept, &mut logs)?;
            round = last;
            let report = ledger.check()?;
            totals.add(&report);
            if !report.is_clean() {
                let name = format!("cluster-seed-{}-after-{round}.jsonl", wanted.seed);
                let kept = ledger.keep(&name)?;
                self.nodes.board.fail(format!("{}: {}", kept.display(), report.text(5)));
            }
            let (figures, gaps) = (book.figures(), &self.gaps);
            say(format_args!("cluster: {round} rounds, {totals}; {figures}; {gaps}"));
        }
        for node in 0..NODES {
            let status = self.nodes.stop(node)?;
            if !status.success() {
                self.nodes.board.fail(format!("n{} ended with {status}", node + 1));
            }
        }
        logs.read(&self.engine, 0, &self.nodes.board)?;
        let (starts, entries) = (self.nodes.board.starts(), logs.entries);
        let refused = self.nodes.board.refused();
        Ok(format!(
            "{round} rounds in {} s, {totals}; {refused}; {}; {starts} terms served, {entries} \
             entries read; {}",
            clock.elapsed().as_secs(),
            book.figures(),
            self.gaps,
        ))
    }

    /// Makes some rounds of trouble under load, and then drains all queues and finishes all
    /// batches.
    fn segment(
        &mut self,
        kind: Kind,
        (first, end): (u64, u64),
        (ledger, payloads, book): (&Ledger, &Payloads, &Book),
        logs: &mut Logs,
    ) -> Fallible<()> {
        let board = self.nodes.board.clone();
        let load = Load::new(ledger, payloads, &board, ON_ALL);
        gap(&load, Clock::starting(), &[0, 1, 2], &mut self.dice)?;
        if !board.is_complete() {
            return Err("some shards have no queue that is used".into());
        }
        if first == 0 {
            batches::prepare(&board, book)?;
        }
        std::thread::scope(|scope| {
            let mut clients = load.start(scope, &mut self.dice);
            clients.extend(batches::start(scope, (&load, book), &mut self.dice));
            let made = (first..end).try_for_each(|round| {
                let trouble = self.choose(Trouble::all(kind), round)?;
                self.round((round, trouble), &load, logs)
            });
            load.end();
            for client in clients {
                client.join().map_err(|_| "a client panicked")??;
            }
            made
        })?;
        load.drain()?;
        batches::settle(&board, book, &mut self.dice)
    }

    /// Chooses the trouble of a round: first each of these, and then any.
    fn choose(&mut self, troubles: &[Trouble], round: u64) -> Fallible<Trouble> {
        if let Some(trouble) = troubles.get(usize::try_from(round)?) {
            return Ok(*trouble);
        }
        if self.dice.once_in(REST_IN) {
            let_pass(REST);
        }
        Ok(self.dice.pick(troubles))
    }

    fn round(
        &mut self,
        (round, trouble): (u64, Trouble),
        load: &Load<'_>,
        logs: &mut Logs,
    ) -> Fallible<()> {
        let_pass(Duration::from_millis(self.dice.below(CALM_MS)));
        let clock = Clock::starting();
        self.make(trouble, load)?;
        logs.read(&self.engine, self.dice.index(MEMBERS), load.board)?;
        say(format_args!("cluster: round {round}, {trouble}: {} ms", clock.us() / 1_000));
        Ok(())
    }
}
