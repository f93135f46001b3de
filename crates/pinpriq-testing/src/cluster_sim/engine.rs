//! The engine and the registry as one process reaches them, for what it remembers of its cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ledgers::FakeEngine;
use crate::registries::FakeRegistry;
use pinpriq_cluster::{Registry, ShardNumber};
use pinpriq_server::cluster::{ClusterEngine, LogEnds, Wake};
use pinpriq_store::ledger::{Ledger, Tenure, Unreachable, Writer};

/// See the start of this file.
pub(crate) struct Reach {
    logs: FakeEngine,
    registry: FakeRegistry,
    writer: Writer,
    is_engine_cut: AtomicBool,
    is_registry_cut: AtomicBool,
    /// The handles of the registry that were opened.
    handles: Mutex<Vec<u64>>,
}

impl Reach {
    pub(crate) fn new(logs: FakeEngine, registry: FakeRegistry, writer: Writer) -> Self {
        let (is_engine_cut, is_registry_cut) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { logs, registry, writer, is_engine_cut, is_registry_cut, handles: Mutex::default() }
    }

    /// Whether the process does not reach everything.
    pub(crate) fn is_cut(&self) -> bool {
        let cuts = [&self.is_engine_cut, &self.is_registry_cut];
        cuts.iter().any(|cut| cut.load(Ordering::Relaxed))
    }

    pub(crate) fn cut_engine(&self, is_cut: bool) {
        self.is_engine_cut.store(is_cut, Ordering::Relaxed);
    }

    pub(crate) fn cut_registry(&self, is_cut: bool) {
        self.is_registry_cut.store(is_cut, Ordering::Relaxed);
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.iter().for_each(|handle| self.registry.cut(*handle, is_cut));
    }
}

impl ClusterEngine for Reach {
    /// Only to read: no other store writes with this writer.
    fn ledger(&self, shard: ShardNumber, _: Writer, _: Wake) -> Box<dyn Ledger> {
        Box::new(self.logs.ledger(shard, self.writer))
    }

    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable> {
        if self.is_engine_cut.load(Ordering::Relaxed) {
            return Err(Unreachable { why: "the writer is cut off".to_owned() });
        }
        let ends = |shard: u16| {
            let (head, first) = (self.logs.head(shard), self.logs.first(shard));
            let tenure = self.logs.tenure(shard);
            tenure.map(|Tenure { term, .. }| LogEnds { term, first, head })
        };
        Ok((0..shards).map(ends).collect())
    }

    fn registry(&self, _: Duration, _: Wake) -> Box<dyn Registry> {
        let handle = self.registry.registry();
        let number = handle.number();
        if self.is_registry_cut.load(Ordering::Relaxed) {
            self.registry.cut(number, true);
        }
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Box::new(handle)
    }
}
