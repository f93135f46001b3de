//! What a node remembers of the logs of its shards, so that it notices when the engine has lost
//! what it had said to keep.
//!
//! The last watermark of each log is in memory and, if the node has a data directory, in a file of
//! it. One thread writes the file for all shards: the watermarks that have come meanwhile are
//! written together and synced once. Each log has two places in the file, which take turns, so that
//! a write that was cut off leaves the watermark before. Nothing had rested on the other one yet.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use pinpriq_cluster::ShardNumber;
use pinpriq_store::disk::{DiskFile, OpenMode, read_full_at, write_all_at};
use pinpriq_store::ledger::watermark::{BadWatermark, WATERMARK_BYTES};
use pinpriq_store::ledger::{Keeper, Watermark};
use pinpriq_store::{Disk, StoreError};

use super::Wake;

/// The file with the watermarks.
const FILE_NAME: &str = "watermarks";

/// How far apart the places in the file are.
const PLACE_BYTES: usize = 64;

/// The number of places of each log.
const PLACES: usize = 2;

/// The watermarks of a node. The thread that writes them ends with it.
pub struct Watermarks {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Something is to be written, or was.
    changed: Condvar,
    /// Without a file everything counts as written.
    file: Option<OnDisk>,
    /// Whether a thread writes. Otherwise the waiter does.
    has_writer: bool,
}

/// The file, and where it is.
struct OnDisk {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
}

#[derive(Default)]
struct State {
    logs: Vec<Log>,
    /// Why writing has ended.
    failure: Option<StoreError>,
    is_over: bool,
}

/// What is known of one log.
#[derive(Clone, Default)]
struct Log {
    last: Option<Watermark>,
    /// What is durable.
    kept: Option<Watermark>,
    /// Where the next one is written.
    place: usize,
    wake: Option<Wake>,
}

impl Watermarks {
    /// The watermarks of a node without a data directory, in memory.
    pub(crate) fn in_memory(shards: u16) -> Self {
        let logs = vec![Log::default(); usize::from(shards)];
        Self { shared: Shared::new(logs, (None, false)), writer: None }
    }

    /// Reads the watermarks in a data directory, and keeps them there. Makes the file if it is not
    /// there. Without a thread that writes, what is due is written by [`Watermarks::write_due`],
    /// and by the waiter.
    ///
    /// Refuses a file that is damaged, or that a newer server has written.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        shards: u16,
        has_writer: bool,
    ) -> Result<Self, StoreError> {
        let (file, logs) = open(&*disk, shards)?;
        let shared = Shared::new(logs, (Some(OnDisk { disk, file }), has_writer));
        let start = || {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("watermarks".to_owned());
            thread.spawn(move || shared.write_all())
        };
        let writer = has_writer.then(start).transpose();
        let writer = writer.map_err(|error| StoreError::from_io("start", "a thread", 0, error))?;
        Ok(Self { shared, writer })
    }

    /// Writes what is due. Only for watermarks that no thread writes.
    pub fn write_due(&self) {
        self.shared.write_once();
    }

    /// The last watermark of a log.
    #[must_use]
    pub fn last(&self, shard: ShardNumber) -> Option<Watermark> {
        self.shared.lock().logs.get(usize::from(shard)).and_then(|log| log.last)
    }

    /// The last watermark of a log that is durable.
    #[must_use]
    pub fn kept(&self, shard: ShardNumber) -> Option<Watermark> {
        self.shared.lock().logs.get(usize::from(shard)).and_then(|log| log.kept)
    }

    /// Returns what keeps the watermarks of a log. `wake` is called when one was written. An
    /// earlier one of the same log is no longer woken.
    pub fn keeper(&self, shard: ShardNumber, wake: Wake) -> Box<dyn Keeper> {
        let shard = usize::from(shard);
        if let Some(log) = self.shared.lock().logs.get_mut(shard) {
            log.wake = Some(wake);
        }
        Box::new(KeeperOf { shared: Arc::clone(&self.shared), shard })
    }
}

impl Drop for Watermarks {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            // A thread that has panicked has told so.
            let _ = writer.join();
        }
    }
}

/// What keeps the watermarks of one log.
struct KeeperOf {
    shared: Arc<Shared>,
    shard: usize,
}

impl Keeper for KeeperOf {
    fn keep(&mut self, watermark: Watermark) {
        let mut state = self.shared.lock();
        let Some(log) = state.logs.get_mut(self.shard) else { return };
        log.last = Some(watermark);
        if self.shared.file.is_none() {
            log.kept = Some(watermark);
            return;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    fn kept(&mut self) -> Result<Option<Watermark>, StoreError> {
        let state = self.shared.lock();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(state.logs.get(self.shard).and_then(|log| log.kept)),
        }
    }

    fn wait(&mut self) {
        if !self.shared.has_writer {
            return self.shared.write_once();
        }
        let mut state = self.shared.lock();
        while state.failure.is_none() && state.logs.get(self.shard).is_some_and(Log::is_due) {
            state = self.shared.wait(state);
        }
    }
}

impl Log {
    fn is_due(&self) -> bool {
        self.last != self.kept
    }
}

impl Shared {
    fn new(logs: Vec<Log>, (file, has_writer): (Option<OnDisk>, bool)) -> Arc<Self> {
        let state = Mutex::new(State { logs, ..State::default() });
        Arc::new(Self { state, changed: Condvar::new(), file, has_writer })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is due, until the node ends or the disk fails.
    fn write_all(&self) {
        loop {
            let mut state = self.lock();
            while !state.logs.iter().any(Log::is_due) {
                if state.is_over {
                    return;
                }
                state = self.wait(state);
            }
            drop(state);
            self.write_once();
            if self.lock().failure.is_some() {
                return;
            }
        }
    }

    /// Writes what is due now. Once that has failed, writing ends.
    fn write_once(&self) {
        let Some(OnDisk { disk, file }) = &self.file else { return };
        let state = self.lock();
        let logs = state.logs.iter().enumerate().filter(|(_, log)| log.is_due());
        let due: Vec<_> = logs.map(|(shard, log)| (shard, log.place, log.last)).collect();
        if due.is_empty() || state.failure.is_some() {
            return;
        }
        drop(state);
        // The content of a removed file is not kept.
        let written = write(&**file, &due)
            .and_then(|()| StoreError::refuse_gone(&**disk, FILE_NAME, &**file));
        let mut state = self.lock();
        let mut wakes = Vec::new();
        for (shard, place, watermark) in due {
            let log = &mut state.logs[shard];
            if written.is_ok() {
                log.kept = watermark;
                log.place = (place + 1) % PLACES;
            }
            wakes.extend(log.wake.clone());
        }
        state.failure = written.err();
        drop(state);
        self.changed.notify_all();
        for wake in wakes {
            wake();
        }
    }
}

/// Writes these watermarks, each in a place of its log, and syncs them together.
fn write(file: &dyn DiskFile, due: &[(usize, usize, Option<Watermark>)]) -> Result<(), StoreError> {
    let mut offset = 0;
    let mut run = || {
        for (shard, place, watermark) in due {
            offset = offset_of(*shard, *place);
            if let Some(watermark) = watermark {
                write_all_at(file, offset, &watermark.to_bytes())?;
            }
        }
        file.sync_data()
    };
    run().map_err(|error| StoreError::from_io("write", FILE_NAME, offset, error))
}

const fn offset_of(shard: usize, place: usize) -> u64 {
    ((shard * PLACES + place) * PLACE_BYTES) as u64
}

/// Opens the file, with room for this many logs, and reads it.
fn open(disk: &dyn Disk, shards: u16) -> Result<(Box<dyn DiskFile>, Vec<Log>), StoreError> {
    let fail = |what, error| StoreError::from_io(what, FILE_NAME, 0, error);
    let bytes = offset_of(usize::from(shards), 0);
    let file = match disk.open(FILE_NAME, OpenMode::ReadWrite) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.open(FILE_NAME, OpenMode::CreateNew).map_err(|error| fail("make", error))?
        }
        opened => opened.map_err(|error| fail("open", error))?,
    };
    let length = file.len().map_err(|error| fail("look at", error))?;
    if length < bytes {
        // So that a later sync has no new block to note.
        let missing = vec![0; usize::try_from(bytes - length).unwrap_or(0)];
        write_all_at(&*file, length, &missing).map_err(|error| fail("write", error))?;
        file.sync_data().map_err(|error| fail("sync", error))?;
    }
    // A killed process may have left a name that is not durable yet.
    disk.sync_dir().map_err(|error| fail("sync the directory of", error))?;
    let mut content = vec![0; usize::try_from(bytes).unwrap_or(0)];
    read_full_at(&*file, 0, &mut content).map_err(|error| fail("read", error))?;
    let logs = content.chunks_exact(PLACES * PLACE_BYTES).enumerate();
    let logs = logs.map(|(shard, places)| read(shard, places)).collect::<Result<_, _>>()?;
    Ok((file, logs))
}

/// Reads the places of one log. One of them may have been cut off while it was written.
fn read(shard: usize, places: &[u8]) -> Result<Log, StoreError> {
    let (mut best, mut damaged): (Option<(usize, Watermark)>, usize) = (None, 0);
    for (place, bytes) in places.chunks_exact(PLACE_BYTES).enumerate() {
        match Watermark::from_bytes(&bytes[..WATERMARK_BYTES]) {
            _ if bytes.iter().all(|byte| *byte == 0) => {}
            Ok(found) => {
                let rank = |watermark: Watermark| (watermark.term, watermark.head);
                if best.is_none_or(|(_, other)| rank(other) < rank(found)) {
                    best = Some((place, found));
                }
            }
            Err(BadWatermark::Damaged) => damaged += 1,
            Err(BadWatermark::Newer(version)) => {
                let file = FILE_NAME.to_owned();
                return Err(StoreError::NewerFormat { file, version, known: 1 });
            }
        }
    }
    if damaged == PLACES {
        let what = format!(
            "both watermarks of shard {shard} in the file {FILE_NAME} are damaged. If the engine \
             was not rolled back, remove that file: it is made anew"
        );
        return Err(StoreError::Mixed { what });
    }
    let last = best.map(|(_, watermark)| watermark);
    let place = best.map_or(0, |(place, _)| (place + 1) % PLACES);
    Ok(Log { last, kept: last, place, wake: None })
}

#[cfg(test)]
mod tests;
