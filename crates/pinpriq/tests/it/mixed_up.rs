//! Data directories whose files were mixed up or lost: nothing begins anew, and nothing is changed.

use std::path::Path;

use crate::files;
use crate::peer::pinpriq;
use crate::serving::Serving;
use crate::wire::push;

/// Queues of two shards: the first two live in one, the third in the other.
const QUEUES: [&[u8]; 3] = [b"jobs", b"mail", b"{a}x"];

/// A server starts on the directory, is given a task in each queue, and stops in order.
fn serve_once(data: &Path, shards: &str) {
    let server = Serving::start(data, &["--shards", shards]);
    let mut wire = server.connect();
    for queue in QUEUES {
        wire.fenced(&push(queue, 65_535, 1, b"key", queue));
    }
    server.stop();
}

#[expect(clippy::disallowed_methods, reason = "a test mixes files up on purpose")]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
}

/// Replaces what is in one directory by a copy of what is in another.
fn copy_over(from: &Path, to: &Path) {
    for name in files::names(to) {
        files::remove(&to.join(name));
    }
    for (name, bytes) in files::contents(from) {
        files::write(&to.join(name), &bytes);
    }
}

/// Every command refuses the directory with exit code 3 and a sentence with these words, and
/// changes nothing in it.
#[track_caller]
fn refused(data: &Path, shards: &str, words: &str) {
    let before = files::everything(data);
    let doors = ["--pinpriq", "127.0.0.1:0", "--resp", "off"];
    let dir = data.to_str().unwrap();
    let new = tempfile::tempdir().unwrap();
    let new = new.path().join("new");
    let new = new.to_str().unwrap();
    let serve = [&["serve", "--data", dir, "--shards", shards], &doors[..]].concat();
    for arguments in [&serve[..], &["check", dir], &["reshard", dir, new, "--shards", "3"]] {
        let output = pinpriq(arguments).output().unwrap();
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
    assert!(files::everything(data) == before, "something was changed");
}

fn payloads_after_salvage(data: &Path) -> Vec<Vec<String>> {
    let root = tempfile::tempdir().unwrap();
    let new = root.path().join("new");
    let salvage = ["salvage", data.to_str().unwrap(), new.to_str().unwrap()];
    let output = pinpriq(&salvage).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let server = Serving::start(&new, &["--shards", "2"]);
    let mut wire = server.connect();
    let found = QUEUES.map(|queue| wire.payloads(queue));
    server.stop();
    let text = |payload: Vec<u8>| String::from_utf8(payload).unwrap();
    found.into_iter().map(|payloads| payloads.into_iter().map(text).collect()).collect()
}

#[test]
fn swapped_shards_are_refused_and_salvaged() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "2");
    let [first, second, aside] = ["shard-00", "shard-01", "aside"].map(|name| data.join(name));
    rename(&first, &aside);
    rename(&second, &first);
    rename(&aside, &second);
    refused(&data, "2", "was found in the place of shard");
    assert_eq!(payloads_after_salvage(&data), [["jobs"], ["mail"], ["{a}x"]]);
}

#[test]
fn a_copied_shard_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "2");
    copy_over(&data.join("shard-00"), &data.join("shard-01"));
    refused(&data, "2", "was found in the place of shard");
    let found = payloads_after_salvage(&data);
    assert_eq!(found.iter().filter(|payloads| payloads.is_empty()).count(), 1, "{found:?}");
}

#[test]
fn a_shard_of_another_directory_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let [data, other] = ["data", "other"].map(|name| root.path().join(name));
    serve_once(&data, "2");
    serve_once(&other, "2");
    copy_over(&other.join("shard-01"), &data.join("shard-01"));
    refused(&data, "2", "belongs to another data directory");
}

#[test]
fn an_emptied_shard_does_not_begin_anew() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "2");
    let shard = data.join("shard-01");
    for name in files::names(&shard).iter().filter(|name| *name != "LOCK") {
        files::remove(&shard.join(name));
    }
    refused(&data, "2", "the directory holds no journal, and had one");
}

#[test]
fn spares_without_a_segment_do_not_begin_anew() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "1");
    for segment in files::segments(&data) {
        files::remove(&segment);
    }
    refused(&data, "1", "the file is missing, and the file head names it");
    files::remove(&data.join("head"));
    files::write(&data.join("spare-0000000001.log"), &[0; 100]);
    refused(&data, "1", "all segments are missing");
}

#[test]
fn a_log_without_its_newest_segment_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "1");
    serve_once(&data, "1");
    let segments = files::segments(&data);
    files::remove(segments.last().unwrap());
    refused(&data, "1", "the file is missing, and the file head names it");
}

#[test]
fn an_older_copy_of_one_shard_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| root.path().join(name));
    serve_once(&data, "2");
    make_directory(&copy);
    copy_over(&data.join("shard-01"), &copy);
    serve_once(&data, "2");
    copy_over(&copy, &data.join("shard-01"));
    refused(&data, "2", "the journal is an older copy");
}

fn make_directory(path: &Path) {
    std::fs::create_dir(path).unwrap();
}

#[test]
fn a_shard_of_several_is_no_data_directory_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "2");
    let shard = data.join("shard-01");
    let doors = ["--pinpriq", "127.0.0.1:0", "--resp", "off"];
    let serve = [&["serve", "--data", shard.to_str().unwrap()], &doors[..]].concat();
    let output = pinpriq(&serve).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let check = pinpriq(&["check", shard.to_str().unwrap()]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");
}

/// One shard cannot be loaded: the files of the others stay as they were, however often it is
/// tried.
#[test]
fn damage_in_one_shard_leaves_the_files_of_the_others() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    serve_once(&data, "2");
    serve_once(&data, "2");
    let damaged = QUEUES.iter().find_map(|queue| {
        let segments = files::segments(&data.join("shard-01"));
        segments.into_iter().find_map(|file| files::position(&file, queue).map(|at| (file, at)))
    });
    let (segment, at) = damaged.expect("the second shard holds a task");
    files::flip(&segment, at);
    for _ in 0..8 {
        refused_by_serve(&data);
    }
}

#[track_caller]
fn refused_by_serve(data: &Path) {
    let before = files::everything(data);
    let doors = ["--pinpriq", "127.0.0.1:0", "--resp", "off", "--shards", "2"];
    let serve = [&["serve", "--data", data.to_str().unwrap()], &doors[..]].concat();
    let output = pinpriq(&serve).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(files::everything(data) == before, "something was changed");
}
