//! Copies what is in the logs of a cluster. Nodes may serve it meanwhile.
//!
//! Each shard is copied as it was at one moment: its log from the first entry that was kept then to
//! the last one. An owner removes an entry only when nothing in it counts, and only when
//! that is in the log. So what was removed before that moment does not count at it. If entries are
//! removed before they were read, the shard is copied anew, as it is at a later moment.

use std::sync::Arc;

use pinpriq_cluster::{Meta, RegistryAnswer, RegistryCall, ShardNumber};
use pinpriq_proto::change::Header;
use pinpriq_store::journal::Contents;
use pinpriq_store::ledger::copying::read_until;
use pinpriq_store::ledger::{Term, Writer};
use pinpriq_store::shards::first_number;
use pinpriq_store::{Fold, StoreError};

use super::super::config::{ClusterEngine, LogEnds};
use super::{TRIES, WholeError, about, ask, log_ends};

/// Copies a cluster: returns its record, and what each of its shards holds, in order.
///
/// The incarnation is one of the next generation, above all terms that nodes can begin in this one:
/// a server that goes on with the copy gives no receipt that the cluster has given or will give.
/// The numbers of each shard are at least its first one, as far as it has come or not.
///
/// Seizes nothing and changes nothing. Refuses a cluster that is being imported, or whose engine
/// was rolled back without that being accepted. Holds everything in memory, including payloads.
/// Blocks; costs one pass over all logs.
pub fn export(engine: &dyn ClusterEngine) -> Result<(Meta, Vec<Contents>), WholeError> {
    let meta = find(engine)?;
    let mut contents = Vec::new();
    let ends = log_ends(engine, meta.shards)?;
    let mut highest = Term(0);
    for (shard, ends) in (0..meta.shards).zip(ends) {
        let copied = copy(engine, (shard, meta.shards), ends)?;
        highest = highest.max(Term(copied.header.incarnation));
        contents.push(copied);
    }
    let now = find(engine)?;
    if (now.id, now.generation) != (meta.id, meta.generation) {
        let why = "it became another one meanwhile: run this again".to_owned();
        return Err(WholeError::NotWhole { why });
    }
    let generation = highest.generation().max(u64::from(meta.generation));
    let incarnation = Term::first_of(u32::try_from(generation + 1).unwrap_or(u32::MAX)).0;
    for (shard, Contents { header, .. }) in contents.iter_mut().enumerate() {
        let last_number = header.last_number.max(first_number(shard));
        *header = Header { incarnation, last_number, ..*header };
    }
    Ok((meta, contents))
}

/// Returns the record of a cluster that can be copied.
fn find(engine: &dyn ClusterEngine) -> Result<Meta, WholeError> {
    let RegistryAnswer::Meta(meta) = ask(engine, RegistryCall::Find)? else {
        return Err(WholeError::Unfounded);
    };
    let why = if meta.importing {
        "a data directory is being imported into it, or that was interrupted: wait until `pinpriq \
         cluster import` is done, or run that again"
    } else if meta.rolled_back.is_some() {
        "its engine was rolled back: bring the newer one back, or run `pinpriq cluster \
         accept-rollback`"
    } else {
        return Ok(meta);
    };
    Err(WholeError::NotWhole { why: why.to_owned() })
}

/// Copies one of this many shards, whose log had come to this.
fn copy(
    engine: &dyn ClusterEngine,
    (shard, shards): (ShardNumber, ShardNumber),
    ends: Option<LogEnds>,
) -> Result<Contents, WholeError> {
    let mut contents = Contents::default();
    // The log was never seized.
    let Some(mut ends) = ends else { return Ok(contents) };
    for _ in 0..TRIES {
        let mut ledger = engine.ledger(shard, Writer::default(), Arc::new(|| ()));
        let fold = &mut contents.fold;
        // Places are kept: they tell which copies of a publication have records of their own.
        let mut freed = Vec::new();
        let mut sink = |change, place| fold.apply(&change, place, &mut freed);
        let LogEnds { term, first, head } = ends;
        let read = read_until(&mut *ledger, (first, head), &mut sink).map_err(about(shard))?;
        if let Some(header) = read {
            fold.forget_unshared(&mut freed);
            contents.header = Header { incarnation: header.incarnation.max(term.0), ..header };
            return Ok(contents);
        }
        let looked = log_ends(engine, shards)?.get(usize::from(shard)).copied().flatten();
        match looked {
            Some(looked) if looked.first > first => ends = looked,
            _ => {
                let what = "entries that should be kept are gone".to_owned();
                return Err(about(shard)(StoreError::BadEntry { seq: first.0, what }));
            }
        }
        contents.fold = Fold::new();
    }
    let why = format!(
        "its nodes remove entries of shard {shard} faster than they can be read: run this again \
         when less is going on, or stop the nodes"
    );
    Err(WholeError::NotWhole { why })
}
