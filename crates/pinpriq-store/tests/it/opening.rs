//! Who may open a journal, and what is refused without touching anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinpriq_proto::change::Header;
use pinpriq_store::journal::check;
use pinpriq_store::{Disk, Journal, RealDisk, Runner, Store, StoreError, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::sample_task;

use crate::driving::{journal, options, start};

#[test]
fn a_second_opener_is_refused_on_both_disks() {
    let disk = FaultyDisk::new(1);
    let first = start(&disk, options(1)).unwrap();
    assert!(matches!(journal(&disk, options(1)), Err(StoreError::Locked { .. })));
    drop(first);
    journal(&disk, options(1)).unwrap();

    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(directory.path()).unwrap());
        Journal::open(disk, options(1), Runner::Inline)
    };
    let first = open().unwrap();
    let Err(error) = open() else { panic!("two journals on one directory") };
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let read_only = RealDisk::open_read_only(directory.path()).unwrap();
    assert!(read_only.lock().is_err(), "a reader sees that it is in use");
    drop(first);
    open().unwrap();
    assert!(read_only.lock().is_ok());
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    for number in 1..200 {
        caller.append(&[sample_task(number, "q", 300)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    for name in disk.files().keys().filter(|name| name.starts_with("segment-")) {
        let newer = FaultyDisk::with_files(2, &disk.files());
        newer.flip(name, 8, 1);
        newer.flip(name, 4_096 + 8, 1);
        let untouched = newer.files();
        let Err(error) = start(&newer, options(1)) else { panic!("version 6 was read") };
        assert!(matches!(error, StoreError::NewerFormat { version: 6, .. }), "{error}");
        assert!(error.to_string().contains(name.as_str()), "{error}");
        assert!(matches!(check(&newer), Err(StoreError::NewerFormat { .. })));
        assert!(newer.files() == untouched, "{name}: a file was changed");
    }
}

#[test]
fn the_order_of_calls_is_kept_to() {
    let disk = FaultyDisk::new(1);
    let mut store = journal(&disk, options(1)).unwrap();
    let header = Header::default();
    assert!(matches!(store.begin(&header), Err(StoreError::OutOfOrder { .. })));
    store.load(&mut |_, _| {}).unwrap();
    assert!(matches!(store.load(&mut |_, _| {}), Err(StoreError::OutOfOrder { .. })));
    assert!(store.append(&header, &[], Urgency::Soon, &mut |_, _| {}).is_err());
    store.begin(&header).unwrap();
    store.append(&header, &[], Urgency::Soon, &mut |_, _| {}).unwrap();
}

#[test]
fn many_restarts_do_not_pile_up_files() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    caller.append(&[sample_task(1, "q", 300)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    for seed in 0..60 {
        drop(caller);
        disk.crash(CrashPolicy::KeepAll);
        caller = start(&disk, options(seed)).unwrap();
        assert_eq!(caller.fold.tasks.len(), 1);
        caller.settle().unwrap();
    }
    let names: Vec<String> = disk.files().into_keys().collect();
    assert!(names.len() < 16, "{names:?}");
    assert!(disk.used() < 300_000, "{} bytes for one task", disk.used());
}

#[cfg(unix)]
#[test]
fn files_and_directory_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&path).unwrap());
    let mut store = Journal::open(disk, options(1), Runner::Inline).unwrap();
    store.load(&mut |_, _| {}).unwrap();
    store.begin(&Header::default()).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for entry in path.read_dir().unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn a_load_that_is_told_to_stop_ends_soon_and_changes_nothing() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    for number in 1..2_000 {
        caller.append(&[sample_task(number, "q", 300)], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    drop(caller);
    let before = disk.files();
    let open = |runner, stop: &Arc<AtomicBool>| {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        Journal::open(disk, options(1), runner).unwrap().stoppable(stop.clone())
    };
    let runners: [fn() -> Runner; 2] =
        [|| Runner::Inline, || Runner::Thread { wake: Arc::new(|| {}) }];
    for runner in runners {
        let stop = Arc::new(AtomicBool::new(false));
        let mut changes = 0;
        let loaded = open(runner(), &stop).load(&mut |_, _| {
            changes += 1;
            stop.store(true, Ordering::Relaxed);
        });
        assert!(matches!(loaded, Err(StoreError::Stopped)), "{loaded:?}");
        assert!((1..1_999).contains(&changes), "{changes}");

        let stop = Arc::new(AtomicBool::new(false));
        let mut journal = open(runner(), &stop);
        journal.load(&mut |_, _| {}).unwrap();
        stop.store(true, Ordering::Relaxed);
        let begun = journal.begin(&Header::default());
        assert!(matches!(begun, Err(StoreError::Stopped)), "{begun:?}");
        assert!(disk.files() == before);
    }
}
