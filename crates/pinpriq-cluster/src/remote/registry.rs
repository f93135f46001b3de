//! Registries that are asked over a network, one call after the other.

use std::future::Future;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::{Meta, Registry, RegistryAnswer, RegistryCall};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};

use crate::remote::Wake;

/// The most calls that may be under way, with those whose answers were not polled.
const CALLS_MAX: usize = 4_096;

/// Returns the time to live of a session in whole seconds, rounded up, at least 2.
#[must_use]
pub fn whole_ttl(ttl: Duration) -> Duration {
    let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    Duration::from_secs(seconds.max(2))
}

/// A registry as its client sees it.
pub trait RemoteRegistry: Send + Sync + 'static {
    /// Carries out a call. It must end after a bounded time, also if the engine never answers. One
    /// call is under way at a time.
    fn answer(&self, call: RegistryCall) -> impl Future<Output = RegistryAnswer> + Send;
}

/// A registry whose calls are carried out by an async runtime, one after the other.
///
/// The calls that were started are still carried out when it is dropped.
pub struct RegistryClient {
    calls: Sender<RegistryCall>,
    answers: Receiver<RegistryAnswer>,
}

impl RegistryClient {
    /// Asks `remote` on this runtime, and calls `wake` with each answer.
    pub fn new<R: RemoteRegistry>(remote: R, runtime: &Handle, wake: Wake) -> Self {
        let (calls, mut started) = channel(CALLS_MAX);
        let (sender, answers): (SyncSender<RegistryAnswer>, _) = sync_channel(CALLS_MAX);
        runtime.spawn(async move {
            while let Some(call) = started.recv().await {
                let answer = remote.answer(call).await;
                // There is room unless the poller has gone.
                _ = sender.try_send(answer);
                wake();
            }
        });
        Self { calls, answers }
    }
}

impl Registry for RegistryClient {
    fn start(&mut self, call: RegistryCall) {
        // The runtime may have ended. Then no answer comes.
        _ = self.calls.try_send(call);
    }

    fn poll(&mut self) -> Option<RegistryAnswer> {
        self.answers.try_recv().ok()
    }
}

/// What a node must have seen to be true of the cluster for a change of the record of a shard.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'m> {
    /// Anything: the node serves the shard already.
    Anything,
    /// This, or that there is no cluster: the node claims the shard.
    Cluster(Option<&'m Meta>),
}

impl Seen<'_> {
    /// Whether the change may be made while this is true.
    #[must_use]
    pub fn allows(self, there: Option<&Meta>) -> bool {
        match self {
            Self::Anything => true,
            Self::Cluster(seen) => seen == there,
        }
    }

    /// Whether what is true of the cluster must be compared.
    #[must_use]
    pub const fn is_compared(self) -> bool {
        matches!(self, Self::Cluster(_))
    }
}
