//! Files that are removed, moved or replaced while a journal uses them, and files that cannot
//! be opened.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pinpriq_proto::command::{Command, Put};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Refusal, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::disk::LockError;
use pinpriq_store::{
    Disk, Durable, Journal, JournalOptions, RealDisk, Runner, StoreError, Urgency,
};
use pinpriq_testing::faulty_disk::{FaultyDisk, Operation, Repeat};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{GUARD, journal, options, start};

const SECOND: Span = Span::from_ms(1_000);

fn open(directory: &Path, options: JournalOptions) -> Result<Box<Journal>, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(directory).unwrap());
    Journal::open(disk, options, Runner::Inline).map(Box::new)
}

#[test]
fn a_directory_is_locked_although_its_file_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path(), options(1)).unwrap();
    RealDisk::open(directory.path()).unwrap().remove("LOCK").unwrap();
    let Err(error) = open(directory.path(), options(1)) else { panic!("two journals") };
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let reader = RealDisk::open_read_only(directory.path()).unwrap();
    assert!(matches!(reader.lock(), Err(LockError::Held)), "a reader sees that it is in use");
    drop(first);
    drop(reader.lock().unwrap());
    open(directory.path(), options(1)).unwrap();
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = RealDisk::open_read_only(directory).unwrap().list().unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_lock_of_which_nothing_came_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path(), options(1)).unwrap());
    assert!(names(directory.path()).is_empty());
    drop(Caller::start(open(directory.path(), options(1)).unwrap()).unwrap());
    let disk = RealDisk::open(directory.path()).unwrap();
    let in_use = names(directory.path());
    assert_eq!(in_use.first().map(String::as_str), Some("LOCK"), "{in_use:?}");
    drop(disk.lock().unwrap());
    assert_eq!(names(directory.path()), in_use, "one that was there stays");

    disk.remove("LOCK").unwrap();
    std::fs::create_dir(directory.path().join("segment-0000000009.log")).unwrap();
    let refused = names(directory.path());
    let started = open(directory.path(), options(1)).and_then(Caller::start);
    let Err(error) = started else { panic!("a segment is a directory") };
    assert!(error.to_string().contains("no file was changed"), "{error}");
    assert_eq!(names(directory.path()), refused);
}

/// A journal that looks every second whether its files are there, with a task in it.
fn watching(directory: &Path) -> Caller<Journal> {
    let options = JournalOptions { watches: true, ..options(1) };
    let mut caller = Caller::start(open(directory, options).unwrap()).unwrap();
    caller.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    caller.header.now = caller.header.now.after(SECOND);
    caller.turn().unwrap();
    caller
}

/// What a journal says that is gone when it looks again.
fn gone(caller: &mut Caller<Journal>) -> String {
    caller.header.now = caller.header.now.after(SECOND);
    // An inline look has ended with the call that begins it, and the next one hears of it.
    let failed = caller.turn().and_then(|()| caller.turn()).unwrap_err();
    let again = caller.append(&[sample_task(2, "q", 10)], Urgency::Soon).unwrap_err();
    assert!(matches!(again, StoreError::Poisoned { .. }), "{again}");
    let StoreError::Gone { what } = failed else { panic!("{failed}") };
    what
}

#[test]
fn a_journal_fails_within_a_second_when_its_files_are_gone() {
    let parent = tempfile::tempdir().unwrap();
    let mut kept = watching(tempfile::tempdir_in(&parent).unwrap().keep().as_path());
    for _ in 0..3 {
        kept.header.now = kept.header.now.after(SECOND);
        kept.turn().unwrap();
    }

    let removed = tempfile::tempdir_in(&parent).unwrap();
    let mut caller = watching(removed.path());
    let path = removed.path().to_owned();
    removed.close().unwrap();
    assert_eq!(gone(&mut caller), "the data directory");

    // Another directory in its place is not the same one.
    drop(RealDisk::create(&path).unwrap());
    let mut replaced = watching(&path);
    let outer = RealDisk::open(parent.path()).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    outer.rename(name, "elsewhere").unwrap();
    drop(RealDisk::create(&path).unwrap());
    assert_eq!(gone(&mut replaced), "the data directory");

    let segment = "segment-0000000001.log";
    for moves in [false, true] {
        let directory = tempfile::tempdir_in(&parent).unwrap();
        let mut caller = watching(directory.path());
        let disk = RealDisk::open(directory.path()).unwrap();
        if moves {
            disk.rename(segment, "elsewhere").unwrap();
        } else {
            disk.remove(segment).unwrap();
        }
        assert_eq!(gone(&mut caller), segment);
    }
}

#[test]
fn a_journal_fails_with_its_next_segment_when_the_one_before_is_gone() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(1)).unwrap();
    disk.take_away("segment-0000000001.log");
    let failed = (1..1_000).find_map(|number| {
        caller.append(&[sample_task(number, "q", 200)], Urgency::Soon).ok()?;
        caller.turn().err()
    });
    assert!(matches!(failed, Some(StoreError::Gone { .. })), "{failed:?}");
}

#[test]
fn looking_delays_no_write_on_threads() {
    let directory = tempfile::tempdir().unwrap();
    let (wake, woken) = std::sync::mpsc::sync_channel(64);
    let wake = move || _ = wake.try_send(());
    let runner = Runner::Thread { wake: Arc::new(wake) };
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(directory.path()).unwrap());
    let options = JournalOptions { watches: true, ..options(1) };
    let store = Journal::open(disk, options, runner).unwrap();
    let start = Timestamp::from_ms(1_000);
    let (mut durable, _) = Durable::open(Box::new(store), Limits::default(), start, 1).unwrap();
    let mut now = durable.now();
    for request in 1..50 {
        now = now.after(SECOND);
        durable.apply(now, ClientId(1), RequestId(request), &Command::Put(Put::new(b"q", b"x")));
        durable.commit().unwrap();
        durable.drive(now).unwrap();
        let (awaited, _) = durable.poll_output().unwrap();
        while durable.reached() < awaited {
            woken.recv_timeout(GUARD).unwrap();
            durable.drive(now).unwrap();
        }
    }
}

/// The refusal of the first put for which there is no room on a disk that fails to open files in
/// this way.
fn refusal(kind: io::ErrorKind) -> Refusal {
    let disk = FaultyDisk::new(1);
    let store = journal(&disk, options(1)).unwrap();
    let start = Timestamp::from_ms(1_000);
    let (mut durable, _) = Durable::open(store, Limits::default(), start, 1).unwrap();
    disk.fail(Operation::Open, 1, Repeat::Forever, kind);
    let now = durable.now();
    for request in 1..1_000 {
        let put = Put::new(b"q", &[7; 200]);
        durable.apply(now, ClientId(1), RequestId(request), &Command::Put(put));
        durable.commit().unwrap();
        durable.drive(now).unwrap();
        if let Some((_, Output::Reply { reply: Reply::Refused(refusal), .. })) =
            durable.poll_output()
        {
            return refusal;
        }
    }
    panic!("everything fits")
}

#[test]
fn without_descriptors_the_disk_is_not_called_full() {
    let full = refusal(io::ErrorKind::StorageFull);
    assert_eq!(full.sentence, "the disk is nearly full: finish some, try again");
    let other = refusal(io::ErrorKind::Other);
    let sentence = "the store cannot make its next file, its log says why: finish some, try again";
    assert_eq!(other.sentence, sentence);
    assert_eq!(full.kind, other.kind);

    for code in [23, 24] {
        let error = io::Error::from_raw_os_error(code);
        let told = StoreError::from_io("open", "spare-0000000001.log", 0, error).to_string();
        assert!(told.contains("no file descriptor is free"), "{told}");
    }
}
