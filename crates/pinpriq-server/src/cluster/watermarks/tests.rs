//! Watermarks are there after a crash if anything rested on them.

use std::sync::mpsc::sync_channel;

use pinpriq_store::ledger::{Seq, Term};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

use super::*;

const SHARDS: u16 = 3;

const fn mark(term: u64, head: u64) -> Watermark {
    Watermark { term: Term(term), head: Seq(head), checksum: head * 7 }
}

fn all(watermarks: &Watermarks) -> Vec<Option<Watermark>> {
    (0..SHARDS).map(|shard| watermarks.last(shard)).collect()
}

fn no_wake() -> Wake {
    Arc::new(|| ())
}

#[test]
fn what_was_kept_is_there_at_the_next_start() {
    let disk = FaultyDisk::new(1);
    let watermarks = Watermarks::open(Arc::new(disk.clone()), SHARDS, true).unwrap();
    assert_eq!(all(&watermarks), [None; 3]);
    let (sender, woken) = sync_channel(100);
    let wake = Arc::new(move || sender.try_send(()).unwrap());
    let mut keeper = watermarks.keeper(1, wake);
    assert_eq!(keeper.kept().unwrap(), None);
    for head in 1..=5 {
        keeper.keep(mark(4, head));
        assert_eq!(watermarks.last(1), Some(mark(4, head)));
        keeper.wait();
        assert_eq!(keeper.kept().unwrap(), Some(mark(4, head)));
        woken.recv().unwrap();
    }
    let mut other = watermarks.keeper(2, no_wake());
    other.keep(mark(3, 9));
    other.wait();
    disk.crash(CrashPolicy::LoseUnsynced);
    drop((watermarks, keeper, other));
    let watermarks = Watermarks::open(Arc::new(disk.clone()), SHARDS, true).unwrap();
    assert_eq!(all(&watermarks), [None, Some(mark(4, 5)), Some(mark(3, 9))]);
    let mut keeper = watermarks.keeper(1, no_wake());
    keeper.keep(mark(5, 2));
    keeper.wait();
    drop((watermarks, keeper));
    let watermarks = Watermarks::open(Arc::new(disk.clone()), SHARDS, true).unwrap();
    assert_eq!(watermarks.last(1), Some(mark(5, 2)), "a new tenure on a shorter log");
}

#[test]
fn without_a_directory_they_are_kept_in_memory() {
    let watermarks = Watermarks::in_memory(SHARDS);
    let mut keeper = watermarks.keeper(2, no_wake());
    keeper.keep(mark(1, 1));
    keeper.wait();
    assert_eq!(keeper.kept().unwrap(), Some(mark(1, 1)));
    assert_eq!(all(&watermarks), [None, None, Some(mark(1, 1))]);
}

#[test]
fn what_was_kept_outlives_a_power_loss_in_the_next_write() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..12 {
        for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepSome(50), CrashPolicy::KeepAll] {
            for nth in 1.. {
                let disk = FaultyDisk::new(seed);
                let (file, _) = open(&disk, SHARDS).unwrap();
                let due = |head, place| [(1, place, Some(mark(4, head)))];
                write(&*file, &due(1, 0)).unwrap();
                write(&*file, &due(2, 1)).unwrap();
                disk.stop_at(nth);
                let written = write(&*file, &due(3, 0));
                disk.crash(policy);
                let (_, logs) = open(&disk, SHARDS).unwrap();
                let last = logs[1].last.unwrap();
                assert!(written.is_err() || last == mark(4, 3), "seed {seed}, operation {nth}");
                assert!([mark(4, 2), mark(4, 3)].contains(&last), "seed {seed}: {last}");
                (before, after) =
                    if last == mark(4, 2) { (before + 1, after) } else { (before, after + 1) };
                if written.is_ok() {
                    break;
                }
            }
        }
    }
    assert!(before > 20 && after > 20, "{before} times the one before, {after} times the new one");
}

#[test]
fn a_file_that_was_removed_keeps_nothing() {
    let disk = FaultyDisk::new(4);
    let watermarks = Watermarks::open(Arc::new(disk.clone()), SHARDS, true).unwrap();
    let mut keeper = watermarks.keeper(0, no_wake());
    keeper.keep(mark(1, 1));
    keeper.wait();
    assert!(keeper.kept().is_ok());
    disk.take_away(FILE_NAME);
    keeper.keep(mark(1, 2));
    keeper.wait();
    assert!(matches!(keeper.kept(), Err(StoreError::Gone { .. })), "{:?}", keeper.kept());
}

#[test]
fn a_disk_that_fails_is_told() {
    let disk = FaultyDisk::new(3);
    let watermarks = Watermarks::open(Arc::new(disk.clone()), SHARDS, true).unwrap();
    let mut keeper = watermarks.keeper(0, no_wake());
    disk.stop_at(1);
    keeper.keep(mark(1, 1));
    keeper.wait();
    assert!(keeper.kept().is_err());
    keeper.keep(mark(1, 2));
    keeper.wait();
    assert!(keeper.kept().is_err(), "it stays so");
}

#[test]
fn a_file_that_is_damaged_is_refused() {
    let disk = FaultyDisk::new(4);
    let (file, _) = open(&disk, SHARDS).unwrap();
    let damage = |shard, place| write_all_at(&*file, offset_of(shard, place), b"ppwX").unwrap();
    damage(1, 0);
    assert_eq!(open(&disk, SHARDS).unwrap().1[1].last, None, "the first write was cut off");
    write(&*file, &[(1, 1, Some(mark(2, 2)))]).unwrap();
    assert_eq!(open(&disk, SHARDS).unwrap().1[1].last, Some(mark(2, 2)));
    damage(1, 1);
    let error = open(&disk, SHARDS).err().unwrap().to_string();
    assert!(error.contains("both watermarks of shard 1"), "{error}");
    let mut newer = mark(1, 1).to_bytes();
    newer[4] = 9;
    write_all_at(&*file, offset_of(1, 1), &newer).unwrap();
    let error = open(&disk, SHARDS).err().unwrap().to_string();
    assert!(error.contains("version 9"), "{error}");
}
