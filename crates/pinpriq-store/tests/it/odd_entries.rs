//! Anything that has the name of a journal file but is no file is refused at once, by name.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use pinpriq_proto::change::Header;
use pinpriq_store::disk::{LockError, OpenMode};
use pinpriq_store::journal::{check, salvage};
use pinpriq_store::reshard::reshard;
use pinpriq_store::{Disk, Journal, RealDisk, Runner, Store, StoreError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::driving::options;
use crate::layouts::{existing_directories, shard_directories};

/// Longer than anything here takes. Whatever takes this long is blocked for ever.
const LONG: Duration = Duration::from_mins(1);

/// Runs a job on a thread of its own, and fails if it does not return.
fn in_time<T: Send + 'static>(what: &str, job: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || sender.send(job()));
    receiver.recv_timeout(LONG).unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

type Make = fn(&Path);

/// What can exist in place of a file, and its name in messages.
const ODDITIES: [(&str, Make); 4] = [
    ("a named pipe", make_pipe),
    ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
    ("a directory", |path| std::fs::create_dir(path).unwrap()),
    ("a device", |path| symlink("/dev/zero", path).unwrap()),
];

/// Makes a journal of one batch.
fn begin(directory: &Path) -> Result<(), StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(directory).unwrap());
    let mut store = Journal::open(disk, options(1), Runner::Inline)?;
    store.load(&mut |_, _| {})?;
    store.begin(&Header::default())
}

/// Checks that every tool refuses a directory because of this name.
fn expect_refusals(data: &Path, name: &str, what: &str, wanted: &str) {
    let sentence = format!("{name} is {what}, not {wanted};");
    let (here, new) = (data.to_owned(), data.join("new"));
    let refused: Vec<StoreError> = in_time(&sentence, move || {
        let new_disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&new.join("salvaged")).unwrap());
        let read_only = RealDisk::open_read_only(&here).unwrap();
        let mut refused = Vec::from([
            existing_directories(&here).and_then(|_| begin(&here)).unwrap_err(),
            reshard(&here, &new.join("other"), 3, options(1)).unwrap_err().source,
        ]);
        if existing_directories(&here).is_ok_and(|directories| directories.len() == 1) {
            refused.push(check(&read_only).unwrap_err());
            refused.push(salvage(&read_only, &new_disk, options(1)).unwrap_err());
        }
        std::fs::remove_dir_all(new).unwrap();
        refused
    });
    for error in refused {
        assert!(matches!(error, StoreError::WrongKind { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&sentence), "{error}");
    }
}

#[test]
fn what_is_no_file_is_refused_wherever_a_file_of_the_journal_belongs() {
    for (what, make) in ODDITIES {
        let names =
            ["segment-0000000001.log", "segment-0000000009.log", "spare-0000000004.log", "LOCK"];
        for name in names {
            let directory = tempfile::tempdir().unwrap();
            begin(directory.path()).unwrap();
            let odd = directory.path().join(name);
            if odd.exists() {
                RealDisk::open(directory.path()).unwrap().remove(name).unwrap();
            }
            make(&odd);
            expect_refusals(directory.path(), name, what, "a file");
        }
        let directory = tempfile::tempdir().unwrap();
        make(&directory.path().join("shards"));
        expect_refusals(directory.path(), "shards", what, "a file");
    }
    let directory = tempfile::tempdir().unwrap();
    symlink("nowhere", directory.path().join("segment-0000000001.log")).unwrap();
    let name = "segment-0000000001.log";
    expect_refusals(directory.path(), name, "a link that leads nowhere", "a file");
}

#[test]
fn what_is_no_directory_is_refused_where_that_of_a_shard_belongs() {
    for (what, make) in ODDITIES {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        shard_directories(&data, 2).unwrap();
        std::fs::remove_dir(data.join("shard-01")).unwrap();
        make(&data.join("shard-01"));
        if what == "a directory" {
            assert_eq!(existing_directories(&data).unwrap().len(), 2);
            continue;
        }
        expect_refusals(&data, "shard-01", what, "a directory");
    }
}

#[test]
fn other_names_are_left_alone_whatever_they_are() {
    let directory = tempfile::tempdir().unwrap();
    begin(directory.path()).unwrap();
    for (what, make) in ODDITIES {
        make(&directory.path().join(format!("notes on {what}")));
    }
    let path = directory.path().to_owned();
    let report = in_time("foreign names", move || {
        begin(&path).unwrap();
        check(&RealDisk::open_read_only(&path).unwrap()).unwrap()
    });
    assert_eq!((report.foreign.len(), report.batches), (4, 1));
}

#[test]
fn links_to_files_and_directories_count_as_these() {
    let directory = tempfile::tempdir().unwrap();
    begin(directory.path()).unwrap();
    let (name, elsewhere) = ("segment-0000000001.log", directory.path().join("elsewhere"));
    RealDisk::open(directory.path()).unwrap().rename(name, "elsewhere").unwrap();
    symlink(&elsewhere, directory.path().join(name)).unwrap();
    assert_eq!(check(&RealDisk::open_read_only(directory.path()).unwrap()).unwrap().batches, 1);
    let data = directory.path().join("data");
    shard_directories(&data, 2).unwrap();
    RealDisk::open(directory.path()).unwrap().rename("data/shard-01", "far").unwrap();
    symlink(directory.path().join("far"), data.join("shard-01")).unwrap();
    assert_eq!(shard_directories(&data, 2).unwrap().len(), 2);
}

#[test]
fn what_became_a_pipe_since_it_was_listed_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    make_pipe(&directory.path().join("pipe"));
    make_pipe(&directory.path().join("LOCK"));
    let path = directory.path().to_owned();
    in_time("a pipe is opened", move || {
        for mode in [OpenMode::Read, OpenMode::ReadWrite] {
            let Err(error) = RealDisk::open(&path).unwrap().open("pipe", mode) else {
                panic!("a pipe was taken for a file")
            };
            assert_eq!(error.to_string(), "it is a named pipe, not a file");
        }
        for disk in [RealDisk::open(&path).unwrap(), RealDisk::open_read_only(&path).unwrap()] {
            assert!(matches!(disk.lock(), Err(LockError::Io(_))), "a pipe was locked");
        }
        assert!(RealDisk::open(&path.join("pipe")).is_err(), "a pipe is no data directory");
    });
}
