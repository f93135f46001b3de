//! `check` reports what exists, and `salvage` saves what can be read.

use std::sync::Arc;

use pinpriq_proto::change::{Change, Moved};
use pinpriq_proto::task::{Progress, State};
use pinpriq_store::journal::{LsnRange, check, salvage};
use pinpriq_store::{Disk, Fold, Journal, RealDisk, Runner, Store, StoreError, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk, Operation};
use pinpriq_testing::stores::sample_task;

use crate::driving::{History, options, start, tasks_of_lanes, work};

/// Ninety tasks in batches of their own, over several segments.
fn ninety(disk: &FaultyDisk) -> Fold {
    let mut caller = start(disk, options(5)).unwrap();
    for number in 1..=90 {
        let queue = if number % 3 == 0 { "a" } else { "b" };
        caller.append(&[sample_task(number, queue, 700)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    let fold = caller.fold.clone();
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    fold
}

#[test]
fn check_tells_what_is_there_and_changes_nothing() {
    let disk = FaultyDisk::new(1);
    let fold = ninety(&disk);
    disk.put("notes.txt", b"by the operator".to_vec());
    let files = disk.files();
    let writes = disk.count(Operation::Write);
    let report = check(&disk).unwrap();
    assert!(disk.files() == files && disk.count(Operation::Write) == writes);
    assert_eq!(report.tasks_by_state, [90, 0, 0, 0, 0, 0]);
    assert_eq!(report.tasks_by_queue.values().copied().collect::<Vec<u64>>(), [30, 60]);
    assert_eq!(report.foreign, ["notes.txt"]);
    assert_eq!(report.bytes_live, fold.live_bytes());
    assert_eq!(report.batches, 91);
    assert_eq!((report.header.incarnation, report.header.last_number), (1, 90));
    assert!(report.damage.is_empty() && report.missing.is_empty() && !report.in_use);

    let caller = start(&disk, options(6)).unwrap();
    assert!(check(&disk).unwrap().in_use);
    drop(caller);
    assert!(matches!(check(&FaultyDisk::new(1)), Err(StoreError::NotAJournal)));
}

#[test]
fn check_reads_a_directory_that_must_not_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(directory.path()).unwrap());
    let mut store = Journal::open(disk, options(1), Runner::Inline).unwrap();
    store.load(&mut |_, _| {}).unwrap();
    store.begin(&pinpriq_proto::change::Header::default()).unwrap();
    drop(store);
    let read_only = RealDisk::open_read_only(directory.path()).unwrap();
    assert_eq!(check(&read_only).unwrap().batches, 1);
    assert!(read_only.remove("LOCK").is_err() && read_only.rename("LOCK", "x").is_err());
}

#[test]
fn check_agrees_with_the_server_about_random_journals() {
    let mut published = 0;
    for seed in 0..40 {
        let disk = FaultyDisk::new(seed);
        let mut caller = start(&disk, options(seed)).unwrap();
        let mut history = History::begin(&caller);
        work(&mut caller, &mut history, &mut Dice::new(seed), 200).unwrap();
        drop(caller);
        disk.crash(CrashPolicy::KeepSome(50));
        let report = check(&disk).unwrap();
        assert!(report.damage.is_empty(), "seed {seed}: {:?}", report.damage);
        let caller = start(&disk, options(seed)).unwrap();
        let tasks: u64 = report.tasks_by_state.iter().sum();
        let (fold, of_lanes) = (&caller.fold, tasks_of_lanes(&caller.fold).len());
        assert_eq!(tasks, fold.tasks.len() as u64, "seed {seed}");
        assert_eq!(report.tasks_by_lane.values().sum::<u64>(), of_lanes as u64, "seed {seed}");
        assert_eq!(report.lanes, fold.lanes.len() as u64, "seed {seed}");
        assert_eq!(report.members, fold.members.len() as u64, "seed {seed}");
        assert_eq!(report.publications, fold.publications.len() as u64, "seed {seed}");
        published += report.publications;
        assert_eq!(report.bytes_live, caller.fold.live_bytes(), "seed {seed}");
    }
    assert!(published > 40, "the work publishes next to nothing");
}

/// Salvages to a new disk and returns the report and the new contents.
fn rescue(disk: &FaultyDisk) -> (pinpriq_store::journal::SalvageReport, Fold) {
    let fresh = FaultyDisk::new(77);
    let to: Arc<dyn Disk> = Arc::new(fresh.clone());
    let before = disk.files();
    let report = salvage(disk, &to, options(9)).unwrap();
    assert!(disk.files() == before, "salvage changed the damaged journal");
    drop(to);
    fresh.crash(CrashPolicy::LoseUnsynced);
    let caller = start(&fresh, options(10)).unwrap();
    assert_eq!(caller.loaded.header, report.header);
    (report, caller.fold.without_places())
}

#[test]
fn salvage_goes_on_behind_every_damaged_batch() {
    let disk = FaultyDisk::new(1);
    let fold = ninety(&disk);
    let files = disk.files();
    for number in (1..=89).step_by(4) {
        let damaged = FaultyDisk::with_files(2, &files);
        let place = fold.tasks[&number].1.unwrap();
        let file = format!("segment-{:010}.log", place.volume);
        damaged.flip(&file, u64::from(place.offset + 20), 2);
        let (report, found) = rescue(&damaged);
        let mut expected = fold.without_places();
        expected.tasks.remove(&number);
        assert_eq!(found, expected, "task {number}");
        assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
        let damage = &report.damage[0];
        let range = damage.offset..damage.offset + damage.bytes;
        assert!(damage.file == file && range.contains(&u64::from(place.offset)), "{damage:?}");
        let lsn = number + 1;
        assert_eq!(report.missing, [LsnRange { first: lsn, last: lsn }]);
        assert!(report.header.incarnation > 1);
        assert_eq!(report.header.last_number, 90);
        // A check says the same.
        assert_eq!(check(&damaged).unwrap().damage, report.damage);
    }
}

#[test]
fn salvage_gets_over_lost_headers_and_lost_files() {
    let disk = FaultyDisk::new(1);
    let fold = ninety(&disk);
    let files = disk.files();
    let in_two: Vec<u64> = fold
        .tasks
        .iter()
        .filter(|(_, task)| task.1.is_some_and(|place| place.volume == 2))
        .map(|(&number, _)| number)
        .collect();
    let mut expected = fold.without_places();
    expected.tasks.retain(|number, _| !in_two.contains(number));
    let name = "segment-0000000002.log";

    let no_header = FaultyDisk::with_files(2, &files);
    no_header.put(name, vec![0; 24 << 10]);
    let (report, found) = rescue(&no_header);
    assert_eq!(found, expected);
    assert!(report.damage.iter().any(|damage| damage.file == name), "{:?}", report.damage);

    let no_file = FaultyDisk::with_files(2, &files);
    no_file.take_away(name);
    let (report, found) = rescue(&no_file);
    assert_eq!(found, expected);
    assert!(report.damage.iter().any(|damage| damage.file == name), "{:?}", report.damage);
    assert_eq!(report.missing.len(), 1);
}

#[test]
fn salvage_names_tasks_whose_record_is_lost() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(5)).unwrap();
    caller.append(&[sample_task(1, "q", 50)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    let moved = Moved {
        number: 1,
        progress: Progress { attempts: 1, state: State::Done, ..Progress::fresh(1, None) },
    };
    caller.append(&[Change::Moved(Box::new(moved))], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    let place = caller.fold.tasks[&1].1.unwrap();
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    disk.flip("segment-0000000001.log", u64::from(place.offset) + 3, 0);
    let (report, found) = rescue(&disk);
    assert_eq!(report.lost_tasks, [1]);
    assert!(found.tasks.is_empty());
}

#[test]
fn salvage_wants_an_empty_directory() {
    let disk = FaultyDisk::new(1);
    ninety(&disk);
    let occupied = FaultyDisk::new(2);
    occupied.put("x", Vec::new());
    let to: Arc<dyn Disk> = Arc::new(occupied);
    assert!(matches!(salvage(&disk, &to, options(1)), Err(StoreError::NotEmpty { .. })));
}
