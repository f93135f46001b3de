//! The end of a history: everything that is left is dug up, taken and acknowledged, until the
//! server itself reports that nothing is left.

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::history::{Event, Outcome};

use crate::client::Client;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::server::Server;
use pinpriq_testing::history::request::{Request, ack, plow, take};

/// The number of tasks taken at once.
const COUNT: u64 = 200;
/// How long a take waits for leases and delays to end before the figures are checked again.
const WAIT_MS: u64 = 100;
/// How many takes in a row may return nothing while tasks are left.
const EMPTY_MAX: u32 = 600;

/// Empties queues, and records in the history that they are empty.
pub(crate) fn drain(server: &Server, ledger: &Ledger, queues: &[&str]) -> Fallible<()> {
    let mut client = Client::connect(server.address, ledger).ok_or("no server listens")?;
    for queue in queues {
        let mut empty = 0;
        while present(&mut client, queue)? > 0 {
            let gone = || format!("the server ended in the drain: {}", server.process.text());
            client.ask_one(plow(queue))?.ok_or_else(gone)?;
            let outcome = client.ask_one(take(queue, COUNT, Some(60_000), WAIT_MS))?;
            let Outcome::Tasks(tasks) = outcome.ok_or_else(gone)? else {
                return Err("the drain was refused".into());
            };
            let receipts = tasks.iter().filter_map(|task| task.receipt.as_deref());
            let acks: Vec<Request> = receipts.map(|receipt| ack(queue, receipt)).collect();
            empty = if acks.is_empty() { empty + 1 } else { 0 };
            if empty > EMPTY_MAX {
                return Err(format!("queue {queue} keeps tasks and hands out none").into());
            }
            if !acks.is_empty() {
                client.ask(&acks)?;
            }
        }
        ledger.event(Event::Drained { queue: (*queue).to_owned(), buried_stay: false })?;
    }
    client.close()
}

/// The number of tasks that the server reports in a queue.
fn present(client: &mut Client<'_>, queue: &str) -> Fallible<i64> {
    match client.look(&Words::new(&format!("STATS {queue}")))? {
        Value::Error(text) if text.starts_with("NOQUEUE") => Ok(0),
        stats => match stats.field("present").and_then(Value::integer) {
            Some(count) => Ok(count),
            None => Err(format!("STATS answered {stats:?}").into()),
        },
    }
}
