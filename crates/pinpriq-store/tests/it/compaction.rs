//! The journal stays short, and old files are reused.

use pinpriq_proto::change::Change;
use pinpriq_proto::time::Span;
use pinpriq_store::store::REWRITE_KEYS_MAX;
use pinpriq_store::{Journal, JournalOptions, Level, Store, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk, Operation};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{SEGMENT_BYTES, options, start};

/// What the log may hold beyond twice the live bytes: the slack, and the segments that are being
/// filled and put away.
const CONSTANT: u64 = 5 * SEGMENT_BYTES as u64;

/// Puts a task and removes the one before it, over and over.
fn churn(caller: &mut Caller<Journal>, rounds: u64) {
    for _ in 0..rounds {
        let number = caller.header.last_number + 1;
        let changes = [sample_task(number, "churn", 600), Change::Gone(number - 1)];
        caller.append(&changes, Urgency::Soon).unwrap();
        caller.header.now = caller.header.now.after(Span::from_ms(2));
        caller.turn().unwrap();
        let figures = caller.store.figures();
        assert!(
            figures.bytes_used <= 2 * figures.bytes_live + CONSTANT,
            "after {number} tasks: {figures:?}"
        );
        assert_eq!(figures.bytes_live, caller.fold.live_bytes());
    }
}

#[test]
fn one_ancient_task_pins_nothing() {
    for level in [Level::Sync, Level::Interval] {
        let disk = FaultyDisk::new(1);
        let options = JournalOptions { level, ..options(1) };
        let mut caller = start(&disk, options).unwrap();
        caller.append(&[sample_task(1, "ancient", 900)], Urgency::Soon).unwrap();
        caller.append(&[sample_task(2, "churn", 900)], Urgency::Soon).unwrap();
        churn(&mut caller, 2_000);
        assert!(caller.store.figures().rewrites > 10, "{:?}", caller.store.figures());
        assert!(disk.used() <= 2 * CONSTANT, "{} bytes on the disk", disk.used());
        caller.store.finish(caller.header.now).unwrap();
        let fold = caller.fold.clone();
        drop(caller);
        disk.crash(CrashPolicy::LoseUnsynced);
        assert_eq!(start(&disk, options).unwrap().fold, fold);
    }
}

#[test]
fn a_batch_of_more_records_than_are_listed_at_a_time_is_written_again_whole() {
    let disk = FaultyDisk::new(1);
    let segment_bytes = 8 * SEGMENT_BYTES;
    let slack_bytes = u64::from(segment_bytes);
    let options = JournalOptions { segment_bytes, slack_bytes, ..options(1) };
    let mut caller = start(&disk, options).unwrap();
    let ancient = 3 * REWRITE_KEYS_MAX as u64 + 7;
    let batch: Vec<Change> =
        (1..=ancient).map(|number| sample_task(number, "ancient", 10)).collect();
    caller.append(&batch, Urgency::Soon).unwrap();
    let rewrites = caller.store.figures().rewrites;
    while disk.files().contains_key("segment-0000000001.log") {
        for _ in 0..50 {
            let number = caller.header.last_number + 1;
            let changes = [sample_task(number, "churn", 600), Change::Gone(number - 1)];
            let is_first = number == ancient + 1;
            caller.append(&changes[..2 - usize::from(is_first)], Urgency::Soon).unwrap();
            caller.header.now = caller.header.now.after(Span::from_ms(2));
            caller.turn().unwrap();
        }
        let figures = caller.store.figures();
        assert!(caller.header.last_number < 3 * ancient, "one record pins all: {figures:?}");
    }
    assert!(caller.store.figures().rewrites - rewrites >= ancient);
    caller.settle().unwrap();
    let fold = caller.fold.clone();
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);
    assert_eq!(start(&disk, options).unwrap().fold, fold);
}

#[test]
fn when_everything_is_gone_only_the_constant_stays() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    for number in 1..=2_000 {
        caller.append(&[sample_task(number, "q", 500)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    let figures = caller.store.figures();
    assert!(figures.bytes_used > 1_000_000 && figures.segments > 40, "{figures:?}");
    // Every other one first, so that no segment is empty by itself.
    for number in (1..=2_000).step_by(2) {
        caller.append(&[Change::Gone(number)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    caller.settle().unwrap();
    let figures = caller.store.figures();
    assert!(figures.bytes_used <= 2 * figures.bytes_live + CONSTANT, "{figures:?}");
    caller.append(&[Change::Emptied(b"q".as_slice().into())], Urgency::Soon).unwrap();
    caller.settle().unwrap();
    let figures = caller.store.figures();
    assert_eq!(figures.bytes_live, 0);
    assert!(figures.bytes_used <= CONSTANT, "{figures:?}");
    assert!(disk.used() <= 2 * CONSTANT, "{} bytes on the disk", disk.used());
}

#[test]
fn old_segments_serve_again() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    churn(&mut caller, 300);
    let created = disk.count(Operation::Allocate);
    churn(&mut caller, 2_000);
    let removed = disk.count(Operation::Remove);
    assert!(disk.count(Operation::Rename) > 50, "segments come and go");
    assert!(disk.count(Operation::Allocate) <= created + 5, "new files are made all the time");
    assert!(removed < 10, "{removed} files were removed instead of used again");
}

#[test]
fn a_batch_larger_than_a_segment_gets_one_of_its_own() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    for number in 1..=6 {
        caller.append(&[sample_task(number, "q", 100_000)], Urgency::Soon).unwrap();
        caller.append(&[sample_task(100 + number, "q", 10)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    caller.append(&[Change::Gone(1), Change::Gone(3), Change::Gone(4)], Urgency::Soon).unwrap();
    caller.settle().unwrap();
    let fold = caller.fold.clone();
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);
    assert_eq!(start(&disk, options(1)).unwrap().fold, fold);
}

#[test]
fn batches_that_wait_together_go_out_in_one_write_with_one_sync() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    let (writes, syncs) = (disk.count(Operation::Write), disk.count(Operation::Sync));
    for number in 1..=10 {
        caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
    }
    caller.turn().unwrap();
    assert_eq!(caller.reached, caller.last);
    assert_eq!(disk.count(Operation::Write), writes + 1);
    assert_eq!(disk.count(Operation::Sync), syncs + 1);
}

#[test]
fn a_lazy_batch_waits_five_milliseconds_and_asks_for_no_sync() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    let (writes, syncs) = (disk.count(Operation::Write), disk.count(Operation::Sync));
    let start_at = caller.header.now;
    caller.append(&[Change::Gone(1)], Urgency::Lazy).unwrap();
    caller.turn().unwrap();
    assert_eq!(caller.store.poll_timeout(), Some(start_at.after(Span::from_ms(5))));
    assert_eq!(disk.count(Operation::Write), writes);
    caller.header.now = start_at.after(Span::from_ms(5));
    caller.turn().unwrap();
    assert_eq!(disk.count(Operation::Write), writes + 1);
    assert_eq!(disk.count(Operation::Sync), syncs);
    assert_ne!(caller.reached, caller.last, "written is not durable");
    caller.append(&[Change::Gone(2)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    assert_eq!(caller.reached, caller.last);
}

#[test]
fn level_interval_reaches_with_the_write_and_syncs_within_fifty_milliseconds() {
    let disk = FaultyDisk::new(1);
    let options = JournalOptions { level: Level::Interval, ..options(1) };
    let mut caller = start(&disk, options).unwrap();
    let syncs = disk.count(Operation::Sync);
    let start_at = caller.header.now;
    for step in 0..10 {
        caller.header.now = start_at.after(Span::from_ms(step * 4));
        caller.append(&[Change::Gone(1)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
        assert_eq!(caller.reached, caller.last);
    }
    assert_eq!(disk.count(Operation::Sync), syncs);
    assert_eq!(caller.store.poll_timeout(), Some(start_at.after(Span::from_ms(50))));
    caller.header.now = start_at.after(Span::from_ms(50));
    caller.turn().unwrap();
    assert_eq!(disk.count(Operation::Sync), syncs + 1);
    assert_eq!(caller.store.poll_timeout(), None);
}
