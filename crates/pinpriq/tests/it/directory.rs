//! The data directory: in use, not writable, full, damaged, of another version, cut short.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use pinpriq_store::journal::FORMAT_VERSION;

use crate::files;
use crate::peer::pinpriq;
use crate::serving::Serving;
use crate::wire::push;

/// Where the batches of a segment begin.
const SEGMENT_START: usize = 8_192;

/// Starts a server that must refuse its directory, and returns what it says about it.
#[track_caller]
fn refusal(data: &Path) -> String {
    let arguments = ["serve", "--pinpriq", "127.0.0.1:0", "--resp", "off", "--log-level", "error"];
    let output = pinpriq(&arguments).arg("--data").arg(data).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    assert!(complaint.contains(&format!("the data directory {}", data.display())), "{complaint}");
    complaint
}

/// Fills a directory with some batches and leaves it as a crash would.
fn crashed(packets: &[&str]) -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &[]);
    let mut wire = server.connect();
    for packet in packets {
        wire.fenced(&push(b"q", 65_535, 1, packet.as_bytes(), packet.as_bytes()));
    }
    server.kill();
    data
}

/// A file system of its own, unmounted when it goes out of scope.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it, or says why that is not possible here.
    pub(crate) fn new(dir: &Path, options: &str) -> Option<Self> {
        let arguments = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let output = Command::new("mount").args(arguments).arg(dir).output();
        match output {
            Ok(output) if output.status.success() => Some(Self(dir.to_owned())),
            failed => {
                println!("not tested, since nothing can be mounted here: {failed:?}");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_directory_in_use_is_refused_by_the_name_of_its_lock() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &[]);
    let mut wire = server.connect();
    wire.fenced(&push(b"q", 65_535, 1, b"k", b"p"));
    for _ in 0..3 {
        let complaint = refusal(data.path());
        assert!(complaint.contains("LOCK"), "{complaint}");
    }
    assert_eq!(wire.payloads(b"q"), [b"p"]);
    server.kill();
    // The lock goes with the process, however it ends.
    Serving::start(data.path(), &[]).stop();
}

#[test]
fn a_path_that_cannot_be_a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    files::write(&file, b"not a directory");
    refusal(&file);
    refusal(&file.join("below"));
    refusal(Path::new("/proc/pinpriq"));
    assert_eq!(files::read(&file), b"not a directory");
}

#[test]
fn a_named_pipe_in_place_of_a_file_is_refused_at_once() {
    for name in ["LOCK", "segment-0000000001.log", "spare-0000000001.log", "shards"] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        Serving::start(&data, &[]).stop();
        let pipe = data.join(name);
        let removed = Command::new("rm").arg("-f").arg(&pipe).status().unwrap();
        assert!(removed.success() && Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let new = dir.path().join("new");
        let (data, new) = (data.to_str().unwrap(), new.to_str().unwrap());
        for arguments in [
            vec!["serve", "--pinpriq", "127.0.0.1:0", "--resp", "off", "--data", data],
            vec!["check", data],
            vec!["salvage", data, new],
            vec!["reshard", data, new, "--shards", "2"],
        ] {
            let mut child = pinpriq(&arguments).stderr(Stdio::piped()).spawn().unwrap();
            let mut stderr = child.stderr.take().unwrap();
            let (sender, receiver) = sync_channel(1);
            thread::spawn(move || {
                let mut text = String::new();
                stderr.read_to_string(&mut text).unwrap();
                sender.send(text)
            });
            let complaint = receiver.recv_timeout(Duration::from_mins(1));
            if complaint.is_err() {
                child.kill().unwrap();
            }
            let (complaint, status) = (complaint.unwrap(), child.wait().unwrap());
            assert_eq!(status.code(), Some(3), "{arguments:?}: {complaint}");
            let sentence = format!("{name} is a named pipe, not a file");
            assert!(complaint.contains(&sentence), "{arguments:?}: {complaint}");
        }
        assert!(!Path::new(new).exists(), "{name}: a command that was refused left {new}");
    }
}

#[test]
fn a_directory_that_is_read_only_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(dir.path(), "size=1m,ro") else { return };
    refusal(dir.path());
    drop(mounted);
}

#[test]
fn a_disk_without_room_for_a_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(dir.path(), "size=32k") else { return };
    let complaint = refusal(&dir.path().join("data"));
    assert!(complaint.contains("no room on the disk"), "{complaint}");
    drop(mounted);
}

#[test]
fn a_write_that_fails_ends_the_service_and_loses_nothing_confirmed() {
    let data = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_pinpriq"), "serve", "--log-format", "json"])
        .args(["--pinpriq", "127.0.0.1:0", "--resp", "off", "--http", "off", "--data"])
        .arg(data.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let server = Serving::listening(Serving::of_command(command));
    let mut wire = server.connect();
    let mut confirmed = 0_u32;
    loop {
        let push = push(b"q", 65_535, 1, b"k", &confirmed.to_be_bytes().repeat(10_000));
        if wire.try_fenced(&push).is_err() {
            break;
        }
        confirmed += 1;
        assert!(confirmed < 1_000, "40 MB in a file of 800 kB at most");
    }
    server.logged("the store has failed");
    // A client that comes now is closed too, and gets no answer that is not true.
    assert_eq!(server.connect().ended(), 0);
    assert_eq!(server.signal("-TERM"), Some(1));
    let server = Serving::start(data.path(), &[]);
    let payloads = server.connect().payloads(b"q");
    let numbers: Vec<u32> = payloads
        .iter()
        .map(|payload| u32::from_be_bytes(payload[..4].try_into().unwrap()))
        .rev()
        .collect();
    // The last one may have been written and not confirmed.
    assert!(numbers.len() as u64 - u64::from(confirmed) <= 1, "{confirmed}, {numbers:?}");
    assert!(numbers.iter().copied().eq(0..u32::try_from(numbers.len()).unwrap()), "{numbers:?}");
    server.stop();
}

#[test]
fn a_disk_that_is_full_holds_pushes_up_and_loses_nothing() {
    const PACKETS: u64 = 4_000;
    let dir = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(dir.path(), "size=140m") else { return };
    let data = dir.path().join("data");
    let server = Serving::start(&data, &[]).telling();
    let pushed = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut wire = server.connect();
            for number in 0..PACKETS {
                let key = number.to_be_bytes();
                wire.fenced(&push(b"q", 65_535, 1, &key, &vec![7; 60_000]));
                pushed.store(number + 1, Ordering::Relaxed);
            }
        });
        let mut wire = server.connect();
        let mut popped = HashSet::new();
        let mut halts = 0;
        while popped.len() as u64 != PACKETS {
            // Makes room only when the pushes seem to have come to a halt.
            let (mut before, mut still) = (pushed.load(Ordering::Relaxed), 0);
            while still < 500 && before < PACKETS {
                wire.fenced(&[]);
                let now = pushed.load(Ordering::Relaxed);
                still = if now == before { still + 1 } else { 0 };
                before = now;
            }
            halts += 1;
            for _ in 0..500 {
                for (key, _) in wire.pop(b"q") {
                    assert!(popped.insert(key), "a packet came twice");
                }
            }
        }
        println!("240 MB through a disk of 140 MB with {halts} halts");
    });
    server.stop();
    drop(mounted);
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let data = crashed(&["packet"]);
    let segment = files::segments(data.path()).pop().unwrap();
    let mut bytes = files::read(&segment);
    let newer = FORMAT_VERSION + 1;
    for copy in [0, SEGMENT_START / 2] {
        bytes[copy + 8] = u8::try_from(newer).unwrap();
    }
    files::write(&segment, &bytes);
    let before = files::contents(data.path());
    let complaint = refusal(data.path());
    let name = segment.file_name().unwrap().to_str().unwrap();
    assert!(complaint.contains(&format!("{name} has format version {newer}")), "{complaint}");
    assert!(files::contents(data.path()) == before);
}

#[test]
fn damage_in_the_middle_is_refused_with_file_and_offset_and_left_alone() {
    let data = crashed(&["first", "second", "third", "fourth"]);
    let segment = files::segments(data.path()).pop().unwrap();
    let name = segment.file_name().unwrap().to_str().unwrap();
    let at = files::position(&segment, b"second").unwrap();
    files::flip(&segment, at);
    let before = files::contents(data.path());
    let complaint = refusal(data.path());
    let (_, rest) = complaint.split_once(&format!("{name} is damaged at offset ")).unwrap();
    let offset: usize = rest.split(':').next().unwrap().parse().unwrap();
    assert!((SEGMENT_START..at).contains(&offset), "{offset} and not before {at}: {complaint}");
    assert!(files::contents(data.path()) == before);

    let report = pinpriq(&["check"]).arg(data.path()).output().unwrap();
    assert_eq!(report.status.code(), Some(3));
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains(&format!("damage: {name} at offset {offset}")), "{report}");
    assert!(files::contents(data.path()) == before);

    let salvaged = tempfile::tempdir().unwrap();
    let salvage = pinpriq(&["salvage"]).args([data.path(), salvaged.path()]).output().unwrap();
    println!("{}", String::from_utf8(salvage.stdout).unwrap());
    assert!(files::contents(data.path()) == before);
    let server = Serving::start(salvaged.path(), &[]);
    let mut wire = server.connect();
    for packet in ["fourth", "third", "first"] {
        assert_eq!(wire.payloads(b"q"), [packet.as_bytes()]);
    }
    assert_eq!(wire.pop(b"q"), []);
    server.stop();

    files::flip(&segment, at);
    let server = Serving::start(data.path(), &[]);
    assert_eq!(server.connect().payloads(b"q"), [b"fourth"]);
    server.stop();
}

#[test]
fn foreign_files_are_left_alone() {
    let data = crashed(&["packet"]);
    let foreign = ["notes.txt", "segment-1.log", "segment-0000000001.log.bak", "spare-1.log"];
    for name in foreign {
        files::write(&data.path().join(name), name.as_bytes());
    }
    for _ in 0..3 {
        let server = Serving::start(data.path(), &[]);
        server.stop();
    }
    for name in foreign {
        assert_eq!(files::read(&data.path().join(name)), name.as_bytes());
    }
    let server = Serving::start(data.path(), &[]);
    assert_eq!(server.connect().payloads(b"q"), [b"packet"]);
    server.stop();
}

#[test]
fn a_torn_tail_is_cut_off_and_everything_before_is_there() {
    for torn in [1, 7, 60, 100] {
        let data = crashed(&["first", "second", "last"]);
        let segment = files::segments(data.path()).pop().unwrap();
        // The segment is longer than what is in it: its end is where the last batch ends.
        let bytes = files::read(&segment);
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        files::write(&segment, &bytes[..end - torn]);
        let server = Serving::start(data.path(), &[]);
        let mut wire = server.connect();
        assert_eq!(wire.payloads(b"q"), [b"second"], "{torn} bytes torn off");
        assert_eq!(wire.payloads(b"q"), [b"first"]);
        server.kill();
        // Once cut off it stays cut off.
        let server = Serving::start(data.path(), &[]);
        assert_eq!(server.connect().pop(b"q"), []);
        server.stop();
    }
}
