//! A start and a check read what is in a file of any length, in small pieces.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pinpriq_proto::change::Change;
use pinpriq_store::disk::{OpenMode, write_all_at};
use pinpriq_store::journal::check;
use pinpriq_store::{Disk, Journal, JournalOptions, RealDisk, Runner, Store, Urgency};
use pinpriq_testing::faulty_disk::{FaultyDisk, Operation, Repeat};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::counting::CountingDisk;
use crate::driving::options;

const NAME: &str = "segment-0000000001.log";

/// The most bytes that may be read at a time.
const WINDOW_BYTES: u64 = 1 << 20;

/// Puts tasks with payloads of these lengths, each in a batch of its own.
fn put(caller: &mut Caller<Journal>, lengths: impl IntoIterator<Item = usize>) {
    for length in lengths {
        let number = caller.header.last_number + 1;
        caller.append(&[sample_task(number, "q", length)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
}

/// A real directory with twenty tasks, and a file that a sparse tail extends to 64 GiB, more than a
/// disk has room for. Returns where the log ends in it.
fn with_huge_tail(directory: &Path) -> (CountingDisk, u64) {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(directory).unwrap());
    let disk = CountingDisk::new(disk, true);
    let mut caller = start(&disk, 1 << 20);
    put(&mut caller, [50; 20]);
    let end = end(&caller);
    drop(caller);
    disk.open(NAME, OpenMode::ReadWrite).unwrap().set_len(64 << 30).unwrap();
    disk.take_counts();
    (disk, end)
}

/// Where the log ends in its only segment.
fn end(caller: &Caller<Journal>) -> u64 {
    let figures = caller.store.figures();
    assert_eq!(figures.segments, 1);
    figures.bytes_used
}

fn start(disk: &CountingDisk, segment_bytes: u32) -> Caller<Journal> {
    let options = JournalOptions { segment_bytes, ..options(3) };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Caller::start(Box::new(Journal::open(disk, options, Runner::Inline).unwrap())).unwrap()
}

#[test]
fn a_tail_without_data_costs_neither_time_nor_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = with_huge_tail(directory.path());
    let report = check(&disk).unwrap();
    assert_eq!((report.batches, report.torn_tail), (21, None));
    let (bytes, largest) = disk.take_counts();
    assert!(bytes < 8 * WINDOW_BYTES && largest <= WINDOW_BYTES, "{bytes}, {largest} at a time");
    let caller = start(&disk, 1 << 20);
    assert_eq!(caller.fold.tasks.len(), 20);
    let (bytes, largest) = disk.take_counts();
    assert!(bytes < 8 * WINDOW_BYTES && largest <= WINDOW_BYTES, "{bytes}, {largest} at a time");
    drop(caller);
    let listed = disk.list().unwrap().into_iter().find(|entry| entry.name == NAME).unwrap();
    assert!(listed.bytes < WINDOW_BYTES, "the start cuts the tail off");
}

#[test]
fn a_batch_that_is_only_announced_is_not_read_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, end) = with_huge_tail(directory.path());
    let file = disk.open(NAME, OpenMode::ReadWrite).unwrap();
    let mut header = [0; 64];
    file.read_at(8_192, &mut header).unwrap();
    // The header of the batch that is due, with a length that fits in the file.
    header[4..8].copy_from_slice(&((64_u32 << 20) - 64).to_le_bytes());
    header[8..16].copy_from_slice(&22_u64.to_le_bytes());
    write_all_at(&*file, end, &header).unwrap();
    disk.take_counts();
    let caller = start(&disk, 1 << 20);
    assert_eq!(caller.loaded.torn_tail.as_ref().map(|torn| torn.offset), Some(end));
    assert_eq!(caller.fold.tasks.len(), 20);
    let (bytes, largest) = disk.take_counts();
    assert!(bytes < 8 * WINDOW_BYTES && largest <= WINDOW_BYTES, "{bytes}, {largest} at a time");
}

#[test]
fn a_long_tail_of_zeros_is_read_once() {
    const TAIL: u64 = 64 << 20;
    let faulty = FaultyDisk::new(1);
    let disk = CountingDisk::new(Arc::new(faulty.clone()), false);
    let mut caller = start(&disk, 1 << 20);
    put(&mut caller, [50; 20]);
    drop(caller);
    let mut bytes = faulty.files()[NAME].clone();
    bytes.resize(bytes.len() + usize::try_from(TAIL).unwrap(), 0);
    faulty.put(NAME, bytes);
    disk.take_counts();
    assert_eq!(check(&disk).unwrap().torn_tail, None);
    let (bytes, largest) = disk.take_counts();
    assert!(bytes < TAIL + 8 * WINDOW_BYTES && largest <= WINDOW_BYTES, "{bytes}, {largest}");
    assert_eq!(start(&disk, 1 << 20).loaded.torn_tail, None);
    let (bytes, largest) = disk.take_counts();
    assert!(bytes < TAIL + 8 * WINDOW_BYTES && largest <= WINDOW_BYTES, "{bytes}, {largest}");
}

#[test]
fn batches_across_windows_and_larger_ones_are_read() {
    let faulty = FaultyDisk::new(1);
    let disk = CountingDisk::new(Arc::new(faulty.clone()), true);
    let mut caller = start(&disk, 32 << 20);
    // Short ones so that some lie across the ends of windows, and one larger than a window.
    let lengths = (0..900).map(|number| 1_000 + number);
    put(&mut caller, lengths.clone().chain([3 << 20]).chain(lengths).chain([5 << 20, 10]));
    let (fold, used) = (caller.fold.clone(), end(&caller));
    drop(caller);
    disk.take_counts();
    let report = check(&disk).unwrap();
    assert_eq!((report.batches, report.bytes_live), (1_804, fold.live_bytes()));
    let caller = start(&disk, 32 << 20);
    assert!(caller.fold == fold, "something else was read");
    let (bytes, largest) = disk.take_counts();
    assert!(largest < (5 << 20) + 1_000, "{largest} at a time");
    assert!(bytes < 8 * used, "{bytes} bytes for {used}");
    drop(caller);
    // And one of them is damaged.
    let place = fold.tasks[&901].1.unwrap();
    faulty.flip(NAME, u64::from(place.offset) + (2 << 20), 1);
    let report = check(&disk).unwrap();
    assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
    assert_eq!(report.tasks_by_state[0], 1_802);
}

#[test]
fn what_cannot_be_read_costs_what_is_behind_it_in_its_file_alone() {
    let faulty = FaultyDisk::new(1);
    let disk = CountingDisk::new(Arc::new(faulty.clone()), true);
    let mut caller = start(&disk, 8 << 20);
    put(&mut caller, [100_000; 40]);
    let changes: Vec<Change> = (41..44).map(|number| sample_task(number, "q", 9)).collect();
    caller.append(&changes, Urgency::Soon).unwrap();
    caller.turn().unwrap();
    drop(caller);
    faulty.fail(Operation::Read, 5, Repeat::Forever, io::ErrorKind::Other);
    let report = check(&disk).unwrap();
    assert!(report.damage.len() == 1 && report.damage[0].file == NAME, "{:?}", report.damage);
    assert!(report.damage[0].what.contains("cannot read"), "{:?}", report.damage);
}
