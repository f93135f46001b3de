//! Journals in the wrong place, older journals, and journals without some of their segments: each
//! is refused, and no file is changed.

use std::sync::Arc;

use pinpriq_store::journal::{Expected, check, check_expected};
use pinpriq_store::{Disk, Journal, Runner, Store as _, StoreError, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::{Caller, sample_task};

use xxhash_rust::xxh3::xxh3_64;

use crate::driving::options;

const SECOND_OF_TWO: Expected = Expected { directory: Some(7), shard: 1, shards: 2, served: 0 };

fn journal(disk: &FaultyDisk, expected: Expected) -> Journal {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    Journal::open(shared, options(1), Runner::Inline).unwrap().expecting(expected)
}

/// A journal that was started this many times, each time with a task.
fn started(times: u64) -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    for time in 1..=times {
        let mut caller = Caller::start(Box::new(journal(&disk, SECOND_OF_TWO))).unwrap();
        let header = caller.header;
        caller.store.all_begun(&header).unwrap();
        caller.append(&[sample_task(time, "q", 10)], Urgency::Soon).unwrap();
        caller.settle().unwrap();
    }
    disk
}

/// The highest incarnation in a whole copy of the file `head`, as `docs/internals/journal.md` says.
fn incarnation_of_head(disk: &FaultyDisk) -> Option<u64> {
    let file = disk.files().remove("head")?;
    let copies = [0, 4_096].into_iter().filter_map(|at| file.get(at..at + 40));
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let whole = copies.filter(|copy| number(&copy[32..]) == xxh3_64(&copy[..32]));
    whole.map(|copy| number(&copy[16..24])).max()
}

/// Checks that loading refuses the journal and that `check` calls it damaged, both with these
/// words.
#[track_caller]
fn refused(disk: &FaultyDisk, expected: Expected, words: &str) {
    let before = disk.files();
    let error = journal(disk, expected).load(&mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    let told = match check_expected(disk, Some(&expected)) {
        Ok(report) => report.damage.into_iter().map(|damage| damage.what).collect(),
        Err(error) => error.to_string(),
    };
    assert!(told.contains(words), "{told:?}");
    assert!(disk.files() == before, "a file was changed");
}

#[test]
fn a_journal_in_its_place_is_accepted() {
    let disk = started(2);
    let loaded = journal(&disk, Expected { served: 2, ..SECOND_OF_TWO }).load(&mut |_, _| {});
    assert_eq!(loaded.unwrap().header.incarnation, 2);
    assert!(check_expected(&disk, Some(&SECOND_OF_TWO)).unwrap().damage.is_empty());
    assert!(check(&disk).unwrap().damage.is_empty(), "nothing says what it must be");
}

#[test]
fn a_journal_in_the_place_of_another_is_refused() {
    let disk = started(1);
    let words = "was found in the place of shard";
    refused(&disk, Expected { shard: 0, ..SECOND_OF_TWO }, words);
    refused(&disk, Expected { shards: 3, ..SECOND_OF_TWO }, words);
    refused(&disk, Expected::alone(), words);
    let elsewhere = Expected { directory: Some(8), ..SECOND_OF_TWO };
    refused(&disk, elsewhere, "belongs to another data directory");
}

#[test]
fn segments_of_two_journals_are_refused() {
    let (disk, other) = (started(2), FaultyDisk::new(2));
    let mut caller = Caller::start(Box::new(journal(&other, Expected::alone()))).unwrap();
    caller.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
    caller.settle().unwrap();
    let name = "segment-0000000001.log";
    disk.take_away(name);
    disk.put(name, other.files()[name].clone());
    let report = check(&disk).unwrap();
    let told: String = report.damage.into_iter().map(|damage| damage.what).collect();
    assert!(told.contains("belongs to another journal than the segments before it"), "{told}");
}

#[test]
fn a_journal_that_lacks_its_newest_segments_is_refused() {
    let disk = started(3);
    let words = "the file is missing, and the file head names it";
    for newest in [3, 2, 1] {
        disk.take_away(&format!("segment-{newest:010}.log"));
        refused(&disk, SECOND_OF_TWO, words);
    }
    // Without the file only the other shards could reveal it.
    disk.take_away("head");
    for name in disk.files().keys().filter(|name| name.starts_with("spare-")) {
        refused(&disk, SECOND_OF_TWO, "all segments are missing");
        disk.take_away(name);
    }
    refused(&disk, Expected { served: 3, ..SECOND_OF_TWO }, "the directory holds no journal");
    let loaded = journal(&disk, SECOND_OF_TWO).load(&mut |_, _| {}).unwrap();
    assert_eq!(loaded.header.incarnation, 0);
}

#[test]
fn an_older_copy_is_refused() {
    let (older, newer) = (started(1), started(2));
    let known = Expected { served: 2, ..SECOND_OF_TWO };
    refused(&older, known, "the journal is an older copy");
    // Only the log is old.
    for name in newer.files().keys().filter(|name| name.starts_with("segment-")) {
        newer.take_away(name);
    }
    let first = older.files()["segment-0000000001.log"].clone();
    newer.put("segment-0000000001.log", first);
    assert!(matches!(
        journal(&newer, SECOND_OF_TWO).load(&mut |_, _| {}),
        Err(StoreError::Corrupt { .. })
    ));
}

#[test]
fn one_copy_of_the_head_is_whole_wherever_the_machine_stops() {
    let files = started(1).files();
    for nth in 1..100 {
        let disk = FaultyDisk::with_files(nth, &files);
        let opened = journal(&disk, SECOND_OF_TWO);
        disk.stop_at(nth);
        let begun = Caller::start(Box::new(opened));
        disk.crash(CrashPolicy::KeepSome(50));
        let known = incarnation_of_head(&disk);
        if begun.is_ok() {
            assert_eq!(known, Some(2));
            return;
        }
        assert!(matches!(known, Some(1 | 2)), "operation {nth}: {known:?}");
    }
    panic!("the start never ends");
}

#[test]
fn bytes_that_no_server_wrote_are_no_head() {
    for bytes in [vec![], vec![0; 10], vec![7; 8_192]] {
        let disk = started(1);
        disk.put("head", bytes);
        Caller::start(Box::new(journal(&disk, SECOND_OF_TWO))).unwrap();
        assert_eq!(incarnation_of_head(&disk), Some(2));
    }
    let disk = started(2);
    disk.take_away("segment-0000000002.log");
    for copy in [0, 4_096] {
        disk.flip("head", copy + 16, 1);
        let refused = journal(&disk, SECOND_OF_TWO).load(&mut |_, _| {});
        assert_eq!(refused.is_err(), copy == 0, "{refused:?}");
    }
}
