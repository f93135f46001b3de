//! Data directories of several shards: made, looked at, salvaged and joined again.

use std::path::{Path, PathBuf};

use pinpriq_store::journal::FORMAT_VERSION;

use crate::directory::Mounted;
use crate::files;
use crate::peer::pinpriq;
use crate::serving::Serving;
use crate::wire::push;

const QUEUES: [&[u8]; 6] = [b"jobs", b"mail", b"{a}x", b"emails:high", b"events", b"sales"];

/// A directory of one shard with a task in each of the queues.
fn of_one_shard(data: &Path) {
    let server = Serving::start(data, &[]);
    let mut wire = server.connect();
    for queue in QUEUES {
        wire.fenced(&push(queue, 65_535, 1, b"key", queue));
    }
    server.stop();
}

/// Runs a command on these directories. Answers its exit code, and what it printed and told.
fn run(command: &str, directories: &[&Path], flags: &[&str]) -> (i32, String, String) {
    let output = pinpriq(&[command]).args(directories).args(flags).output().unwrap();
    let (told, printed) = (String::from_utf8(output.stderr), String::from_utf8(output.stdout));
    (output.status.code().unwrap(), printed.unwrap(), told.unwrap())
}

/// The segment of a shard that holds these bytes, and where.
fn segment_with(data: &Path, word: &[u8]) -> (PathBuf, usize) {
    for shard in files::names(data).iter().filter(|name| name.starts_with("shard-")) {
        for segment in files::segments(&data.join(shard)) {
            if let Some(at) = files::position(&segment, word) {
                return (segment, at);
            }
        }
    }
    panic!("no shard holds {word:?}");
}

#[test]
fn a_directory_is_split_checked_salvaged_and_joined() {
    let root = tempfile::tempdir().unwrap();
    let [one, three, salvaged, again] =
        ["one", "three", "salvaged", "again"].map(|name| root.path().join(name));
    of_one_shard(&one);
    let before = files::contents(&one);
    let (code, printed, told) = run("reshard", &[&one, &three], &["--shards", "3"]);
    assert_eq!((code, told.as_str()), (0, ""));
    let expected = "shard-00: 4 tasks, 4 queues\n\
                    shard-01: 1 tasks, 1 queues\n\
                    shard-02: 1 tasks, 1 queues\n";
    assert_eq!(printed, expected);
    assert!(files::contents(&one) == before, "the old directory was changed");
    assert_eq!(files::names(&three), ["shard-00", "shard-01", "shard-02", "shards"]);
    assert!(files::read(&three.join("shards")).starts_with(b"3\ndirectory "));

    let (code, printed, _) = run("check", &[&three], &[]);
    assert_eq!(code, 0);
    assert!(printed.starts_with("shard-00:\nformat 4, "), "{printed}");
    assert!(printed.contains("no damage\n\nshard-01:\nformat 4, "), "{printed}");
    assert_eq!(printed.matches("queue \"").count(), QUEUES.len(), "{printed}");
    let (code, printed, _) = run("check", &[&three], &["--json"]);
    assert_eq!(code, 0);
    let start = "{\"damaged\":false,\"shards\":[{\"shard\":\"shard-00\",\"damaged\":false,";
    assert!(printed.starts_with(start), "{printed}");
    assert!(printed.contains("},{\"shard\":\"shard-02\",\"damaged\":false,"), "{printed}");
    let (code, printed, _) = run("check", &[&three.join("shard-01")], &[]);
    assert_eq!(code, 0);
    assert!(printed.starts_with("format 4, ") && printed.contains("1 tasks, 1 ready"), "{printed}");

    let (code, printed, told) = run("salvage", &[&three, &salvaged], &[]);
    assert_eq!((code, told.as_str()), (0, ""));
    let line = "tasks and the settings of 0 queues, from ";
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines[0], lines[2], lines[3]), ("shard-00:", "", "shard-01:"));
    assert!(lines[1].starts_with(&format!("saved 4 {line}")), "{printed}");
    assert_eq!(files::names(&salvaged), files::names(&three));

    let (code, printed, _) = run("reshard", &[&salvaged, &again], &["--shards", "1"]);
    assert_eq!((code, printed.as_str()), (0, "6 tasks, 6 queues\n"));
    let is_journal =
        |name: &String| name.starts_with("segment-") || name == "LOCK" || name == "head";
    assert!(files::names(&again).iter().all(is_journal), "{:?}", files::names(&again));
    let server = Serving::start(&again, &[]);
    let mut wire = server.connect();
    for queue in QUEUES {
        assert_eq!(wire.payloads(queue), [queue]);
    }
    server.stop();
}

#[test]
fn damage_to_one_shard_is_told_with_its_name() {
    let root = tempfile::tempdir().unwrap();
    let [one, three, new] = ["one", "three", "new"].map(|name| root.path().join(name));
    of_one_shard(&one);
    assert_eq!(run("reshard", &[&one, &three], &["--shards", "3"]).0, 0);
    let (segment, at) = segment_with(&three, b"emails:high");
    files::flip(&segment, at);
    let shard = segment.parent().unwrap();
    let name = shard.file_name().unwrap().to_str().unwrap();
    let (code, printed, _) = run("check", &[&three], &[]);
    assert_eq!(code, 3);
    let (_, of_shard) = printed.split_once(&format!("{name}:\n")).unwrap();
    let of_shard = of_shard.split("\n\n").next().unwrap();
    assert!(of_shard.contains("damage: segment-0000000001.log") && of_shard.contains("DAMAGED"));
    assert_eq!(printed.matches("no damage").count(), 2, "{printed}");
    let (code, printed, _) = run("check", &[&three], &["--json"]);
    assert_eq!((code, printed.starts_with("{\"damaged\":true,")), (3, true), "{printed}");

    let (code, printed, told) = run("reshard", &[&three, &new], &["--shards", "2"]);
    assert_eq!((code, printed.as_str()), (3, ""));
    assert!(told.contains(&format!("{name}: segment-0000000001.log is damaged at")), "{told}");
    assert!(told.contains("`pinpriq salvage`") && !new.exists(), "{told}");
    assert_eq!(run("salvage", &[&three, &new], &[]).0, 0);
    assert_eq!(run("check", &[&new], &[]).0, 0);

    // A shard that is gone, and then the file that counts them.
    for file in files::names(shard) {
        files::remove(&shard.join(file));
    }
    let (code, printed, _) = run("check", &[&three], &[]);
    assert_eq!(code, 0);
    let line = format!("{name}:\nno journal yet: the next start begins it\n");
    assert!(printed.contains(&line), "{printed}");
    files::write(&three.join("shards"), b"4\n");
    let (code, printed, told) = run("check", &[&three], &[]);
    assert_eq!(code, 3);
    assert!(printed.contains("shard-03:\nnot read: ") && told.contains("shard-03"), "{told}");
    let (code, printed, _) = run("check", &[&three], &["--json"]);
    assert_eq!((code, printed.contains("{\"shard\":\"shard-03\",\"error\":\"")), (3, true));
    files::remove(&three.join("shards"));
    for command in [run("check", &[&three], &[]), run("salvage", &[&three, &new], &[])] {
        assert_eq!((command.0, command.1.as_str()), (3, ""));
        assert!(command.2.contains("holds shard-00 and no file shards"), "{}", command.2);
    }
}

#[test]
fn salvage_that_refuses_one_of_the_shards_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let [one, three] = ["one", "three"].map(|name| root.path().join(name));
    of_one_shard(&one);
    assert_eq!(run("reshard", &[&one, &three], &["--shards", "3"]).0, 0);
    let segment = files::segments(&three.join("shard-02")).pop().unwrap();
    let mut bytes = files::read(&segment);
    // Both copies of the header say that the format is newer.
    for copy in [0, 4_096] {
        bytes[copy + 8] = u8::try_from(FORMAT_VERSION + 1).unwrap();
    }
    files::write(&segment, &bytes);
    let empty = tempfile::tempdir().unwrap();
    for new in [root.path().join("new").as_path(), empty.path()] {
        let existed = new.exists();
        let (code, printed, told) = run("salvage", &[&three, new], &[]);
        assert_eq!((code, printed.as_str()), (3, ""));
        assert!(told.contains("has format version"), "{told}");
        assert_eq!(new.exists(), existed);
        assert!(!existed || files::names(new).is_empty(), "{:?}", files::names(new));
    }
}

#[test]
fn reshard_refuses_what_it_cannot_move() {
    let root = tempfile::tempdir().unwrap();
    let [one, new] = ["one", "new"].map(|name| root.path().join(name));
    let reshard = |from: &Path, to: &Path| run("reshard", &[from, to], &["--shards", "2"]);
    let server = Serving::start(&one, &[]);
    let (code, _, told) = reshard(&one, &new);
    assert!(code == 3 && told.contains("another process uses this directory"), "{told}");
    server.stop();
    let (code, _, told) = reshard(&one, &one);
    assert!(code == 2 && told.contains("give a new, empty directory"), "{told}");
    let (code, _, told) = reshard(&new, &one);
    assert!(code == 3 && told.contains("cannot be opened"), "{told}");
    let empty = tempfile::tempdir().unwrap();
    let (code, _, told) = reshard(empty.path(), &new);
    assert!(code == 3 && told.contains("there is no journal here"), "{told}");
    assert!(!new.exists());
    let flags = ["--shards", "65"];
    assert_eq!(run("reshard", &[&one, &new], &flags).0, 2);
}

#[test]
fn nothing_accepts_what_was_not_written_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let [one, new] = ["one", "new"].map(|name| root.path().join(name));
    of_one_shard(&one);
    let full = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::new(full.path(), "size=48k") else { return };
    for shards in ["1", "2"] {
        let to = full.path().join(shards);
        let (code, _, told) = run("reshard", &[&one, &to], &["--shards", shards]);
        assert!(code == 1 && told.contains("no room on the disk"), "{code}: {told}");
        let (code, _, told) = run("check", &[&to], &[]);
        assert!(code == 3 && told.contains("the directory is unfinished"), "{told}");
        let (code, _, told) = run("reshard", &[&to, &new], &["--shards", "1"]);
        assert!(code == 3 && told.contains("the directory is unfinished"), "{told}");
    }
}
