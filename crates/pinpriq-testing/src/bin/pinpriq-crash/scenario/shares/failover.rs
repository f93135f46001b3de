//! Three nodes on etcd under a load of several kinds: a fair queue whose keys run one after the
//! other, and three queues that use a named limit. Their owner is killed again and again.
//!
//! The load and its clients are those of `cluster`, with other queues, all in one shard.

use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{Limits, Request, set_limits, set_named_limit};
use pinpriq_testing::history::{Outcome, Tolerance};
use pinpriq_testing::shares::Figure;

use super::{at_least, of_history};
use crate::args::Wanted;
use crate::client::Client;
use crate::clock::{Clock, let_pass};
use crate::cluster::cut_off::shard_of;
use crate::cluster::engine::{Engine, Kind};
use crate::cluster::load::{Load, Plan, Queue};
use crate::cluster::nodes::Nodes;
use crate::cluster::probe::gap;
use crate::cluster::trouble::{GAP_MAX_MS, Gaps, Stage};
use crate::fault::Fallible;
use crate::files;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use crate::process::GUARD;
use crate::report::say;
use crate::scenario::cluster::PROLONGED_US;

pub(super) const WHAT: &str = "three nodes on etcd: a fair queue with KEYLIMIT 1 and KEYHOLD, \
    three queues with a named MAX 8, and kills of their owner";

/// What the names of the queues have in braces.
const TAG: &str = "pool";
const LIMIT: &str = "{pool}";
const MAX: u64 = 8;

const QUEUES: [Queue; 4] = [
    Queue { name: "{pool}-fair", waits: false },
    Queue { name: "{pool}-a", waits: false },
    Queue { name: "{pool}-b", waits: false },
    Queue { name: "{pool}-c", waits: true },
];

/// A queue that uses the named limit.
const USER: Limits = Limits { uses: Some(LIMIT), ..Limits::NONE };

const PLAN: Plan = Plan {
    queues: &QUEUES,
    limits: &[
        Limits {
            queue: "{pool}-fair",
            key_limit: Some(1),
            key_hold: true,
            fair: true,
            ..Limits::NONE
        },
        Limits { queue: "{pool}-a", ..USER },
        Limits { queue: "{pool}-b", ..USER },
        Limits { queue: "{pool}-c", ..USER },
    ],
    clients: 12,
};

/// The time between two kills, in milliseconds, and how much longer it is at most.
const CALM_MS: u64 = 500;
const LONGER_MS: u64 = 1_000;
/// The pause before something is asked again.
const AGAIN: Duration = Duration::from_millis(50);

/// Plays it. Returns the figures, or why it cannot be played here.
pub(super) fn play(wanted: &Wanted, lasts: Duration) -> Fallible<Result<Vec<Figure>, String>> {
    if let Some(why) = Kind::Etcd.missing()? {
        return Ok(Err(why));
    }
    let scratch = files::scratch(&wanted.scratch)?;
    let engine = Engine::start(Kind::Etcd, scratch.path())?;
    let nodes = Nodes::start(&wanted.program.path, scratch.path(), &engine)?;
    let dice = Dice::new(wanted.seed);
    let mut stage = Stage { nodes, engine, dice, gaps: Gaps::default(), slack: wanted.slack };
    let tolerance = Tolerance { prolonged_us: PROLONGED_US, ..wanted.tolerance };
    let ledger = Ledger::new(scratch.path(), "history.jsonl", tolerance)?;
    let played = take_over(&mut stage, &ledger, lasts);
    let failures = stage.nodes.board.failures();
    if played.is_err() || !failures.is_empty() {
        say(stage.nodes.logs());
    }
    let kills = played?;
    let mut figures = of_history(wanted, &ledger, WHAT, MAX)?;
    figures.push(at_least("kills of the owner", kills, 1));
    let (longest_ms, most_ms) = (stage.gaps.longest_ms(), GAP_MAX_MS * wanted.slack);
    figures.push(Figure {
        what: "queues were not served".to_owned(),
        measured: format!("for {longest_ms} ms at most"),
        bound: format!("at most {most_ms} ms"),
        holds: longest_ms <= most_ms,
    });
    figures.extend(failures.into_iter().map(|failure| Figure {
        what: "what nodes did".to_owned(),
        measured: failure,
        bound: "nothing wrong".to_owned(),
        holds: false,
    }));
    Ok(Ok(figures))
}

/// Kills the owner under load as often as there is time, and empties the queues. Returns how often.
fn take_over(stage: &mut Stage, ledger: &Ledger, lasts: Duration) -> Fallible<u64> {
    let (board, payloads) = (stage.nodes.board.clone(), Payloads::default());
    let load = Load::new(ledger, &payloads, &board, PLAN);
    gap(&load, Clock::starting(), &[0, 1, 2], &mut stage.dice)?;
    prepare(&load)?;
    let mut kills = 0;
    std::thread::scope(|scope| {
        let clients = load.start(scope, &mut stage.dice);
        let mut kill_all = || {
            let clock = Clock::starting();
            loop {
                let_pass(Duration::from_millis(CALM_MS + stage.dice.below(LONGER_MS)));
                if clock.elapsed() >= lasts {
                    return Ok(());
                }
                let owner = board.owners().get(&shard_of(TAG)).copied();
                stage.kill(owner.ok_or("the queues have no owner")?, &load)?;
                gap(&load, Clock::starting(), &[0, 1, 2], &mut stage.dice)?;
                stage.nodes.check()?;
                kills += 1;
            }
        };
        let killed: Fallible<()> = kill_all();
        load.end();
        for client in clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        killed
    })?;
    load.drain()?;
    Ok(kills)
}

/// Sets what holds tasks back. Shards may still be on their way to other nodes.
fn prepare(load: &Load<'_>) -> Fallible<()> {
    let door = load.board.door(0).ok_or("the node does not run")?;
    let mut client = Client::connect(door, load.ledger).ok_or("no node listens")?;
    let mut requests: Vec<Request> = vec![set_named_limit(LIMIT, Some(MAX))];
    requests.extend(PLAN.limits.iter().copied().map(set_limits));
    let clock = Clock::starting();
    for request in requests {
        loop {
            match client.ask_one(request.clone())? {
                Some(Outcome::Done) => break,
                Some(Outcome::Refused(_) | Outcome::Unknown) if clock.elapsed() < GUARD => {
                    let_pass(AGAIN);
                }
                outcome => return Err(format!("a limit was answered {outcome:?}").into()),
            }
        }
    }
    client.close()
}
