//! Two loads on three nodes on etcd, whose owner is killed again and again. One is of several
//! kinds: a fair queue whose keys run one after the other, and three queues that use a named limit,
//! with the clients of `cluster`. The other is that of `named`: its 64 workers are killed, too.
//!
//! All queues of a load are in one shard.

use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{Limits, Request, set_limits, set_named_limit};
use pinpriq_testing::history::{Outcome, Tolerance};
use pinpriq_testing::shares::Figure;

use super::shop::{self, Conditions, Shop};
use super::{MAX, at_least, of_history};
use crate::args::Wanted;
use crate::client::Client;
use crate::clock::{Clock, let_pass};
use crate::cluster::NODES;
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

/// A load, and what is said of it.
pub(super) struct Scenario {
    pub(super) what: &'static str,
    /// What the names of the queues have in braces.
    tag: &'static str,
    limit: &'static str,
    plan: Plan,
    has_workers: bool,
}

/// A queue of the first load that uses its named limit.
const USER: Limits = Limits { uses: Some("{pool}"), ..Limits::NONE };

pub(super) const SCENARIOS: [Scenario; 2] = [
    Scenario {
        what: "three nodes on etcd: a fair queue with KEYLIMIT 1 and KEYHOLD, three queues with a \
            named MAX 8, and kills of their owner",
        tag: "pool",
        limit: "{pool}",
        plan: Plan {
            queues: &[
                Queue { name: "{pool}-fair", waits: false },
                Queue { name: "{pool}-a", waits: false },
                Queue { name: "{pool}-b", waits: false },
                Queue { name: "{pool}-c", waits: true },
            ],
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
        },
        has_workers: false,
    },
    Scenario {
        what: "three nodes on etcd: a named MAX 8 over 5 queues and 64 workers; workers and the \
            owner are killed",
        tag: "gpu",
        limit: shop::LIMIT,
        plan: Plan { queues: &WAITED_FOR, limits: &shop::USES, clients: 0 },
        has_workers: true,
    },
];

const WAITED_FOR: [Queue; 5] = {
    let mut queues = [Queue { name: "", waits: true }; 5];
    let mut place = 0;
    while place < queues.len() {
        queues[place].name = shop::QUEUES[place];
        place += 1;
    }
    queues
};

/// A lease without a time ends with its connection, and so with the owner of its queue.
const CONDITIONS: Conditions =
    Conditions { ttrs_ms: &[Some(150), Some(500), Some(3_000)], is_ordered: false };

/// The time between two kills, in milliseconds, and how much longer it is at most.
const CALM_MS: u64 = 500;
const LONGER_MS: u64 = 1_000;
/// The pause before something is asked again.
const AGAIN: Duration = Duration::from_millis(50);

/// Plays it. Returns the figures, or why it cannot be played here.
pub(super) fn play(
    scenario: &Scenario,
    wanted: &Wanted,
    lasts: Duration,
) -> Fallible<Result<Vec<Figure>, String>> {
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
    let played = take_over(scenario, &mut stage, &ledger, lasts);
    let failures = stage.nodes.board.failures();
    if played.is_err() || !failures.is_empty() {
        say(stage.nodes.logs());
    }
    let kills = played?;
    let mut figures = of_history(wanted, &ledger, scenario.what, !scenario.has_workers)?;
    figures.extend(kills);
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

/// Kills the owner under load as often as there is time, and empties the queues. Returns how often
/// that was, and how many workers were killed.
fn take_over(
    scenario: &Scenario,
    stage: &mut Stage,
    ledger: &Ledger,
    lasts: Duration,
) -> Fallible<Vec<Figure>> {
    let (board, payloads) = (stage.nodes.board.clone(), Payloads::default());
    let load = Load::new(ledger, &payloads, &board, scenario.plan);
    let any_door = |dice: &mut Dice| board.door(dice.index(NODES));
    let shop = Shop::new(ledger, &payloads, &any_door, CONDITIONS);
    gap(&load, Clock::starting(), &[0, 1, 2], &mut stage.dice)?;
    prepare(scenario, &load)?;
    let mut kills = 0;
    std::thread::scope(|scope| {
        let mut clients = load.start(scope, &mut stage.dice);
        if scenario.has_workers {
            clients.extend(shop.start(scope, &mut stage.dice));
        }
        let mut kill_all = || {
            let clock = Clock::starting();
            loop {
                let_pass(Duration::from_millis(CALM_MS + stage.dice.below(LONGER_MS)));
                if clock.elapsed() >= lasts {
                    return Ok(());
                }
                let owner = board.owners().get(&shard_of(scenario.tag)).copied();
                stage.kill(owner.ok_or("the queues have no owner")?, &load)?;
                gap(&load, Clock::starting(), &[0, 1, 2], &mut stage.dice)?;
                stage.nodes.check()?;
                kills += 1;
            }
        };
        let killed: Fallible<()> = kill_all();
        load.end();
        shop.end();
        for client in clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        killed
    })?;
    load.drain()?;
    let mut figures = vec![at_least("kills of the owner", kills, 1)];
    figures.extend(scenario.has_workers.then(|| shop.killed()));
    Ok(figures)
}

/// Sets what holds tasks back. Shards may still be on their way to other nodes.
fn prepare(scenario: &Scenario, load: &Load<'_>) -> Fallible<()> {
    let door = load.board.door(0).ok_or("the node does not run")?;
    let mut client = Client::connect(door, load.ledger).ok_or("no node listens")?;
    let mut requests: Vec<Request> = vec![set_named_limit(scenario.limit, Some(MAX))];
    requests.extend(scenario.plan.limits.iter().copied().map(set_limits));
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
