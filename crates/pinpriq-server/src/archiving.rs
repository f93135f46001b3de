//! Archives what happens while the server serves: a thread that sends what is new to a place, again
//! and again, and keeps on disk what is not there yet.
//!
//! `running` decides what is done when, `keeping` which files stay, `backlog` how many, `reading`
//! reads them, and `upkeep` removes what is old and looks for rot. How an archive is written is the
//! business of `pinpriq-archive`. No request waits for any of it.

mod backlog;
pub(crate) mod keeping;
mod reading;
mod running;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use pinpriq_archive::{Place, PlaceError};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::Stopwatch;
use pinpriq_store::journal::{Keep, Purpose, Tap};
use tokio::sync::oneshot;
use tokio::time::timeout;

use self::backlog::{Backlog, watch};
use self::running::{Running, Server};
use crate::clock::stopwatch;
use crate::config::ArchiveTo;
use crate::cuts::{Copied, cut_of_all};
use crate::error::ServeError;
use crate::facts::archive::Archived;
use crate::runtime::step_aside;
use crate::stop::Stop;

/// Of the file system with the data directory, one part in this many may hold what stays there for
/// the archive alone.
const BACKLOG_ONE_IN: u64 = 10;

/// How long a server that stops waits for the last mark.
const FINISH_WITHIN: Duration = Duration::from_secs(15);

/// The thread that archives. It ends when this is dropped.
pub(crate) struct Archiving {
    orders: SyncSender<Order>,
    archived: Arc<Archived>,
}

/// What the thread is to do next.
enum Order {
    /// Archive these shards.
    Begin(Box<Shards>),
    /// Archive what is left of them, now that their journals have ended, and say so.
    Finish(oneshot::Sender<()>),
}

/// The shards of a server that is about to serve.
pub(crate) struct Shards {
    /// Their journals.
    pub(crate) copied: Vec<Copied>,
    /// A keep of everything for each, from before its journal has begun.
    pub(crate) keeps: Vec<Keep>,
    /// The moment at which time starts.
    pub(crate) start: Timestamp,
    pub(crate) stop: Stop,
}

impl Archiving {
    /// Starts the thread, which opens the place and waits. Refuses what can be no place; one that
    /// cannot be reached may be there later. Blocks for a moment.
    pub(crate) fn open(to: &ArchiveTo) -> Result<Self, ServeError> {
        let (orders, received) = sync_channel(1);
        let (tell, opened) = sync_channel(1);
        let archived = Arc::<Archived>::default();
        let (to, noted) = (to.clone(), Arc::clone(&archived));
        // Whatever the place needs is made, used and dropped on this thread and those it starts.
        let run = move || {
            let place: Arc<dyn Place> = match pinpriq_archive::open(&to.place) {
                Ok(place) => Arc::from(place),
                Err(error) => return drop(tell.send(Err(error))),
            };
            // If nobody listens, nobody sends an order either.
            let _ = tell.send(Ok(()));
            archive(&to, place, noted, &received);
        };
        let builder = thread::Builder::new().name("archive".to_owned());
        builder.spawn(run).map_err(|source| ServeError::Runtime { source })?;
        let answer: Result<Result<(), PlaceError>, _> = opened.recv();
        match answer {
            Ok(Ok(())) => Ok(Self { orders, archived }),
            Ok(Err(error)) => Err(ServeError::Archive { why: error.to_string() }),
            Err(_) => {
                let source = std::io::Error::other("the thread that archives has ended");
                Err(ServeError::Runtime { source })
            }
        }
    }

    /// Where it is noted how the archive fares.
    pub(crate) fn archived(&self) -> Arc<Archived> {
        Arc::clone(&self.archived)
    }

    /// Archives these shards from now on.
    pub(crate) fn begin(&self, shards: Shards) {
        // If the thread is gone, the end reports it.
        let _ = self.orders.send(Order::Begin(Box::new(shards)));
    }

    /// Archives what is left, for a bounded time, once the journals of all shards have ended.
    pub(crate) async fn finish(self) {
        let (tell, told) = oneshot::channel();
        if self.orders.send(Order::Finish(tell)).is_err() {
            return;
        }
        if timeout(FINISH_WITHIN, told).await.is_err() {
            let within = FINISH_WITHIN.as_secs();
            tracing::warn!(
                "the archive does not have the last changes yet after {within} s, and the next \
                 start archives them"
            );
        }
    }
}

/// Makes all journals keep everything that was not archived yet, also by earlier starts. Call this
/// before they begin.
pub(crate) fn keep_all(copied: &[Copied]) -> Vec<Keep> {
    copied.iter().map(|it| it.tap.keep_all()).collect()
}

/// Archives until this is over.
fn archive(
    to: &ArchiveTo,
    place: Arc<dyn Place>,
    archived: Arc<Archived>,
    orders: &Receiver<Order>,
) {
    let Ok(Order::Begin(shards)) = orders.recv() else { return };
    step_aside();
    let Shards { copied, keeps, start, stop } = *shards;
    archived.begin(start);
    let every_ms = u64::try_from(to.every.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(place = place.name(), every_ms, "archiving");
    let directories: Arc<[PathBuf]> = copied.iter().map(|it| it.directory.clone()).collect();
    let taps: Vec<Arc<Tap>> = copied.into_iter().map(|it| it.tap).collect();
    let backlog_max = to.backlog_bytes.unwrap_or_else(|| {
        let first = directories.first().map_or_else(|| Path::new("."), PathBuf::as_path);
        disk_bytes(first) / BACKLOG_ONE_IN
    });
    let passed = stopwatch();
    let backlog = Arc::new(Backlog::new(keeps, backlog_max, (place.name(), passed())));
    // The other thread ends when this is dropped.
    let _ends = begin_to_watch(&backlog, &passed, &taps);
    let cut_taps = taps.clone();
    let server = Server {
        backlog,
        taps,
        directories,
        cut: Box::new(move |purpose| cut_of_all(&cut_taps, purpose)),
        passed,
        stop,
        archived,
    };
    let mut running = Running::new(to, place, server);
    loop {
        let rest = running.turn();
        match orders.recv_timeout(rest) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Finish(done)) => {
                running.finish();
                // The server may have waited long enough.
                let _ = done.send(());
                return;
            }
            Ok(Order::Begin(_)) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Measures on another thread what stays on disk, until what this returns is dropped.
fn begin_to_watch(backlog: &Arc<Backlog>, passed: &Stopwatch, taps: &[Arc<Tap>]) -> SyncSender<()> {
    let (sender, ends) = sync_channel(0);
    let (backlog, passed, taps) = (Arc::clone(backlog), Arc::clone(passed), taps.to_vec());
    let run = move || watch(&backlog, &passed, || cut_of_all(&taps, Purpose::Archiving), &ends);
    if let Err(error) = thread::Builder::new().name("archive-backlog".to_owned()).spawn(run) {
        tracing::warn!(
            %error,
            "the system has no thread to measure what waits for the archive: it is only measured \
             while the place answers"
        );
    }
    sender
}

/// The size of the file system that this is on, if the system tells.
fn disk_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |disk| disk.f_blocks.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests;
