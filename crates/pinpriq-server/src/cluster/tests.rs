//! An engine in memory with logs and a registry, for tests. Time passes while it is asked.

use std::sync::Arc;
use std::time::Duration;

use pinpriq_cluster::{Meta, Registry, RegistryAnswer, RegistryCall, ShardNumber};
use pinpriq_store::ledger::{Ledger, Seq, Tenure, Unreachable, Writer};
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::registries::{FakeKnobs as RegistryKnobs, FakeRegistry};

use super::config::{ClusterEngine, LogEnds, Wake};

/// How many shards a cluster on it has.
pub(super) const SHARDS: u16 = 2;

/// See the start of this file.
pub(super) struct EngineInMemory {
    pub(super) logs: FakeEngine,
    pub(super) registry: FakeRegistry,
}

impl EngineInMemory {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            logs: FakeEngine::new(1, FakeKnobs::PERFECT),
            registry: FakeRegistry::new(1, SHARDS, 5_000, RegistryKnobs::PERFECT),
        })
    }

    pub(super) fn ask(&self, call: RegistryCall) -> RegistryAnswer {
        let mut registry = self.registry(Duration::ZERO, Arc::new(|| ()));
        registry.start(call);
        registry.poll().unwrap()
    }

    pub(super) fn meta(&self) -> Meta {
        match self.ask(RegistryCall::Find) {
            RegistryAnswer::Meta(meta) => meta,
            other => panic!("{other:?}"),
        }
    }
}

impl ClusterEngine for EngineInMemory {
    fn ledger(&self, shard: ShardNumber, writer: Writer, _: Wake) -> Box<dyn Ledger> {
        Box::new(self.logs.ledger(shard, writer))
    }

    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable> {
        let ends = |shard: u16| {
            let head = self.logs.head(shard);
            let first = self.logs.log(shard).first().map_or(Seq(head.0 + 1), |(seq, _)| *seq);
            self.logs.tenure(shard).map(|Tenure { term, .. }| LogEnds { term, first, head })
        };
        Ok((0..shards).map(ends).collect())
    }

    fn registry(&self, _: Duration, wake: Wake) -> Box<dyn Registry> {
        Box::new(Hasty(self.registry.clone(), Box::new(self.registry.registry()), wake))
    }
}

/// A registry whose time passes when it is asked.
struct Hasty(FakeRegistry, Box<dyn Registry>, Wake);

impl Registry for Hasty {
    fn start(&mut self, call: RegistryCall) {
        self.1.start(call);
        while let Some(at) = self.0.next_at() {
            self.0.set_now(at);
        }
        (self.2)();
    }

    fn poll(&mut self) -> Option<RegistryAnswer> {
        self.1.poll()
    }
}
