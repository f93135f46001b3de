//! The threads of all shards but the first, which runs on the thread that runs the server.

use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::StoreError;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::opening::{Opening, Start};
use super::place::{Common, Place};
use super::serving::Context;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::error::ServeError;
use crate::runtime::runtime;

/// A shard on a thread of its own.
pub(crate) struct Thread {
    loaded: Answer<Start>,
    begin: Option<oneshot::Sender<Start>>,
    begun: Answer<()>,
    go: Option<oneshot::Sender<SystemClock>>,
    running: Running,
}

/// A thread with a runtime, which tells how it has ended.
pub(crate) struct Running(oneshot::Receiver<Result<(), StoreError>>);

impl Running {
    /// Starts a thread of this name.
    pub(crate) fn start<F: Future<Output = Result<(), StoreError>>>(
        name: String,
        run: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Self, ServeError> {
        let runtime = runtime().map_err(|source| ServeError::Runtime { source })?;
        let (tell_ended, ended) = oneshot::channel();
        let run = move || {
            let ended = LocalSet::new().block_on(&runtime, run());
            // Nothing waits if the server was given up.
            let _ = tell_ended.send(ended);
        };
        let builder = thread::Builder::new().name(name);
        builder.spawn(run).map_err(|source| ServeError::Runtime { source })?;
        Ok(Self(ended))
    }

    /// Waits until the thread has stopped.
    pub(crate) async fn ended(self) -> Result<(), ServeError> {
        match self.0.await {
            Ok(ended) => ended.map_err(|source| ServeError::Failed { source }),
            Err(_) => Err(vanished()),
        }
    }
}

/// The one message that the thread sends, or why it cannot.
type Answer<T> = Option<oneshot::Receiver<Result<T, ServeError>>>;

/// The thread's ends of the channels.
struct Ends {
    loaded: oneshot::Sender<Result<Start, ServeError>>,
    begin: oneshot::Receiver<Start>,
    begun: oneshot::Sender<Result<(), ServeError>>,
    go: oneshot::Receiver<SystemClock>,
}

impl Thread {
    /// Starts the thread, which loads its tasks and then waits for [`Thread::begin`].
    pub(crate) fn start(
        config: Config,
        opening: Opening,
        common: Arc<Common>,
    ) -> Result<Self, ServeError> {
        let (tell_loaded, loaded) = oneshot::channel();
        let (may_begin, told_to_begin) = oneshot::channel();
        let (tell_begun, has_begun) = oneshot::channel();
        let (go, told_to_go) = oneshot::channel();
        let ends =
            Ends { loaded: tell_loaded, begin: told_to_begin, begun: tell_begun, go: told_to_go };
        let name = format!("shard-{:02}", opening.shard);
        let running = Running::start(name, || run(config, opening, common, ends))?;
        let begin = Some(may_begin);
        Ok(Self { loaded: Some(loaded), begin, begun: Some(has_begun), go: Some(go), running })
    }

    /// Waits until the tasks are loaded. Returns how the shard may begin, not before this moment.
    pub(crate) async fn loaded(&mut self, now: Timestamp) -> Result<Start, ServeError> {
        let start = answer(self.loaded.take()).await?;
        Ok(Start { now: start.now.max(now), ..start })
    }

    /// Makes the shard begin.
    pub(crate) fn begin(&mut self, start: Start) {
        if let Some(begin) = self.begin.take() {
            // If the thread has ended, waiting for it reports that.
            let _ = begin.send(start);
        }
    }

    /// Waits until the shard has begun.
    pub(crate) async fn begun(&mut self) -> Result<(), ServeError> {
        answer(self.begun.take()).await
    }

    /// Makes the shard serve, by this clock.
    pub(crate) fn go(&mut self, clock: SystemClock) {
        if let Some(go) = self.go.take() {
            // If the thread has ended, waiting for it reports that.
            let _ = go.send(clock);
        }
    }

    /// Waits until the shard has stopped.
    pub(crate) async fn ended(self) -> Result<(), ServeError> {
        self.running.ended().await
    }
}

async fn answer<T>(answer: Answer<T>) -> Result<T, ServeError> {
    match answer {
        Some(answer) => answer.await.unwrap_or_else(|_| Err(vanished())),
        None => Err(vanished()),
    }
}

async fn run(
    config: Config,
    opening: Opening,
    common: Arc<Common>,
    ends: Ends,
) -> Result<(), StoreError> {
    // The code that starts the server reports failures. If it was given up, the other end is gone.
    let loading = match opening.load(&config) {
        Ok(loading) => loading,
        Err(error) => {
            let _ = ends.loaded.send(Err(error));
            return Ok(());
        }
    };
    let _ = ends.loaded.send(Ok(Start::after(&loading, Timestamp::ZERO)));
    let Ok(start) = ends.begin.await else { return Ok(()) };
    let mut durable = match opening.begin(loading, start, &config) {
        Ok(durable) => durable,
        Err(error) => {
            let _ = ends.begun.send(Err(error));
            return Ok(());
        }
    };
    let _ = ends.begun.send(Ok(()));
    let Ok(clock) = ends.go.await else { return Ok(()) };
    durable.all_begun()?;
    let with = (&config, common.clone());
    let place = Place::new(opening.shard, with, (durable, opening.bell), Rc::new(clock));
    Context::new(place).serve(common.stop.asked_for()).await
}

fn vanished() -> ServeError {
    let source = std::io::Error::other("a thread of the server has ended");
    ServeError::Runtime { source }
}
