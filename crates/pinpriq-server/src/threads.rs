//! The threads of all shards but the first, which has the thread of whoever runs the server.

use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use pinpriq_engine::time::Timestamp;
use pinpriq_store::StoreError;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

use crate::clock::SystemClock;
use crate::config::Config;
use crate::error::ServeError;
use crate::opening::Opening;
use crate::serving::{Common, Context};

/// A shard on a thread of its own.
pub(crate) struct Thread {
    opened: Option<oneshot::Receiver<Result<Timestamp, ServeError>>>,
    go: Option<oneshot::Sender<Timestamp>>,
    ended: oneshot::Receiver<Result<(), StoreError>>,
}

impl Thread {
    /// Starts the thread, which loads its tasks and then waits for [`Thread::go`].
    pub(crate) fn start(
        config: Config,
        opening: Opening,
        common: Arc<Common>,
    ) -> Result<Self, ServeError> {
        let (tell_opened, opened) = oneshot::channel();
        let (go, told_to_go) = oneshot::channel();
        let (tell_ended, ended) = oneshot::channel();
        let name = format!("shard-{:02}", opening.shard);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| ServeError::Runtime { source })?;
        let run = move || {
            let work = run(&config, &opening, common, tell_opened, told_to_go);
            let ended = LocalSet::new().block_on(&runtime, work);
            // Nobody waits for a server that was given up while it started.
            let _ = tell_ended.send(ended);
        };
        let builder = thread::Builder::new().name(name);
        builder.spawn(run).map_err(|source| ServeError::Runtime { source })?;
        Ok(Self { opened: Some(opened), go: Some(go), ended })
    }

    /// Waits until the tasks are loaded, and answers the latest moment that they know.
    pub(crate) async fn opened(&mut self) -> Result<Timestamp, ServeError> {
        match self.opened.take() {
            Some(opened) => opened.await.unwrap_or_else(|_| Err(vanished())),
            None => Err(vanished()),
        }
    }

    /// Has it serve, from this moment on.
    pub(crate) fn go(&mut self, start: Timestamp) {
        if let Some(go) = self.go.take() {
            // One that has ended says so when it is waited for.
            let _ = go.send(start);
        }
    }

    /// Waits until it has stopped.
    pub(crate) async fn ended(self) -> Result<(), ServeError> {
        match self.ended.await {
            Ok(ended) => ended.map_err(|source| ServeError::Failed { source }),
            Err(_) => Err(vanished()),
        }
    }
}

async fn run(
    config: &Config,
    opening: &Opening,
    common: Arc<Common>,
    tell_opened: oneshot::Sender<Result<Timestamp, ServeError>>,
    told_to_go: oneshot::Receiver<Timestamp>,
) -> Result<(), StoreError> {
    let store_bell = Arc::new(Notify::new());
    let durable = match opening.open(config, store_bell.clone()) {
        Ok(durable) => durable,
        Err(error) => {
            // Whoever starts the server tells people.
            let _ = tell_opened.send(Err(error));
            return Ok(());
        }
    };
    let _ = tell_opened.send(Ok(durable.now()));
    let Ok(start) = told_to_go.await else { return Ok(()) };
    let clock = Rc::new(SystemClock::starting_at(start.max(SystemClock::wall())));
    let with = (config, common.clone());
    let context = Context::new(opening.shard, with, (durable, store_bell), clock);
    context.serve(common.stop.asked_for()).await
}

fn vanished() -> ServeError {
    let source = std::io::Error::other("the thread of a shard has ended");
    ServeError::Runtime { source }
}
