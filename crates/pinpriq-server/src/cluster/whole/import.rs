//! Fills the logs of a cluster that does not exist yet. All of it is there in the end, or no node
//! serves any of it.
//!
//! 1. The record of the cluster is made, with a mark that it is being imported. Nodes refuse it.
//! 2. All logs are seized. From now on no import that began before this one writes anything.
//! 3. The record is compared: if another import has begun meanwhile, this one ends. So a process
//!    that was paused for long may seize logs of a cluster at work, but never writes into them.
//! 4. What an interrupted import has left is removed, and each log is filled.
//! 5. The mark is removed.

use pinpriq_cluster::{Meta, RegistryAnswer, RegistryCall, ShardNumber};
use pinpriq_store::StoreError;
use pinpriq_store::journal::Contents;
use pinpriq_store::ledger::copying::Filling;
use pinpriq_store::ledger::{Term, Writer};

use super::super::config::ClusterEngine;
use super::super::founding::new_meta;
use super::super::terms::lowest_term_at;
use super::{TRIES, WholeError, about, ask, log_ends};
use crate::clock::SystemClock;
use crate::random::random;

/// The most shards of a cluster.
const SHARDS_MAX: u16 = 1_024;

/// A batch is full with this many records, or bytes of payloads: so several go into one entry.
const BATCH_RECORDS: usize = 64;
const BATCH_PAYLOAD_BYTES: u64 = 32 << 10;

/// Makes a cluster with these contents of its shards, in order, and returns its record. Each must
/// hold what [`division_of_cluster`](super::division_of_cluster) puts there.
///
/// Refuses an engine in which there is a cluster of this name, a log or a node. If it fails or is
/// killed in the middle, nodes refuse the cluster, and another import goes through. The terms, and
/// so all receipts, are above the incarnations in the contents. Leases go on as after a stop in
/// order. Blocks; costs one append for each 64 KiB or so.
///
/// # Panics
/// If there are no shards, or more than 1024.
pub fn import(engine: &dyn ClusterEngine, contents: &[Contents]) -> Result<Meta, WholeError> {
    let shards = ShardNumber::try_from(contents.len()).unwrap_or(ShardNumber::MAX);
    assert!((1..=SHARDS_MAX).contains(&shards), "{shards} shards");
    let highest = contents.iter().map(|it| it.header.incarnation).max().unwrap_or_default();
    let generation = u32::try_from(Term(highest).generation()).unwrap_or(u32::MAX);
    let meta = begin(engine, shards, generation)?;
    let lowest = lowest_term_at(generation, SystemClock::wall());
    let at_least = lowest.max(Term(highest.saturating_add(1)));
    let writer = Writer(u128::from(random()) << 64 | u128::from(random()));
    let mut logs = Vec::new();
    for (shard, ends) in (0..SHARDS_MAX).zip(log_ends(engine, SHARDS_MAX)?) {
        let is_left_over = ends.is_some_and(|ends| ends.first <= ends.head);
        if shard < shards || is_left_over {
            let ledger = engine.ledger(shard, writer, std::sync::Arc::new(|| ()));
            logs.push((shard, Filling::seize(ledger, at_least).map_err(about(shard))?));
        }
    }
    let is_own = match ask(engine, RegistryCall::Find)? {
        RegistryAnswer::Meta(there) => there == meta,
        _ => false,
    };
    if !is_own {
        return Err(WholeError::Superseded);
    }
    for (shard, mut log) in logs {
        log.clear().map_err(of_writing(shard))?;
        let Some(Contents { header, fold }) = contents.get(usize::from(shard)) else { continue };
        let batches = fold.batches(BATCH_RECORDS, BATCH_PAYLOAD_BYTES);
        log.fill(header, batches).map_err(of_writing(shard))?;
    }
    finish(engine, &meta)
}

/// Makes the record of the cluster, with the mark, where there is none or that of an interrupted
/// import. Refuses an engine that is not empty.
fn begin(
    engine: &dyn ClusterEngine,
    shards: ShardNumber,
    generation: u32,
) -> Result<Meta, WholeError> {
    let meta = Meta { generation, importing: true, ..new_meta(shards) };
    for _ in 0..TRIES {
        let there = match ask(engine, RegistryCall::Find)? {
            RegistryAnswer::Meta(there) if there == meta => return Ok(meta),
            RegistryAnswer::Meta(there) if !there.importing => {
                let Meta { id, shards, .. } = there;
                let what = format!("it holds the cluster {id:032x} with {shards} shards");
                return Err(WholeError::NotEmpty { what });
            }
            RegistryAnswer::Meta(there) => Some(there),
            _ => None,
        };
        refuse_nodes(engine)?;
        let call = if let Some(instead_of) = there {
            RegistryCall::Amend { meta: meta.clone(), instead_of }
        } else {
            refuse_logs(engine)?;
            RegistryCall::Found(meta.clone())
        };
        match ask(engine, call)? {
            RegistryAnswer::Done => return Ok(meta),
            RegistryAnswer::Meta(there) if there == meta => return Ok(meta),
            // Another import was faster.
            _ => {}
        }
    }
    Err(WholeError::Superseded)
}

/// Refuses an engine on which a node runs.
fn refuse_nodes(engine: &dyn ClusterEngine) -> Result<(), WholeError> {
    let RegistryAnswer::View(view) = ask(engine, RegistryCall::Look)? else { return Ok(()) };
    let Some(node) = view.nodes.first() else { return Ok(()) };
    let what = format!("the node {} runs on it, or was killed there: stop it", node.name);
    Err(WholeError::NotEmpty { what })
}

/// Refuses an engine in which there are logs although there is no cluster.
fn refuse_logs(engine: &dyn ClusterEngine) -> Result<(), WholeError> {
    let logs = log_ends(engine, SHARDS_MAX)?;
    let Some(shard) = logs.iter().position(Option::is_some) else { return Ok(()) };
    let what = format!("it holds a log of shard {shard}, although there is no cluster");
    Err(WholeError::NotEmpty { what })
}

/// Removes the mark. If an answer is lost, what is there decides.
fn finish(engine: &dyn ClusterEngine, marked: &Meta) -> Result<Meta, WholeError> {
    let whole = Meta { importing: false, ..marked.clone() };
    let mut result = Err(WholeError::Superseded);
    for _ in 0..TRIES {
        let amend = RegistryCall::Amend { meta: whole.clone(), instead_of: marked.clone() };
        result = match ask(engine, amend) {
            Ok(RegistryAnswer::Done) => return Ok(whole),
            Ok(_) => ask(engine, RegistryCall::Find),
            Err(silent) => Err(silent),
        };
        match &result {
            Ok(RegistryAnswer::Meta(there)) if *there == whole => return Ok(whole),
            Ok(_) => return Err(WholeError::Superseded),
            Err(_) => {}
        }
    }
    result.and(Err(WholeError::Superseded))
}

/// Says in which shard writing has failed. A log that was seized since belongs to another import.
fn of_writing(shard: ShardNumber) -> impl FnOnce(StoreError) -> WholeError {
    move |source| match source {
        StoreError::Fenced { .. } => WholeError::Superseded,
        source => about(shard)(source),
    }
}
