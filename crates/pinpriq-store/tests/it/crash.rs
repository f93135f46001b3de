//! Crashes at every operation of the disk, with everything that may survive one.

use pinpriq_store::{JournalOptions, Level, Store};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

use crate::driving::{History, options, start, work};

/// Random batches in one life of a journal.
const ROUNDS: u64 = 200;

const POLICIES: [CrashPolicy; 4] = [
    CrashPolicy::KeepAll,
    CrashPolicy::LoseUnsynced,
    CrashPolicy::KeepSome(50),
    CrashPolicy::KeepSome(90),
];

/// Works until the machine stops at the given operation, then crashes, and crashes again and again
/// while it recovers. Compares what is found in the end with what was promised.
fn crash_once(seed: u64, stop_at: u64, policy: CrashPolicy) -> bool {
    let context = format!("seed {seed}, stopped at operation {stop_at}, {policy:?}");
    let mut dice = Dice::new(seed);
    let disk = FaultyDisk::new(seed ^ 0xd15c);
    disk.shorten_writes(dice.below(20));
    disk.stop_at(stop_at);
    let mut history = History::default();
    if let Ok(mut caller) = start(&disk, options(seed)) {
        history = History::begin(&caller);
        let _ = work(&mut caller, &mut history, &mut dice, ROUNDS);
        history.note_reached(&caller);
    }
    if !disk.has_stopped() {
        return false;
    }
    for again in 0..3 {
        disk.crash(policy);
        disk.stop_at(1 + dice.below(40));
        if let Ok(caller) = start(&disk, options(seed + again + 1)) {
            history.judge(&caller.fold, &context);
            history = History::begin(&caller);
        }
    }
    disk.crash(policy);
    let mut caller = start(&disk, options(seed + 9)).unwrap_or_else(|error| {
        panic!("{context}: {error}");
    });
    history.judge(&caller.fold, &context);
    let mut history = History::begin(&caller);
    work(&mut caller, &mut history, &mut dice, 20).unwrap();
    caller.store.finish(caller.header.now).unwrap();
    let fold = caller.fold.clone();
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);
    assert_eq!(start(&disk, options(seed + 10)).unwrap().fold, fold, "{context}: in the end");
    true
}

#[test]
fn a_crash_at_every_operation_loses_nothing_that_was_reached() {
    for policy in POLICIES {
        let mut stop_at = 1;
        while crash_once(2, stop_at, policy) {
            stop_at += 1;
        }
        assert!(stop_at > 250, "the work takes only {stop_at} operations");
    }
}

#[test]
fn the_random_work_compacts_rewrites_and_puts_segments_away() {
    for seed in [2, 1_000, 1_001] {
        let disk = FaultyDisk::new(seed);
        let mut caller = start(&disk, options(seed)).unwrap();
        let mut history = History::begin(&caller);
        work(&mut caller, &mut history, &mut Dice::new(seed), ROUNDS).unwrap();
        let figures = caller.store.figures();
        let gone = !disk.files().contains_key("segment-0000000001.log");
        assert!(figures.rewrites > 0 && gone, "seed {seed}: {figures:?}");
    }
}

#[test]
fn a_crash_anywhere_under_random_work_loses_nothing_that_was_reached() {
    for seed in 1_000..1_200 {
        let policy = POLICIES[usize::try_from(seed % 4).unwrap()];
        let stop_at = 1 + Dice::new(seed).below(450);
        crash_once(seed, stop_at, policy);
    }
}

#[test]
fn at_level_interval_a_crash_of_the_process_loses_nothing_and_of_the_machine_only_the_end() {
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let disk = FaultyDisk::new(seed);
        let options = JournalOptions { level: Level::Interval, ..options(seed) };
        let mut caller = start(&disk, options).unwrap();
        let mut history = History::begin(&caller);
        work(&mut caller, &mut history, &mut dice, 60).unwrap();
        drop(caller);
        disk.crash(CrashPolicy::KeepAll);
        let caller = start(&disk, options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        history.judge(&caller.fold, &format!("seed {seed}"));
        let mut caller = caller;
        let mut history = History::begin(&caller);
        work(&mut caller, &mut history, &mut dice, 60).unwrap();
        drop(caller);
        disk.crash(POLICIES[usize::try_from(1 + seed % 3).unwrap()]);
        let caller = start(&disk, options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        history.judge_prefix(&caller.fold, &format!("seed {seed}"));
    }
}
