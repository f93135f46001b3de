//! A data directory of several shards that the server of the version before wrote: it is read and
//! goes on as one of this version.
//!
//! `testdata/version-2` was written by the server of version 2, in two lives: the first was stopped
//! in order, the second was killed. One journal alone is tested in `pinpriq-store`.

use std::path::{Path, PathBuf};

use crate::files;
use crate::peer::pinpriq;
use crate::serving::Serving;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/version-2")
}

#[expect(clippy::disallowed_methods, reason = "a test copies a directory")]
fn copied(to: &Path) {
    for shard in ["shard-00", "shard-01"] {
        std::fs::create_dir_all(to.join(shard)).unwrap();
        for (name, bytes) in files::contents(&testdata().join(shard)) {
            files::write(&to.join(shard).join(name), &bytes);
        }
    }
    files::write(&to.join("shards"), &files::read(&testdata().join("shards")));
}

/// The version in the header of each segment, oldest first.
fn versions(data: &Path) -> Vec<u8> {
    let segments = ["shard-00", "shard-01"].map(|shard| files::segments(&data.join(shard)));
    segments.iter().flatten().map(|segment| files::read(segment)[8]).collect()
}

#[test]
fn shards_of_version_2_hold_what_was_put_and_go_on_as_this_version() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    copied(&data);
    assert_eq!(versions(&data), [2, 2, 2, 2]);
    let check = pinpriq(&["check", data.to_str().unwrap()]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");

    // Which directory this is, is written down at the start; from then on it is compared.
    for _ in 0..2 {
        Serving::start(&data, &["--shards", "2"]).stop();
        let marker = String::from_utf8(files::read(&data.join("shards"))).unwrap();
        assert!(marker.starts_with("2\ndirectory "), "{marker:?}");
    }
    assert!(versions(&data).contains(&4), "{:?}", versions(&data));
    let server = Serving::start(&data, &["--shards", "2"]);
    let mut wire = server.connect();
    let mut payloads = |queue: &[u8]| -> Vec<String> {
        let payloads = wire.payloads(queue).into_iter();
        payloads.map(|payload| String::from_utf8(payload).unwrap()).collect()
    };
    assert_eq!(payloads(b"jobs"), ["first"]);
    assert_eq!(payloads(b"jobs"), ["second"]);
    assert_eq!(payloads(b"mail"), ["third"]);
    assert_eq!(payloads(b"{a}x"), ["fifth"]);
    assert_eq!(payloads(b"{a}x"), ["fourth"]);
    server.stop();
}
