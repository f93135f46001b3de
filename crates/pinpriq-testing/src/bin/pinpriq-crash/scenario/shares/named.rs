//! A named limit that five queues use, 64 workers, and kills of workers and of the server: never
//! more leases than the limit allows, by what clients saw. Kills of owners are in `failover`.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use pinpriq_testing::Dice;
use pinpriq_testing::history::request::{set_limits, set_named_limit};
use pinpriq_testing::history::{Event, Outcome};
use pinpriq_testing::shares::Figure;

use super::shop::{Conditions, LIMIT, QUEUES, Shop, USES};
use super::{MAX, at_least, of_history};
use crate::args::Wanted;
use crate::client::{Client, Heard};
use crate::clock::{Clock, let_pass};
use crate::cluster::board::locked;
use crate::drain::drain;
use crate::fault::Fallible;
use crate::files;
use crate::ledger::Ledger;
use crate::payload::Payloads;

pub(super) const WHAT: &str =
    "a named MAX 8 over 5 queues and 64 workers; workers and the server are killed";

const CONDITIONS: Conditions =
    Conditions { ttrs_ms: &[None, Some(150), Some(500), Some(3_000)], is_ordered: true };
/// How long the server runs before it is killed, in milliseconds, and how much longer at most.
const LIFE_MS: u64 = 500;
const LONGER_MS: u64 = 2_000;

/// Plays it. Returns the figures.
pub(super) fn play(wanted: &Wanted, lasts: Duration) -> Fallible<Vec<Figure>> {
    let scratch = files::scratch(&wanted.scratch)?;
    let data = scratch.path().join("data");
    let ledger = Ledger::new(scratch.path(), "history.jsonl", wanted.tolerance)?;
    let (payloads, door) = (Payloads::default(), Mutex::new(None::<SocketAddr>));
    let listens = |_: &mut Dice| *locked(&door);
    let shop = Shop::new(&ledger, &payloads, &listens, CONDITIONS);
    let mut dice = Dice::new(wanted.seed);
    let mut server = wanted.program.start(&data)?;
    ledger.event(Event::ServerStarted)?;
    prepare(server.address, &ledger)?;
    let mut kills = 0;
    std::thread::scope(|scope| {
        let clients = shop.start(scope, &mut dice);
        let mut kill_all = || {
            let clock = Clock::starting();
            loop {
                *locked(&door) = Some(server.address);
                let_pass(Duration::from_millis(LIFE_MS + dice.below(LONGER_MS)));
                if clock.elapsed() >= lasts {
                    return Ok(());
                }
                *locked(&door) = None;
                ledger.event(Event::ServerKilled)?;
                server.kill()?;
                kills += 1;
                server = wanted.program.start(&data)?;
                ledger.event(Event::ServerStarted)?;
            }
        };
        let killed: Fallible<()> = kill_all();
        shop.end();
        for client in clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        killed
    })?;
    drain(&server, &ledger, &QUEUES)?;
    server.stop()?;
    let mut figures = of_history(wanted, &ledger, WHAT, CONDITIONS.is_ordered)?;
    figures.push(at_least("kills of the server", kills, 1));
    figures.push(shop.killed());
    Ok(figures)
}

/// Makes the limit, and lets all queues use it.
fn prepare(address: SocketAddr, ledger: &Ledger) -> Fallible<()> {
    let mut client = Client::connect(address, ledger).ok_or("no server listens")?;
    let mut requests = vec![set_named_limit(LIMIT, Some(MAX))];
    requests.extend(USES.map(set_limits));
    match client.ask(&requests)? {
        Heard::All(outcomes) if outcomes.iter().all(|it| *it == Outcome::Done) => client.close(),
        Heard::All(outcomes) | Heard::Cut(outcomes) => {
            Err(format!("the limits were answered {outcomes:?}").into())
        }
    }
}
