//! What a node remembers of its cluster, and what it does when the engine does not bear it out.

use std::sync::Arc;

use pinpriq_cluster::{Meta, ShardNumber};
use pinpriq_store::StoreError;

use super::data::{KnownCluster, NodeData};
use super::founding::{compare, known};
use super::rollback::{Reported, Reporter, generation_lost};
use super::watermarks::Watermarks;
use crate::error::ServeError;

/// See the start of this file.
pub struct NodeMemory {
    data: Option<NodeData>,
    known: KnownCluster,
    watermarks: Arc<Watermarks>,
    reporter: Reporter,
    /// Whether the log says that nothing is served.
    is_halted: bool,
}

impl NodeMemory {
    /// Compares what the node remembers with the engine, and remembers what is true of the cluster
    /// from now on.
    pub async fn open(
        reporter: Reporter,
        mut data: Option<NodeData>,
        meta: &Meta,
    ) -> Result<Self, ServeError> {
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
        let loss = reporter.find_loss(&watermarks, known, 0..known.shards).await;
        let loss = loss.map_err(|error| ServeError::Cluster { why: error.to_string() })?;
        let watermarks = Arc::new(watermarks);
        let mut memory = Self { data, known, watermarks, reporter, is_halted: false };
        if let Some((shard, loss)) = loss {
            memory.face_loss(shard, &loss).await?;
        }
        Ok(memory)
    }

    pub(crate) const fn data(&self) -> Option<&NodeData> {
        self.data.as_ref()
    }

    /// Its watermarks.
    #[must_use]
    pub fn watermarks(&self) -> Arc<Watermarks> {
        self.watermarks.clone()
    }

    /// How often a roll-back of the engine was accepted.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.known.generation
    }

    /// Heeds why a host has failed. Fails if the node must end: the engine has lost something, or
    /// the disk of the node does not work.
    pub async fn face(
        &mut self,
        shard: ShardNumber,
        failure: &StoreError,
    ) -> Result<(), ServeError> {
        match failure {
            StoreError::RolledBack { .. } => self.face_loss(shard, failure).await,
            // Perhaps it was never seized: a log also refuses what follows on what it has lost. No
            // other node need remember as much of it, and none claims it before this is known.
            StoreError::Fenced { .. } => {
                let shards = shard..shard + 1;
                let found = self.reporter.find_loss(&self.watermarks, self.known, shards);
                match found.await {
                    Ok(Some((shard, loss))) => self.face_loss(shard, &loss).await,
                    Ok(None) => Ok(()),
                    Err(error) => {
                        tracing::warn!(shard, %error, "cannot compare a log");
                        Ok(())
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

    /// Heeds what a log has lost.
    async fn face_loss(&mut self, shard: ShardNumber, loss: &StoreError) -> Result<(), ServeError> {
        match self.reporter.report(self.known, (Some(shard), loss)).await? {
            Reported::Accepted(meta) => self.remember(&meta),
            Reported::Noted => {
                Err(ServeError::RolledBack { shard: Some(shard), source: loss.clone() })
            }
        }
    }

    /// Heeds what the registry shows of the cluster. Returns why nothing may be served, if that is
    /// so. Fails if the node must end. A registry that has given the node no session has shown
    /// nothing yet.
    pub async fn heed(
        &mut self,
        meta: Option<&Meta>,
        has_session: bool,
    ) -> Result<Option<String>, ServeError> {
        let Some(meta) = meta else {
            if has_session && self.reporter.is_gone().await {
                compare(self.known.id, None)?;
            }
            return Ok(None);
        };
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
