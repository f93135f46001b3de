//! A disk that fails: nothing is promised after a failure, and the journal recovers from a full
//! disk.

use std::io::ErrorKind;

use pinpriq_proto::change::Change;
use pinpriq_proto::time::Span;
use pinpriq_store::{
    Journal, JournalOptions, Reclaims, Room, Store, StoreError, TaskCounts, Urgency,
};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk, Operation, Repeat};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{History, SEGMENT_BYTES, options, start, work};

/// Fails the `nth` operation of a kind under load, and checks that everything after it is refused.
fn fail_once(operation: Operation, nth: u64, repeat: Repeat) -> bool {
    let context = format!("{operation:?} number {nth} fails {repeat:?}");
    let mut dice = Dice::new(nth);
    let disk = FaultyDisk::new(nth);
    let mut caller = start(&disk, options(nth)).unwrap();
    let mut history = History::begin(&caller);
    disk.fail(operation, nth, repeat, ErrorKind::Other);
    let worked = work(&mut caller, &mut history, &mut dice, 150);
    if disk.struck(operation) == 0 {
        assert!(worked.is_ok(), "{context}: {worked:?}");
        return false;
    }
    if worked.is_err() {
        let syncs = disk.count(Operation::Sync);
        let reached = caller.reached;
        for _ in 0..3 {
            let now = caller.header.now.after(Span::from_ms(100));
            let driven = caller.store.drive(now);
            assert!(matches!(driven, Err(StoreError::Poisoned { .. })), "{context}: {driven:?}");
            assert!(caller.append(&[Change::Gone(1)], Urgency::Soon).is_err(), "{context}");
            assert!(caller.store.finish(now).is_err(), "{context}");
            assert_eq!(caller.store.poll_timeout(), None, "{context}");
        }
        assert_eq!(disk.count(Operation::Sync), syncs, "{context}: a failed sync was retried");
        assert_eq!(caller.reached, reached, "{context}");
    }
    drop(caller);
    // First only the process starts again: it reads pages that a failed sync left behind, and must
    // not build on them before they are on the disk. Then the power is lost.
    disk.crash(CrashPolicy::KeepAll);
    let caller =
        start(&disk, options(nth + 1)).unwrap_or_else(|error| panic!("{context}: {error}"));
    history.judge(&caller.fold, &context);
    let fold = caller.fold.clone();
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);
    let caller =
        start(&disk, options(nth + 2)).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(caller.fold, fold, "{context}: after the power went");
    true
}

#[test]
fn after_a_failed_write_or_sync_no_position_is_reached() {
    let operations =
        [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Rename, Operation::Open];
    for operation in operations {
        for repeat in [Repeat::Once, Repeat::Forever] {
            let mut nth = 1;
            while fail_once(operation, nth, repeat) {
                nth += 1;
            }
            assert!(nth > 3, "{operation:?} happens only {nth} times");
        }
    }
}

#[test]
fn a_failure_while_beginning_leaves_a_journal_that_loads() {
    for operation in [Operation::Write, Operation::Sync, Operation::Rename, Operation::SyncDir] {
        for nth in 1..6 {
            let disk = FaultyDisk::new(nth);
            let mut caller = start(&disk, options(1)).unwrap();
            let mut history = History::begin(&caller);
            work(&mut caller, &mut history, &mut Dice::new(nth), 40).unwrap();
            drop(caller);
            disk.fail(operation, nth, Repeat::Forever, ErrorKind::Other);
            let failed = start(&disk, options(2)).is_err();
            assert_eq!(failed, disk.struck(operation) > 0, "{operation:?} {nth}");
            disk.crash(CrashPolicy::KeepSome(50));
            let caller = start(&disk, options(3)).unwrap();
            history.judge(&caller.fold, &format!("{operation:?} {nth}"));
        }
    }
}

/// What there is room for.
fn room(caller: &mut Caller<Journal>) -> Room {
    let present = caller.fold.tasks.len() as u64;
    caller.store.room(&|| TaskCounts { present, taken: 0 })
}

/// Puts tasks until the journal says that room is low.
fn fill(caller: &mut Caller<Journal>) -> Vec<u64> {
    let mut numbers = Vec::new();
    while room(caller) == Room::Enough {
        let number = caller.header.last_number + 1;
        caller.append(&[sample_task(number, "q", 200)], Urgency::Soon).unwrap();
        caller.header.now = caller.header.now.after(Span::from_ms(1));
        caller.turn().unwrap();
        numbers.push(number);
        assert!(numbers.len() < 100_000, "the disk never fills up");
    }
    numbers
}

#[test]
fn a_full_disk_refuses_puts_in_time_and_is_got_over_by_taking_tasks_out() {
    for (capacity_segments, at_a_time) in [(3, 20), (5, 1), (9, 1)] {
        let disk = FaultyDisk::new(1);
        let mut caller = start(&disk, options(1)).unwrap();
        disk.set_capacity(u64::from(SEGMENT_BYTES) * capacity_segments);
        for round in 0..5 {
            let numbers = fill(&mut caller);
            assert!(numbers.len() > 20, "round {round}: only {} tasks fit", numbers.len());
            // Everything that was put can be taken out again, even one by one.
            let known: Vec<u64> = caller.fold.tasks.keys().copied().collect();
            for some in known.chunks(at_a_time) {
                let gone: Vec<Change> = some.iter().copied().map(Change::Gone).collect();
                caller.append(&gone, Urgency::Soon).unwrap();
                caller.header.now = caller.header.now.after(Span::from_ms(300));
                caller.turn().unwrap();
            }
            caller.header.now = caller.header.now.after(Span::from_ms(2_000));
            caller.settle().unwrap();
            assert_eq!(room(&mut caller), Room::Enough, "round {round}: it never recovers");
        }
        let fold = caller.fold.clone();
        drop(caller);
        disk.crash(CrashPolicy::LoseUnsynced);
        assert_eq!(start(&disk, options(2)).unwrap().fold, fold);
    }
}

#[test]
fn room_comes_back_when_the_disk_gets_larger() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    disk.set_capacity(u64::from(SEGMENT_BYTES) * 3);
    fill(&mut caller);
    let tries = disk.count(Operation::Allocate);
    for _ in 0..100 {
        caller.header.now = caller.header.now.after(Span::from_ms(5));
        caller.turn().unwrap();
    }
    assert!(disk.count(Operation::Allocate) <= tries + 1, "it is tried more than once a second");
    disk.set_capacity(u64::MAX);
    caller.header.now = caller.header.now.after(Span::from_ms(1_000));
    caller.turn().unwrap();
    assert_eq!(room(&mut caller), Room::Enough);
}

#[test]
fn the_room_of_a_spare_is_its_own_before_it_is_filled() {
    let disk = FaultyDisk::new(1);
    let options = JournalOptions { segment_bytes: 4 << 20, ..options(1) };
    let mut caller = start(&disk, options).unwrap();
    // More than an eighth of the segment, so a spare is wanted.
    caller.append(&[sample_task(1, "q", 600 << 10)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    // The largest spare: a small one may be kept for the next start.
    let spare = || {
        let files = disk.files().into_iter();
        let spares = files.filter(|(name, _)| name.starts_with("spare-"));
        spares.map(|(_, bytes)| bytes.len()).max()
    };
    let filled = (0..10).find_map(|_| {
        caller.turn().unwrap();
        spare().filter(|bytes| *bytes >= 1 << 20)
    });
    assert!(filled.is_some_and(|bytes| bytes < 4 << 20), "{filled:?} bytes are filled");
    // Another program takes all that is left.
    disk.set_capacity(disk.used());
    caller.settle().unwrap();
    assert_eq!(spare(), Some(4 << 20));
    assert_eq!(room(&mut caller), Room::Enough);
}

#[test]
fn a_write_without_room_ends_the_journal_and_says_so() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    disk.set_capacity(u64::from(SEGMENT_BYTES) * 2);
    let failure = loop {
        let number = caller.header.last_number + 1;
        let put = caller.append(&[sample_task(number, "q", 200)], Urgency::Soon);
        if let Err(error) = put.and_then(|_| caller.turn()) {
            break error;
        }
    };
    assert!(matches!(failure, StoreError::Full { .. }), "{failure}");
    let fold = caller.fold.clone();
    drop(caller);
    disk.set_capacity(u64::MAX);
    disk.crash(CrashPolicy::LoseUnsynced);
    let found = start(&disk, options(2)).unwrap().fold;
    assert_eq!(found.tasks.len() + 1, fold.tasks.len(), "all but the last one was reached");
}
