//! What a node remembers of its cluster, and what it does when the engine does not bear it out.

use std::sync::Arc;

use pinpriq_cluster::{Meta, ShardNumber};
use pinpriq_store::StoreError;

use super::config::ClusterConfig;
use super::data::{KnownCluster, NodeData};
use super::founding::{compare, known};
use super::rollback::{Reported, Reporter, find_loss, generation_lost};
use super::watermarks::Watermarks;
use crate::error::ServeError;

/// See the start of this file.
pub(crate) struct Memory {
    data: Option<NodeData>,
    known: KnownCluster,
    watermarks: Arc<Watermarks>,
    reporter: Reporter,
    /// Whether the registry has shown the cluster to the node that runs.
    was_shown: bool,
    /// Whether the log says that nothing is served.
    is_halted: bool,
}

impl Memory {
    /// Compares what the node remembers with the engine, and remembers what is true of the cluster
    /// from now on. Blocks while it compares logs.
    pub(crate) async fn open(
        cluster: &ClusterConfig,
        mut data: Option<NodeData>,
        meta: &Meta,
    ) -> Result<Self, ServeError> {
        let reporter = Reporter {
            engine: cluster.engine.clone(),
            session_ttl: cluster.session_ttl,
            node: cluster.node.clone(),
        };
        let (own, there) = (data.as_ref().and_then(NodeData::cluster), meta.generation);
        if let Some(own) = own.filter(|own| own.generation > there) {
            let loss = generation_lost(own.generation, there);
            reporter.report(own, (None, &loss)).await?;
            return Err(ServeError::RolledBack { shard: None, source: loss });
        }
        let known = known(meta);
        let watermarks = match &mut data {
            None => Watermarks::in_memory(meta.shards),
            Some(data) => {
                data.belong(known)?;
                data.watermarks(meta.shards)?
            }
        };
        let loss = find_loss(&*cluster.engine, &watermarks, known);
        let loss = loss.map_err(|error| ServeError::Cluster { why: error.to_string() })?;
        let watermarks = Arc::new(watermarks);
        let mut memory =
            Self { data, known, watermarks, reporter, was_shown: false, is_halted: false };
        if let Some((shard, loss)) = loss {
            memory.face(shard, &loss).await?;
        }
        Ok(memory)
    }

    pub(crate) const fn data(&self) -> Option<&NodeData> {
        self.data.as_ref()
    }

    pub(crate) fn watermarks(&self) -> Arc<Watermarks> {
        self.watermarks.clone()
    }

    /// How often a roll-back of the engine was accepted.
    pub(crate) const fn generation(&self) -> u32 {
        self.known.generation
    }

    /// Heeds why a host has failed. Fails if the node must end: the engine has lost something, or
    /// the disk of the node does not work.
    pub(crate) async fn face(
        &mut self,
        shard: ShardNumber,
        failure: &StoreError,
    ) -> Result<(), ServeError> {
        match failure {
            StoreError::RolledBack { .. } => {
                match self.reporter.report(self.known, (Some(shard), failure)).await? {
                    Reported::Accepted(meta) => self.remember(&meta),
                    Reported::Noted => {
                        let source = failure.clone();
                        Err(ServeError::RolledBack { shard: Some(shard), source })
                    }
                }
            }
            StoreError::Io { .. } | StoreError::Full { .. } => {
                let directory = self.data.as_ref().map(|data| data.directory().to_owned());
                let (data, source) = (directory.unwrap_or_default(), failure.clone());
                Err(ServeError::Store { data, source })
            }
            _ => Ok(()),
        }
    }

    /// Heeds what the registry shows of the cluster. Returns why nothing may be served, if that is
    /// so. Fails if the node must end.
    pub(crate) async fn heed(&mut self, meta: Option<&Meta>) -> Result<Option<String>, ServeError> {
        let Some(meta) = meta else {
            if self.was_shown && self.reporter.is_gone().await {
                compare(self.known.id, None)?;
            }
            return Ok(None);
        };
        self.was_shown = true;
        compare(self.known.id, Some(meta))?;
        if meta.generation < self.known.generation {
            let loss = generation_lost(self.known.generation, meta.generation);
            if self.reporter.report(self.known, (None, &loss)).await? == Reported::Noted {
                return Err(ServeError::RolledBack { shard: None, source: loss });
            }
            return Ok(None);
        }
        self.remember(meta)?;
        let Some(loss) = &meta.rolled_back else {
            if std::mem::take(&mut self.is_halted) {
                tracing::info!("the roll-back of the engine was accepted");
            }
            return Ok(None);
        };
        let shard = loss.shard.map_or_else(String::new, |shard| format!(" in shard {shard}"));
        let why = format!(
            "the engine was rolled back: the node {} has seen {}{shard}, and finds {}. Nothing is \
             served until `pinpriq cluster accept-rollback`",
            loss.node, loss.expected, loss.found
        );
        if !std::mem::replace(&mut self.is_halted, true) {
            tracing::error!("{why}");
        }
        Ok(Some(why))
    }

    fn remember(&mut self, meta: &Meta) -> Result<(), ServeError> {
        self.known = known(meta);
        self.data.as_mut().map_or(Ok(()), |data| data.belong(known(meta)))
    }
}
