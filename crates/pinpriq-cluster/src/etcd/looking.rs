//! What the logs of all shards have come to, for people. Changes nothing.

use crate::remote::LogState;
use pinpriq_store::ledger::{Seq, Unreachable};

use crate::etcd::client::Etcd;
use crate::etcd::keys::{Fence, Keys, number};
use crate::etcd::messages::TxnResponse;
use crate::etcd::transaction::{key_read, one, reading};
use crate::etcd::trouble::Trouble;

/// How many logs are read at once. etcd accepts 128 parts of a transaction.
const LOGS_AT_ONCE: u16 = 32;

impl Etcd {
    /// Returns what the logs of this many shards have come to, or None for one that was never
    /// seized. Takes one request for each 32 shards, and ends as other calls.
    pub async fn log_states(&self, shards: u16) -> Result<Vec<Option<LogState>>, Unreachable> {
        let read = self.within_deadline(async {
            let mut states = Vec::new();
            for start in (0..shards).step_by(usize::from(LOGS_AT_ONCE)) {
                let end = shards.min(start.saturating_add(LOGS_AT_ONCE));
                let name = &self.options().name;
                let keys: Vec<Keys> = (start..end).map(|shard| Keys::new(name, shard)).collect();
                let parts = keys.iter().flat_map(|it| [it.fence(), it.head(), it.first()]);
                let response = self.transact(&reading(parts.map(one).collect())).await?;
                for at in 0..keys.len() {
                    states.push(state(&response, at * 3)?);
                }
            }
            Ok(states)
        });
        read.await.unwrap_or(Err(Trouble::Silent)).map_err(|trouble| trouble.unreachable())
    }
}

/// Returns the state of the log whose keys are read from this place on.
fn state(response: &TxnResponse, at: usize) -> Result<Option<LogState>, Trouble> {
    let Some(fence) = key_read(response, at) else { return Ok(None) };
    let fence = Fence::parse(&fence.value).ok_or(Trouble::Malformed("the fence"))?;
    let number = |at, what| {
        let value = key_read(response, at).and_then(|pair| number(&pair.value));
        value.map(Seq).ok_or(Trouble::Malformed(what))
    };
    let head = number(at + 1, "the head")?;
    let first = number(at + 2, "the first entry")?;
    Ok(Some(LogState { tenure: fence.tenure, head, first }))
}
