//! Large tasks that come and go, so that segments become full and are compacted. They are part of
//! the history like all others. How many there are is up to the scenario.

use std::net::SocketAddr;

use pinpriq_testing::history::Outcome;
use pinpriq_testing::history::request::{PutOptions, ack, put, take};

use crate::client::Client;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;

/// Their queue.
pub(crate) const BULK: &str = "{left}-bulk";

/// The size of each.
const BYTES: usize = 700 << 10;

/// Why there is no answer.
const ENDED: &str = "the server has ended by itself";

/// Puts this many, one after the other, and finishes each.
pub(crate) fn churn(
    address: SocketAddr,
    ledger: &Ledger,
    payloads: &Payloads,
    count: u64,
) -> Fallible<()> {
    let mut client = Client::connect(address, ledger).ok_or("no server listens")?;
    for _ in 0..count {
        let request = put(BULK, &payloads.repetitive(BYTES), PutOptions::default());
        client.ask_one(request)?.ok_or(ENDED)?;
        let outcome = client.ask_one(take(BULK, 1, None, 0))?.ok_or(ENDED)?;
        let Outcome::Tasks(tasks) = outcome else { continue };
        for receipt in tasks.iter().filter_map(|task| task.receipt.as_deref()) {
            client.ask_one(ack(BULK, receipt))?.ok_or(ENDED)?;
        }
    }
    client.close()
}
