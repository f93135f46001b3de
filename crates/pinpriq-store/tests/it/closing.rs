//! After an orderly stop, damage to the last write is distinguished from an unfinished write.

use pinpriq_store::{Fold, Journal, Store, StoreError, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk, Operation};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{SEGMENT_BYTES, options, start};

const NAME: &str = "segment-0000000001.log";

fn put(caller: &mut Caller<Journal>, payload_bytes: usize) {
    let number = caller.header.last_number + 1;
    caller.append(&[sample_task(number, "q", payload_bytes)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    assert_eq!(caller.reached, caller.last);
}

/// Ten tasks in batches of their own. Returns where the last of these batches begins.
fn ten(disk: &FaultyDisk) -> (Caller<Journal>, u64) {
    let mut caller = start(disk, options(1)).unwrap();
    for _ in 0..9 {
        put(&mut caller, 50);
    }
    let last = caller.store.figures().bytes_used;
    put(&mut caller, 50);
    (caller, last)
}

fn close(caller: &mut Caller<Journal>) {
    caller.store.close(caller.header.now).unwrap();
}

fn reload(disk: &FaultyDisk) -> Result<Fold, StoreError> {
    Ok(start(disk, options(2))?.fold)
}

#[test]
fn damage_to_the_last_write_before_an_orderly_stop_is_told() {
    for at in [0, 9, 20, 61, 70] {
        let disk = FaultyDisk::new(1);
        let (mut caller, last) = ten(&disk);
        close(&mut caller);
        drop(caller);
        disk.crash(CrashPolicy::LoseUnsynced);
        disk.flip(NAME, last + at, 2);
        match reload(&disk) {
            Err(StoreError::Corrupt { file, offset, .. }) => {
                assert_eq!((&*file, offset), (NAME, last));
            }
            other => panic!("a bit flipped at {at}: {:?}", other.map(|fold| fold.tasks.len())),
        }
        // After a crash it would be an unfinished write.
        let disk = FaultyDisk::new(1);
        let (caller, last) = ten(&disk);
        drop(caller);
        disk.crash(CrashPolicy::LoseUnsynced);
        disk.flip(NAME, last + at, 2);
        assert_eq!(reload(&disk).unwrap().tasks.len(), 9);
    }
}

#[test]
fn a_start_and_a_stop_with_nothing_between_write_nothing_more() {
    let disk = FaultyDisk::new(1);
    for round in 0..5 {
        let mut caller = start(&disk, options(round)).unwrap();
        let writes = disk.count(Operation::Write);
        close(&mut caller);
        assert_eq!(disk.count(Operation::Write), writes, "round {round}");
    }
}

#[test]
fn power_that_goes_while_the_log_is_closed_takes_nothing_along() {
    let mut nth = 1;
    loop {
        let disk = FaultyDisk::new(nth);
        let (mut caller, _) = ten(&disk);
        let fold = caller.fold.clone();
        disk.stop_at(nth);
        let closed = caller.store.close(caller.header.now);
        let stopped = disk.has_stopped();
        assert_eq!(closed.is_err(), stopped, "operation {nth}: {closed:?}");
        drop(caller);
        disk.crash(if nth % 2 == 0 {
            CrashPolicy::LoseUnsynced
        } else {
            CrashPolicy::KeepSome(50)
        });
        assert_eq!(reload(&disk).unwrap(), fold, "operation {nth}");
        if !stopped {
            break;
        }
        nth += 1;
    }
    assert!(nth > 2, "closing takes a write and a sync");
}

#[test]
fn a_full_disk_does_not_keep_anybody_from_stopping() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    // The active segment has room, and there is none for another one.
    disk.set_capacity(disk.used());
    let left = |caller: &Caller<Journal>| {
        let figures = caller.store.figures();
        assert_eq!(figures.segments, 1);
        u64::from(SEGMENT_BYTES) - figures.bytes_used
    };
    let before = left(&caller);
    put(&mut caller, 1_000);
    let overhead = before - left(&caller) - 1_000;
    while left(&caller) > 3_000 {
        put(&mut caller, 1_000);
    }
    let payload_bytes = left(&caller) - overhead - 8;
    put(&mut caller, usize::try_from(payload_bytes).unwrap());
    assert!(left(&caller) < 64, "{} bytes are left, enough for a batch", left(&caller));
    let fold = caller.fold.clone();
    close(&mut caller);
    assert!(caller.append(&[], Urgency::Soon).is_err(), "nothing is taken after that");
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);
    disk.set_capacity(u64::MAX);
    assert_eq!(reload(&disk).unwrap(), fold);
}
