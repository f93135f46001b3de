//! Directories as starts and crashes leave them.

use std::sync::Arc;

use pinpriq_proto::change::Header;

use super::*;
use crate::fold::Fold;
use crate::journal::{JournalOptions, write};

/// The random number of every directory here.
const DRAWN: u64 = 7;

fn paths(journals: Vec<JournalAt>) -> Vec<PathBuf> {
    journals.into_iter().map(|journal| journal.directory).collect()
}

fn shard_directories(data: &Path, shards: usize) -> Result<Vec<PathBuf>, StoreError> {
    super::shard_directories(data, shards, DRAWN).map(paths)
}

fn existing_directories(data: &Path) -> Result<Vec<PathBuf>, StoreError> {
    existing_journals(data).map(paths)
}

fn begin(data: &Path, shards: usize) -> Result<Vec<PathBuf>, StoreError> {
    super::begin(data, shards, DRAWN).map(paths)
}

fn finish(data: &Path, shards: usize) -> Result<(), StoreError> {
    super::finish(data, shards, DRAWN)
}

/// The names of everything in a directory, and in the directories below it.
fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            names.extend(self::names(&entry.path()).iter().map(|below| format!("{name}/{below}")));
        }
        names.push(name);
    }
    names.sort();
    names
}

fn begin_journal(directory: &Path) {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(directory).unwrap());
    let options = JournalOptions { segment_bytes: 0, ..JournalOptions::default() };
    write(&Fold::new(), &Header::default(), &disk, (options, Expected::alone())).unwrap();
}

fn begin_journals(directories: &[PathBuf]) {
    for directory in directories {
        begin_journal(directory);
    }
}

fn put(directory: &Path, name: &str, text: &str) {
    let disk = RealDisk::create(directory).unwrap();
    if names(directory).iter().any(|known| known == name) {
        disk.remove(name).unwrap();
    }
    let file = disk.open(name, OpenMode::CreateNew).unwrap();
    write_all_at(&*file, 0, text.as_bytes()).unwrap();
}

#[track_caller]
fn refusal(data: &Path, shards: usize) -> String {
    let before = data.exists().then(|| names(data));
    let Err(error) = shard_directories(data, shards) else { panic!("it was accepted") };
    assert_eq!(data.exists().then(|| names(data)), before, "something was changed");
    error.to_string()
}

#[test]
fn one_shard_is_the_directory_itself() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    assert_eq!(shards_in(&data).unwrap(), None);
    assert_eq!(shard_directories(&data, 1).unwrap(), std::slice::from_ref(&data));
    assert!(!data.exists(), "making it is the journal's business");
    begin_journal(&data);
    let files = names(&data);
    assert_eq!(shards_in(&data).unwrap(), Some(1));
    assert_eq!(shard_directories(&data, 1).unwrap(), std::slice::from_ref(&data));
    assert_eq!(existing_directories(&data).unwrap(), std::slice::from_ref(&data));
    assert_eq!(names(&data), files);
    let expected = "the directory holds 1 shard, and 4 are asked for: start with --shards 1, or \
                    move it with `pinpriq reshard`";
    assert_eq!(refusal(&data, 4), expected);
}

#[test]
fn several_shards_have_a_directory_each() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let directories = shard_directories(&data, 3).unwrap();
    let expected = ["LOCK", "shard-00", "shard-01", "shard-02", "shards"];
    assert_eq!(names(&data), expected);
    assert_eq!(directories, expected[1..4].iter().map(|it| data.join(it)).collect::<Vec<_>>());
    for _ in 0..2 {
        assert_eq!(shards_in(&data).unwrap(), Some(3));
        assert_eq!(shard_directories(&data, 3).unwrap(), directories);
        assert_eq!(existing_directories(&data).unwrap(), directories);
        let expected = "the directory holds 3 shards, and 1 is asked for: start with --shards 3, \
                        or move it with `pinpriq reshard`";
        assert_eq!(refusal(&data, 1), expected);
        begin_journals(&directories);
    }
    let most = shard_directories(&root.path().join("most"), SHARDS_MAX).unwrap();
    assert!(most[SHARDS_MAX - 1].ends_with("shard-63"));
    assert_eq!(shards_in(&root.path().join("most")).unwrap(), Some(SHARDS_MAX));
}

/// Other files do no harm, such as those that a file system creates itself.
#[test]
fn foreign_files_make_no_shards() {
    let root = tempfile::tempdir().unwrap();
    RealDisk::create(&root.path().join("lost+found")).unwrap();
    put(root.path(), "notes.txt", "4");
    assert_eq!(shards_in(root.path()).unwrap(), None);
    assert_eq!(shard_directories(root.path(), 2).unwrap().len(), 2);
    assert_eq!(shards_in(root.path()).unwrap(), Some(2));
}

#[test]
fn a_start_that_was_cut_off_is_done_again() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let directories = |data: &Path| shard_directories(data, 3).unwrap();
    // Interrupted while the file was written.
    put(&data, MARKER_NEW_NAME, "3");
    assert_eq!(shards_in(&data).unwrap(), None);
    assert_eq!(shard_directories(&data, 1).unwrap(), std::slice::from_ref(&data));
    directories(&data);
    assert!(!names(&data).contains(&MARKER_NEW_NAME.to_owned()));
    // Interrupted after it, with some of the directories made, and some of the journals begun.
    for made in 0..=3 {
        let data = root.path().join(format!("data-{made}"));
        put(&data, MARKER_NAME, "3\n");
        (0..made).for_each(|shard| _ = create(&data.join(shard_name(shard))).unwrap());
        assert_eq!(shards_in(&data).unwrap(), Some(3));
        assert_eq!(directories(&data).len(), 3);
        (0..made).for_each(|shard| begin_journal(&data.join(shard_name(shard))));
        assert_eq!(directories(&data).len(), 3);
    }
}

#[test]
fn only_one_process_prepares_a_directory() {
    let root = tempfile::tempdir().unwrap();
    let guard = RealDisk::open(root.path()).unwrap().lock().unwrap();
    assert!(refusal(root.path(), 2).contains("another process"));
    drop(guard);
    shard_directories(root.path(), 2).unwrap();
}

#[test]
fn what_does_not_go_together_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    begin_journals(&shard_directories(&data, 3).unwrap());
    let remove = |directory: &Path, name: &str| {
        RealDisk::open(directory).unwrap().remove(name).unwrap();
    };
    remove(&data, MARKER_NAME);
    for shards in [1, 3] {
        let expected = "the directory holds shard-00 and no file shards: ";
        assert!(refusal(&data, shards).starts_with(expected));
    }
    assert!(shards_in(&data).is_err() && existing_directories(&data).is_err());
    for text in ["", "1\n", "65\n", "three\n", "33333333333333333333\n", "-3\n"] {
        put(&data, MARKER_NAME, text);
        let expected = format!("the file shards holds {:?} instead of", text.trim_end());
        assert!(refusal(&data, 3).starts_with(&expected), "{text}");
    }
    put(&data, MARKER_NAME, UNFINISHED);
    assert!(refusal(&data, 3).starts_with("the directory is unfinished: "));
    put(&data, MARKER_NAME, "4\n");
    assert!(refusal(&data, 4).starts_with("shard-03 is missing, and other shards hold journals"));
    assert_eq!(existing_directories(&data).unwrap().len(), 4, "they can be looked at");
    put(&data, MARKER_NAME, "3\n");
    begin_journal(&data);
    assert!(refusal(&data, 3).starts_with("the directory holds a journal of its own beside 3"));
}

#[test]
fn what_the_first_start_has_to_do_stands_in_a_file_until_it_is_done() {
    let root = tempfile::tempdir().unwrap();
    for shards in [1, 2] {
        let data = root.path().join(format!("data-{shards}"));
        assert_eq!(read_restored(&data).unwrap(), None);
        let directories = begin(&data, shards).unwrap();
        begin_journals(&directories);
        write_restored(&data, None).unwrap();
        assert_eq!(read_restored(&data).unwrap(), None);
        write_restored(&data, Some(AfterRestore::SkipSlots)).unwrap();
        finish(&data, shards).unwrap();
        for _ in 0..2 {
            assert_eq!(read_restored(&data).unwrap(), Some(AfterRestore::SkipSlots));
            assert_eq!(shard_directories(&data, shards).unwrap(), directories);
        }
        put(&data, RESTORED_NAME, "make coffee\n");
        let refused = read_restored(&data).unwrap_err().to_string();
        let expected = "the file restored holds \"make coffee\", which this server does not know";
        assert!(refused.starts_with(expected), "{refused}");
        for _ in 0..2 {
            remove_restored(&data).unwrap();
            assert_eq!(read_restored(&data).unwrap(), None);
            assert_eq!(shard_directories(&data, shards).unwrap(), directories);
        }
        assert!(names(&data).iter().all(|name| !name.starts_with("restored")), "shards {shards}");
    }
}

#[test]
fn a_new_directory_is_accepted_when_it_is_finished() {
    let root = tempfile::tempdir().unwrap();
    for shards in [1, 2] {
        let data = root.path().join(format!("data-{shards}"));
        let directories = begin(&data, shards).unwrap();
        for step in 0..2 {
            for asked in [1, 2] {
                assert!(refusal(&data, asked).contains("unfinished"), "step {step}");
            }
            begin_journals(&directories);
        }
        assert!(matches!(begin(&data, shards), Err(StoreError::NotEmpty { .. })));
        finish(&data, shards).unwrap();
        assert_eq!(shard_directories(&data, shards).unwrap(), directories);
    }
    let of_one = names(&root.path().join("data-1"));
    assert_eq!(of_one, ["LOCK", "head", "segment-0000000001.log"]);
}
