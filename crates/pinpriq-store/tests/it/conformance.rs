//! Every store passes the same suite.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::{
    Disk, Figures, Journal, JournalOptions, Level, Loaded, MemoryStore, Position, Progress,
    RealDisk, Reclaims, Rewrite, Room, Runner, Store, StoreError, TaskCounts, Urgency,
};
use pinpriq_testing::faulty_disk::FaultyDisk;
use pinpriq_testing::stores::run;

use crate::driving::{GUARD, journal, options};

#[test]
fn the_memory_store() {
    run(&mut || Box::new(MemoryStore::new()), None);
}

#[test]
fn the_journal_at_both_levels_with_small_and_large_segments() {
    for level in [Level::Sync, Level::Interval] {
        for segment_bytes in [24 << 10, 256 << 10] {
            let disk = FaultyDisk::new(7);
            let options = JournalOptions { level, segment_bytes, ..options(1) };
            let mut open = || journal(&disk, options).unwrap() as Box<dyn Store>;
            let mut reopen = open;
            run(&mut open, Some(&mut reopen));
        }
    }
}

#[test]
fn the_journal_on_a_disk_that_writes_in_pieces() {
    let disk = FaultyDisk::new(7);
    disk.shorten_writes(50);
    let mut open = || journal(&disk, options(1)).unwrap() as Box<dyn Store>;
    let mut reopen = open;
    run(&mut open, Some(&mut reopen));
    assert!(disk.shortened() > 100);
}

#[test]
fn the_journal_on_the_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let open = || {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&path).unwrap());
        Box::new(Journal::open(disk, options(2), Runner::Inline).unwrap()) as Box<dyn Store>
    };
    let (mut make, mut reopen) = (open, open);
    run(&mut make, Some(&mut reopen));
}

/// A journal with threads, whose `drive` waits for the disk when it has nothing else to do, so
/// that the suite can call it as often as it likes.
struct Waiting {
    journal: Journal,
    woken: Mutex<Receiver<()>>,
}

impl Store for Waiting {
    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        self.journal.load(sink)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        self.journal.begin(header)
    }

    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        self.journal.append(header, changes, urgency, placed)
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        let progress = self.journal.drive(now)?;
        if self.journal.poll_timeout().is_none() && self.journal.is_waiting() {
            self.woken.lock().unwrap().recv_timeout(GUARD).unwrap();
            return self.journal.drive(now);
        }
        Ok(progress)
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.journal.poll_timeout()
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.journal.finish(now)
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.journal.close(now)
    }

    fn figures(&self) -> Figures {
        self.journal.figures()
    }
}

impl Reclaims for Waiting {
    fn obsolete(&mut self, place: Place) {
        self.journal.obsolete(place);
    }

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        self.journal.poll_rewrite()
    }

    fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room {
        self.journal.room(tasks)
    }
}

#[test]
fn the_journal_with_threads() {
    let disk: Arc<dyn Disk> = Arc::new(FaultyDisk::new(9));
    let open = || {
        let (wake, woken) = sync_channel(1);
        let wake = move || _ = wake.try_send(());
        let runner = Runner::Thread { wake: Arc::new(wake) };
        let journal = Journal::open(Arc::clone(&disk), options(3), runner).unwrap();
        Box::new(Waiting { journal, woken: Mutex::new(woken) }) as Box<dyn Store>
    };
    let (mut make, mut reopen) = (open, open);
    run(&mut make, Some(&mut reopen));
}
