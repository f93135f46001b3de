//! Measures the journal on a real directory: a commit, with and without waiting for the disk, and a
//! start.
//!
//! The directory is a temporary one, so `TMPDIR` decides which disk is measured. On a file system
//! in memory a sync costs nothing. The journal runs on the caller's thread here, so a commit takes
//! as long as its disk; a server continues to work meanwhile. The bench sets no limits on the
//! results.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has nothing to tell")]

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use tempfile::TempDir;

use pinpriq_engine::Engine;
use pinpriq_proto::command::{Command, Put, Selection, Take, TakeMode, Wait};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::{Durable, Journal, JournalOptions, Level, RealDisk, Runner, Store};

const NOW: Timestamp = Timestamp::from_ms(1_000_000);
const CLIENT: ClientId = ClientId(1);
const QUEUE: &[u8] = b"jobs";
const PAYLOAD: [u8; 100] = [b'x'; 100];

/// The number of tasks that a start reads.
const LOADED: u64 = 100_000;

fn main() {
    divan::main();
}

/// A turn of `puts` puts, and its commit. With sync this is mostly the disk.
#[divan::bench(args = [1, 16, 256], sample_count = 100, sample_size = 1)]
fn commit_with_sync(bencher: Bencher<'_, '_>, puts: u32) {
    commit(bencher, puts, Level::Sync);
}

#[divan::bench(args = [1, 16, 256], sample_count = 100, sample_size = 10)]
fn commit_without_sync(bencher: Bencher<'_, '_>, puts: u32) {
    commit(bencher, puts, Level::Interval);
}

fn commit(bencher: Bencher<'_, '_>, puts: u32, level: Level) {
    let directory = temporary();
    let durable = RefCell::new(opened(directory.path(), level));
    bencher
        .counter(ItemsCount::new(puts))
        .with_inputs(|| turn(&mut durable.borrow_mut(), |durable| pop(durable, puts)))
        .bench_local_values(|()| {
            turn(&mut durable.borrow_mut(), |durable| (0..puts).for_each(|_| put(durable)));
        });
    assert!(durable.borrow().figures().writes > 0, "something was written");
}

/// Reading the log alone. The content is discarded.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn read_a_hundred_thousand(bencher: Bencher<'_, '_>) {
    let directory = filled();
    bencher.counter(ItemsCount::new(LOADED)).bench_local(|| {
        let mut journal = journal(directory.path(), Level::Sync);
        let mut read = 0;
        journal.load(&mut |_, _| read += 1).expect("the log is whole");
        assert_eq!(read, LOADED);
    });
}

/// What a start does before it listens: it rebuilds an engine from the log.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn start_with_a_hundred_thousand(bencher: Bencher<'_, '_>) {
    let directory = filled();
    bencher.counter(ItemsCount::new(LOADED)).bench_local(|| {
        let mut journal = journal(directory.path(), Level::Sync);
        let mut engine = Engine::new(Limits::default(), 1);
        let loaded = journal.load(&mut |change, place| engine.restore(change, place));
        let header = loaded.expect("the log is whole").header;
        engine.start(NOW, header.incarnation + 1, header);
        assert_eq!(engine.totals().present(), LOADED);
        engine
    });
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a directory can be made")
}

fn journal(path: &Path, level: Level) -> Journal {
    let disk = RealDisk::create(path).expect("the directory is ours");
    let options = JournalOptions { level, ..JournalOptions::default() };
    Journal::open(Arc::new(disk), options, Runner::Inline).expect("no other journal has it")
}

fn opened(path: &Path, level: Level) -> Durable {
    let journal = Box::new(journal(path, level));
    let opened = Durable::open(journal, Limits::default(), NOW, 1);
    opened.expect("the directory is a good one").0
}

/// A directory with tasks in it.
fn filled() -> TempDir {
    let directory = temporary();
    let mut durable = opened(directory.path(), Level::Interval);
    for _ in 0..LOADED / 100 {
        turn(&mut durable, |durable| (0..100).for_each(|_| put(durable)));
    }
    durable.finish(NOW).expect("the disk works");
    directory
}

/// A turn as a server makes it: the changes become durable, then the outputs leave.
fn turn(durable: &mut Durable, say: impl FnOnce(&mut Durable)) {
    say(durable);
    durable.commit().expect("the disk works");
    durable.drive(NOW).expect("the disk works");
    while let Some((position, output)) = durable.poll_output() {
        assert!(position <= durable.reached(), "{output:?} has to wait");
    }
}

fn put(durable: &mut Durable) {
    durable.apply(NOW, CLIENT, RequestId(1), &Command::Put(Put::new(QUEUE, &PAYLOAD)));
}

fn pop(durable: &mut Durable, count: u32) {
    let (queues, member) = (&[QUEUE][..], None);
    let (selection, mode, wait) = (Selection::DEFAULT, TakeMode::Pop, Wait::No);
    let take = Take { queues, member, count, wait, selection, mode };
    durable.apply(NOW, CLIENT, RequestId(1), &Command::Take(take));
}
