//! What a simulated node remembers of its cluster in its data directory, and what it finds out when
//! it compares that with the engine.
//!
//! That is the code of the server. Here are only its waits: whatever asks the registry goes on when
//! the node is run the next time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pinpriq_cluster::{Meta, Registry, ShardNumber};
use pinpriq_server::ServeError;
use pinpriq_server::cluster::{ClusterEngine, LogEnds, NodeData, Wake, new_meta};
use pinpriq_server::parts::{NodeMemory, Notify, Reporter, Watermarks, try_to_found};
use pinpriq_store::ledger::{Ledger, Unreachable, Writer};
use pinpriq_store::{Disk, StoreError};

/// What a node needs that remembers its cluster.
#[derive(Clone)]
pub struct Remembers {
    /// The engine. It wakes no task.
    pub engine: Arc<dyn ClusterEngine>,
    /// The data directory.
    pub data: Arc<dyn Disk>,
}

/// What has come of a thought.
pub(super) enum Thought {
    /// The node knows its cluster.
    Opened,
    /// It has handled why a host has failed.
    Faced,
    /// It has handled what the registry shows. Nothing may be served if there is a reason.
    Heeded(Option<String>),
}

type Thinking = Pin<Box<dyn Future<Output = Result<(NodeMemory, Thought), ServeError>>>>;

/// See the start of this file.
pub(super) struct Mind {
    data: u128,
    wakes: Wakes,
    /// Nothing while it thinks.
    memory: Option<NodeMemory>,
    /// The same watermarks as in its memory, also while it thinks.
    watermarks: Option<Arc<Watermarks>>,
    thinking: Option<Thinking>,
}

type Wakes = Arc<Mutex<Vec<Wake>>>;

/// An engine whose wakes are kept.
struct Kept(Arc<dyn ClusterEngine>, Wakes);

impl ClusterEngine for Kept {
    fn ledger(&self, shard: ShardNumber, writer: Writer, wake: Wake) -> Box<dyn Ledger> {
        self.0.ledger(shard, writer, wake)
    }

    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable> {
        self.0.log_ends(shards)
    }

    fn registry(&self, session_ttl: Duration, wake: Wake) -> Box<dyn Registry> {
        let mut wakes = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        // What has no owner wakes no task.
        wakes.retain(|it| Arc::strong_count(it) > 1);
        wakes.push(wake.clone());
        drop(wakes);
        self.0.registry(session_ttl, wake)
    }
}

impl Mind {
    /// Begins to find out which cluster there is. Refuses a directory that cannot be used.
    pub(super) fn begin(
        remembers: &Remembers,
        (node, drawn): (String, u128),
        shards: u16,
        session_ttl_ms: u64,
    ) -> Result<Self, ServeError> {
        let data = NodeData::on_disk(remembers.data.clone(), drawn)?;
        let id = data.id();
        let wakes = Wakes::default();
        let engine: Arc<dyn ClusterEngine> =
            Arc::new(Kept(remembers.engine.clone(), wakes.clone()));
        let session_ttl = Duration::from_millis(session_ttl_ms);
        let opening = async move {
            let bell = Arc::new(Notify::new());
            let wake = {
                let bell = bell.clone();
                Arc::new(move || bell.notify_one())
            };
            let mut registry = engine.registry(session_ttl, wake);
            let new = new_meta(shards);
            let meta = loop {
                let tried = try_to_found(&mut *registry, &new, Some(&data), &bell);
                if let Ok(meta) = tried.await? {
                    break meta;
                }
            };
            drop(registry);
            // A comparison does not block: the engine is in memory.
            let elsewhere = Arc::new(|work: Box<dyn FnOnce() + Send>| work());
            let reporter = Reporter { engine, session_ttl, node, elsewhere };
            Ok((NodeMemory::open(reporter, Some(data), &meta).await?, Thought::Opened))
        };
        let thinking: Option<Thinking> = Some(Box::pin(opening));
        Ok(Self { data: id, wakes, memory: None, watermarks: None, thinking })
    }

    /// The id of the data directory.
    pub(super) const fn data(&self) -> u128 {
        self.data
    }

    /// What it remembers, unless it thinks.
    pub(super) const fn memory(&self) -> Option<&NodeMemory> {
        self.memory.as_ref()
    }

    /// Its watermarks, once they were read.
    pub(super) fn watermarks(&self) -> Option<&Watermarks> {
        self.watermarks.as_deref()
    }

    /// Whether it does not know its cluster yet.
    pub(super) const fn opens(&self) -> bool {
        self.watermarks.is_none()
    }

    pub(super) const fn thinks(&self) -> bool {
        self.thinking.is_some()
    }

    /// Begins to handle why a host has failed. Only if it does not think.
    pub(super) fn face(&mut self, shard: ShardNumber, failure: StoreError) {
        let Some(mut memory) = self.memory.take() else { return };
        self.thinking = Some(Box::pin(async move {
            memory.face(shard, &failure).await?;
            Ok((memory, Thought::Faced))
        }));
    }

    /// Begins to handle what the registry shows. Only if it does not think.
    pub(super) fn heed(&mut self, meta: Option<Meta>, has_session: bool) {
        let Some(mut memory) = self.memory.take() else { return };
        self.thinking = Some(Box::pin(async move {
            let why = memory.heed(meta.as_ref(), has_session).await?;
            Ok((memory, Thought::Heeded(why)))
        }));
    }

    /// Goes on with what it thinks about. Returns what has come of it, once. The node has to end
    /// after an error.
    pub(super) fn poll(&mut self) -> Option<Result<Thought, ServeError>> {
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for wake in &wakes {
            wake();
        }
        let thinking = self.thinking.as_mut()?;
        let Poll::Ready(done) = thinking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            return None;
        };
        self.thinking = None;
        Some(done.map(|(memory, thought)| {
            self.watermarks = Some(memory.watermarks());
            self.memory = Some(memory);
            thought
        }))
    }
}
