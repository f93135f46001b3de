//! Ledgers and registries on engines that are asked over a network.
//!
//! The loop of a shard starts calls and polls for answers. A client of an engine is asynchronous.
//! [`RemoteLedger`] joins the two: each call is a task of an async runtime, which belongs to the
//! caller, and its answer comes back through a channel. [`RegistryClient`] does the same for what a
//! node asks of a registry. The bytes of a registry are the same everywhere: [`records`].

pub mod records;
mod registry;

pub use registry::{RegistryClient, RemoteRegistry, Seen, whole_ttl};

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use pinpriq_store::ledger::{Answer, Call, Ledger, Seq, Tenure};
use tokio::runtime::Handle;

/// The log of one shard on an engine, as its client sees it.
pub trait Remote: Send + Sync + 'static {
    /// Carries out a call. It must end after a bounded time, also if the engine never answers: then
    /// the answer says that nothing is known. Calls of different kinds may overlap. It must not be
    /// cancelled: an append whose future is dropped may still reach the log.
    fn answer(&self, call: Call) -> impl Future<Output = Answer> + Send;

    /// See [`Ledger::target_bytes`].
    fn target_bytes(&self) -> usize;
}

/// What a log has come to, as others than its owner read it. It may have changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogState {
    /// Who has seized it last.
    pub tenure: Tenure,
    /// The last entry, or 0 if there never was one.
    pub head: Seq,
    /// The first entry that is kept, or one above the head.
    pub first: Seq,
}

/// Of each kind, one call is under way.
const KINDS_OF_CALLS: usize = 6;

/// What wakes the loop of a shard.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A ledger whose calls are carried out by an async runtime.
///
/// Calls that are under way go on when it is dropped.
pub struct RemoteLedger<R> {
    remote: Arc<R>,
    runtime: Handle,
    wake: Wake,
    sender: SyncSender<Answer>,
    answers: Receiver<Answer>,
    /// An answer that was waited for.
    waited: Option<Answer>,
    /// The number of calls whose answers have not come.
    under_way: usize,
}

impl<R: Remote> RemoteLedger<R> {
    /// Asks `remote` on this runtime, and calls `wake` with each answer.
    pub fn new(remote: R, runtime: Handle, wake: Wake) -> Self {
        let (sender, answers) = sync_channel(KINDS_OF_CALLS);
        let remote = Arc::new(remote);
        Self { remote, runtime, wake, sender, answers, waited: None, under_way: 0 }
    }
}

impl<R: Remote> Ledger for RemoteLedger<R> {
    fn start(&mut self, call: Call) {
        self.under_way += 1;
        let (remote, sender) = (Arc::clone(&self.remote), self.sender.clone());
        let wake = Arc::clone(&self.wake);
        self.runtime.spawn(async move {
            let answer = remote.answer(call).await;
            // There is room, unless the ledger was dropped.
            _ = sender.try_send(answer);
            wake();
        });
    }

    fn poll(&mut self) -> Option<Answer> {
        let answer = self.waited.take().or_else(|| self.answers.try_recv().ok());
        self.under_way -= usize::from(answer.is_some());
        answer
    }

    /// Must not be called on a thread of the runtime.
    fn wait(&mut self) {
        if self.waited.is_none() && self.under_way > 0 {
            self.waited = self.answers.recv().ok();
        }
    }

    fn target_bytes(&self) -> usize {
        self.remote.target_bytes()
    }
}
