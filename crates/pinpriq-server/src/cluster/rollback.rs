//! What a node does when it finds that the engine has lost what it had said to keep: it notes that
//! in the record of the cluster, so that all others stop too, and ends.
//!
//! Before that it asks whether the loss was accepted.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinpriq_cluster::{Meta, RegistryAnswer, RegistryCall, RolledBack, ShardNumber};
use pinpriq_store::StoreError;
use pinpriq_store::ledger::entry::EntryHeader;
use pinpriq_store::ledger::watermark::Found;
use pinpriq_store::ledger::{Answer, Call, Seq, Watermark, Writer};
use tokio::sync::{Notify, oneshot};

use super::config::{ClusterEngine, LogEnds};
use super::data::KnownCluster;
use super::founding::{ask, compare};
use super::watermarks::Watermarks;
use crate::error::ServeError;

/// How often something is tried that the engine does not answer, or others change meanwhile.
const TRIES: u32 = 8;

/// Runs something that blocks where it may, and returns before it has ended.
pub type Elsewhere = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Runs what blocks on threads of its own.
pub(crate) fn on_threads() -> Elsewhere {
    Arc::new(|work| {
        let thread = thread::Builder::new().name("comparison".to_owned());
        if let Err(source) = thread.spawn(work) {
            tracing::error!(%source, "cannot start a thread");
        }
    })
}

/// Asks and tells the registry, beside what the node asks it all the time, and compares logs.
pub struct Reporter {
    /// The engine, for a registry of its own and the logs.
    pub engine: Arc<dyn ClusterEngine>,
    /// The time to live of a session.
    pub session_ttl: Duration,
    /// The name of the node.
    pub node: String,
    /// Where logs are compared.
    pub elsewhere: Elsewhere,
}

/// What has become of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reported {
    /// It was noted, or could not be. The node has to end.
    Noted,
    /// The loss was accepted: this is true of the cluster now.
    Accepted(Meta),
}

impl Reporter {
    /// Notes what was found in the record of the cluster. Refuses a cluster that is not there any
    /// more, or another one.
    pub(crate) async fn report(
        &self,
        own: KnownCluster,
        (shard, failure): (Option<ShardNumber>, &StoreError),
    ) -> Result<Reported, ServeError> {
        let StoreError::RolledBack { expected, found } = failure else {
            return Ok(Reported::Noted);
        };
        let bell = Arc::new(Notify::new());
        let wake = {
            let bell = bell.clone();
            Arc::new(move || bell.notify_one())
        };
        let mut registry = self.engine.registry(self.session_ttl, wake);
        for _ in 0..TRIES {
            let meta = match ask(&mut *registry, &bell, RegistryCall::Find).await {
                RegistryAnswer::Meta(meta) => meta,
                RegistryAnswer::Unfounded => {
                    compare(own.id, None)?;
                    return Ok(Reported::Noted);
                }
                _ => continue,
            };
            compare(own.id, Some(&meta))?;
            let is_accepted = meta.generation > own.generation;
            let is_as_known = shard.is_none() && meta.generation == own.generation;
            if is_accepted || is_as_known {
                return Ok(Reported::Accepted(meta));
            }
            let generation = own.generation.max(meta.generation);
            if meta.rolled_back.as_ref().is_some_and(|it| it.generation >= generation) {
                return Ok(Reported::Noted);
            }
            let node = self.node.clone();
            let (expected, found) = (expected.clone(), found.clone());
            let rolled_back = Some(RolledBack { node, shard, generation, expected, found });
            let amended = Meta { rolled_back, ..meta.clone() };
            let amend = RegistryCall::Amend { meta: amended, instead_of: meta };
            if ask(&mut *registry, &bell, amend).await == RegistryAnswer::Done {
                return Ok(Reported::Noted);
            }
        }
        tracing::error!("could not note that the engine was rolled back: stop the other nodes");
        Ok(Reported::Noted)
    }

    /// Whether the record of the cluster is gone. False if the registry does not answer.
    pub(crate) async fn is_gone(&self) -> bool {
        let bell = Arc::new(Notify::new());
        let wake = {
            let bell = bell.clone();
            Arc::new(move || bell.notify_one())
        };
        let mut registry = self.engine.registry(self.session_ttl, wake);
        ask(&mut *registry, &bell, RegistryCall::Find).await == RegistryAnswer::Unfounded
    }

    /// Compares the watermarks of this generation with the logs of these shards, and returns the
    /// first log that has lost what its watermark says. Seizes nothing.
    ///
    /// Logs are compared again when they are loaded. But that may be done by another node, which
    /// has not seen as much of the log.
    pub(crate) async fn find_loss(
        &self,
        watermarks: &Watermarks,
        own: KnownCluster,
        shards: Range<ShardNumber>,
    ) -> Result<Option<(ShardNumber, StoreError)>, StoreError> {
        let marked: Vec<(ShardNumber, Watermark)> = shards
            .filter_map(|shard| watermarks.last(shard).map(|watermark| (shard, watermark)))
            .filter(|(_, it)| it.term.generation() >= u64::from(own.generation))
            .collect();
        if marked.is_empty() {
            return Ok(None);
        }
        let engine = self.engine.clone();
        let compare_all = move || {
            for (shard, watermark) in marked {
                if let Err(loss) = compare_log(&*engine, own.shards, shard, watermark)? {
                    return Ok(Some((shard, loss)));
                }
            }
            Ok(None)
        };
        let (tell, told) = oneshot::channel();
        // The receiver may have gone.
        (self.elsewhere)(Box::new(move || drop(tell.send(compare_all()))));
        told.await.unwrap_or(Err(StoreError::ThreadEnded { thread: "comparison" }))
    }
}

/// What a node has seen and an engine with another generation has not.
pub(crate) fn generation_lost(own: u32, there: u32) -> StoreError {
    let (expected, found) = (format!("generation {own}"), format!("generation {there}"));
    StoreError::RolledBack { expected, found }
}

/// Compares a watermark with a log. What is wrong with the log is the inner result.
fn compare_log(
    engine: &dyn ClusterEngine,
    shards: u16,
    shard: ShardNumber,
    watermark: Watermark,
) -> Result<Result<(), StoreError>, StoreError> {
    for _ in 0..TRIES {
        let ends = engine.log_ends(shards).map_err(|it| StoreError::NoAnswer { why: it.why })?;
        let Some(ends) = ends.get(usize::from(shard)).copied().flatten() else {
            return Ok(watermark.compare(&Found::default()));
        };
        let LogEnds { term, first, head } = ends;
        let mut found = Found { head, ..Found::default() };
        if term < watermark.term {
            found.next_term = Some(term);
        }
        if watermark.compare(&found).is_err() || watermark.head < first.max(Seq(1)) {
            return Ok(watermark.compare(&found));
        }
        // It may be removed meanwhile. Then the log begins behind it when that is asked again.
        if let Some(checksum) = read_checksum(engine, shard, watermark.head)? {
            found.checksum = Some(checksum);
            return Ok(watermark.compare(&found));
        }
    }
    let why = format!("entry {} of shard {shard} cannot be read", watermark.head.0);
    Err(StoreError::NoAnswer { why })
}

/// Reads the checksum of an entry. An entry that cannot be one has none.
fn read_checksum(
    engine: &dyn ClusterEngine,
    shard: ShardNumber,
    seq: Seq,
) -> Result<Option<u64>, StoreError> {
    let mut ledger = engine.ledger(shard, Writer::default(), Arc::new(|| ()));
    ledger.start(Call::Read { from: seq, bytes: 1 });
    ledger.wait();
    let entries = match ledger.poll() {
        Some(Answer::Read(Ok(entries))) => entries,
        Some(Answer::Read(Err(error))) => return Err(StoreError::NoAnswer { why: error.why }),
        _ => return Err(StoreError::ThreadEnded { thread: "engine" }),
    };
    let bytes = entries.into_iter().find(|(at, _)| *at == seq).map(|(_, bytes)| bytes);
    Ok(bytes.map(|bytes| EntryHeader::open(&bytes).map_or(0, |(_, checksum, _)| checksum)))
}

#[cfg(test)]
mod tests;
