//! Segments that are kept because they were not archived yet: over starts, and on a full disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinpriq_proto::change::Change;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Keep, Purpose, Tap};
use pinpriq_store::{Disk, Fold, Journal, Room, Runner, Store, StoreError, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{SEGMENT_BYTES, options};
use crate::tap::{Tapped, commits, name};

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a journal that has kept everything and ended in disorder, and what it holds.
fn killed(seed: u64) -> (Files, Fold) {
    let disk = FaultyDisk::new(seed);
    let (mut tapped, _keep) = Tapped::start_keeping(&disk, options(seed));
    tapped.churn(200);
    (disk.files(), tapped.caller.fold.clone())
}

/// The numbers of the segments.
fn numbers(disk: &FaultyDisk) -> Vec<u32> {
    let files = disk.files();
    (1..1_000).filter(|number| files.contains_key(&name(*number))).collect()
}

#[test]
fn what_was_not_archived_stays_over_starts_until_it_may_go() {
    let disk = FaultyDisk::new(1);
    let (mut tapped, keep) = Tapped::start_keeping(&disk, options(1));
    tapped.churn(200);
    let cut = tapped.cut_for(Purpose::Archiving);
    let before = tapped.segments(&cut);
    assert!(cut.segments[0].number == 1 && cut.needed_from > 3, "{:?}", cut.segments);
    drop(tapped);
    assert!(keep.is_lost() && cut.keep.is_lost());
    let whole = before.len() - 1;
    let policies = [CrashPolicy::KeepAll, CrashPolicy::LoseUnsynced, CrashPolicy::KeepSome(50)];
    for (seed, policy) in (2..).zip(policies) {
        disk.crash(policy);
        let (mut tapped, keep) = Tapped::start_keeping(&disk, options(seed));
        let cut = tapped.cut_for(Purpose::Archiving);
        assert_eq!(cut.since, Timestamp::ZERO);
        let segments = tapped.segments(&cut);
        assert!(segments[..whole] == before[..whole], "start {seed}");
        assert!(commits(&segments).is_sorted_by(|one, other| one.lsn + 1 == other.lsn));
        let figures = tapped.caller.store.figures();
        assert!(figures.segments < 5, "what is only kept is not needed: {figures:?}");
        tapped.churn(60);
        assert!(!keep.is_lost() && tapped.has_segment(1));
    }
    let unarchived = FaultyDisk::with_files(9, &disk.files());
    let other = Tapped::start_with(&unarchived, options(9), Runner::Inline);
    assert!(!other.has_segment(1) && numbers(&unarchived).len() < 5, "{:?}", numbers(&unarchived));

    disk.crash(CrashPolicy::KeepAll);
    let (mut tapped, keep) = Tapped::start_keeping(&disk, options(10));
    tapped.churn(60);
    let cut = tapped.cut_for(Purpose::Archiving);
    let woken = tapped.woken();
    keep.narrow(3, Timestamp::from_ms(1));
    tapped.caller.settle().unwrap();
    assert!(tapped.has_segment(1), "the other one keeps it too");
    cut.keep.narrow(3, Timestamp::from_ms(1));
    assert_eq!(tapped.woken(), woken + 2);
    // Never more than before.
    keep.narrow(1, Timestamp::ZERO);
    assert_eq!(tapped.woken(), woken + 2);
    tapped.caller.settle().unwrap();
    assert_eq!(numbers(&disk)[0], 3);
    for keep in [&keep, &cut.keep] {
        keep.narrow(cut.needed_from, cut.needed_since);
    }
    tapped.caller.settle().unwrap();
    assert_eq!(numbers(&disk)[0], cut.needed_from);
    let later = tapped.cut_for(Purpose::Archiving);
    let from = (later.segments[0].number, later.since);
    assert_eq!(from, (cut.needed_from, cut.needed_since));
    assert!(!keep.is_lost() && !cut.keep.is_lost());
}

#[test]
fn only_what_lies_in_a_row_before_the_log_stays() {
    let (files, fold) = killed(1);
    let (others, _) = killed(2);
    let third = name(3);
    let bytes = files[&third].clone();
    let spoilt = [vec![0; 8_192], bytes[8_192..].to_vec()].concat();
    let short = bytes[..bytes.len() / 2].to_vec();
    let instead = [None, Some(spoilt), Some(short), Some(others[&third].clone())];
    for (case, instead) in instead.into_iter().enumerate() {
        let mut files = files.clone();
        match instead {
            Some(bytes) => drop(files.insert(third.clone(), bytes)),
            None => drop(files.remove(&third)),
        }
        let disk = FaultyDisk::with_files(1, &files);
        let (mut tapped, keep) = Tapped::start_keeping(&disk, options(3));
        assert!(tapped.caller.fold == fold, "case {case}");
        assert_eq!(numbers(&disk)[0], 4, "case {case}");
        assert_eq!(tapped.cut().segments[0].number, 4, "case {case}");
        assert!(!keep.is_lost());
    }
}

/// Starts and keeps everything. It may fail.
fn try_keeping(disk: &FaultyDisk, seed: u64) -> Result<(Caller<Journal>, Keep), StoreError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let tap = Arc::new(Tap::new(|| ()));
    let journal = Journal::open(shared, options(seed), Runner::Inline)?.tapped_by(Arc::clone(&tap));
    let keep = tap.keep_all();
    Ok((Caller::start(Box::new(journal))?, keep))
}

/// Removes everything that a start on a full disk could use instead.
fn without_spares(files: Files) -> Files {
    files.into_iter().filter(|(name, _)| !name.starts_with("spare-")).collect()
}

#[test]
fn a_crash_anywhere_in_a_start_that_keeps_leaves_a_log_that_loads() {
    let (files, fold) = killed(1);
    let files = without_spares(files);
    for (is_full, policy) in [
        (false, CrashPolicy::LoseUnsynced),
        (false, CrashPolicy::KeepSome(50)),
        (true, CrashPolicy::LoseUnsynced),
        (true, CrashPolicy::KeepSome(50)),
    ] {
        let mut stop_at = 1;
        loop {
            let context = format!("full {is_full}, {policy:?}, stopped at operation {stop_at}");
            let disk = FaultyDisk::with_files(stop_at, &files);
            if is_full {
                disk.set_capacity(disk.used());
            }
            disk.stop_at(stop_at);
            drop(try_keeping(&disk, 2));
            if !disk.has_stopped() {
                break;
            }
            disk.crash(policy);
            let (caller, _keep) =
                try_keeping(&disk, 3).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(caller.fold == fold, "{context}");
            let row = numbers(&disk);
            assert!(row.is_sorted_by(|one, other| one + 1 == *other), "{context}: {row:?}");
            assert!(is_full || row[0] == 1, "{context}: {row:?}");
            stop_at += 1;
        }
        assert!(stop_at > 20, "the start takes only {stop_at} operations");
    }
}

#[test]
fn a_start_on_a_full_disk_gives_up_what_is_only_kept() {
    let (files, fold) = killed(1);
    let disk = FaultyDisk::with_files(1, &without_spares(files));
    disk.set_capacity(disk.used());
    let (mut tapped, keep) = Tapped::start_keeping(&disk, options(2));
    assert!(keep.is_lost() && !tapped.has_segment(1));
    assert!(numbers(&disk).len() < 5, "{:?}", numbers(&disk));
    assert!(tapped.caller.fold == fold);
    assert_eq!(tapped.room(), Room::Enough);
    for _ in 0..200 {
        tapped.churn(1);
        assert_eq!(tapped.room(), Room::Enough);
    }
}

#[test]
fn on_a_full_disk_readers_lose_theirs_first_and_the_archive_before_anything_is_refused() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(16 * u64::from(SEGMENT_BYTES));
    let (mut tapped, archive) = Tapped::start_keeping(&disk, options(1));
    let tasks: Vec<Change> = (1..=100).map(|number| sample_task(number, "q", 50)).collect();
    tapped.caller.append(&tasks, Urgency::Soon).unwrap();
    tapped.churn(50);
    let reader = tapped.cut();
    let mut rounds = 0;
    while !archive.is_lost() {
        let readers_were_lost = reader.keep.is_lost();
        tapped.churn(1);
        assert_eq!(tapped.room(), Room::Enough, "round {rounds}");
        assert!(readers_were_lost || !archive.is_lost(), "round {rounds}");
        rounds += 1;
        assert!(rounds < 2_000, "the disk is never full");
    }
    for _ in 0..200 {
        tapped.churn(1);
        assert_eq!(tapped.room(), Room::Enough);
    }
    assert!(!tapped.has_segment(1));
}

#[test]
fn while_the_disk_is_full_the_archive_loses_only_what_wins_room() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(8 * u64::from(SEGMENT_BYTES));
    let (mut tapped, all) = Tapped::start_keeping(&disk, options(1));
    let mut number = 0;
    while tapped.room() == Room::Enough {
        number += 1;
        tapped.caller.append(&[sample_task(number, "q", 200)], Urgency::Soon).unwrap();
        tapped.pass(1);
        tapped.caller.turn().unwrap();
        assert!(number < 10_000, "the disk is never full");
    }
    assert!(all.is_lost(), "it goes before anything is refused");
    let rest = |tapped: &mut Tapped| {
        for _ in 0..5 {
            tapped.pass(1_000);
            tapped.caller.settle().unwrap();
        }
    };
    let cut = tapped.cut_for(Purpose::Archiving);
    rest(&mut tapped);
    assert!(!cut.keep.is_lost(), "everything in it is needed anyway");
    tapped.caller.append(&[Change::Emptied(b"q".as_slice().into())], Urgency::Soon).unwrap();
    rest(&mut tapped);
    assert!(cut.keep.is_lost());
    assert_eq!(tapped.room(), Room::Enough);
}

#[test]
fn what_is_kept_causes_no_batches() {
    let [plain, kept] = [false, true].map(|keeps| {
        let disk = FaultyDisk::new(1);
        let (mut tapped, keep) = Tapped::start_keeping(&disk, options(1));
        let keep = keeps.then_some(keep);
        tapped.churn(600);
        assert_eq!(tapped.has_segment(1), keeps);
        drop(keep);
        tapped.caller.store.figures().batches
    });
    assert!(kept <= plain + 2, "{kept} instead of {plain}");
}
