//! What every place has to keep, and what a directory adds to it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;

use pinpriq_archive::directory::DirectoryPlace;
use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{ErrorKind, Listing, Place, PlaceError, prune, verify};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::Dice;

use crate::server::Server;

/// What a caller relies on.
fn check_place(place: &dyn Place) {
    assert_eq!(place.list("").unwrap(), Listing::default());
    assert_eq!(place.get("a/b").unwrap(), None);
    assert!(!place.remove("a/b").unwrap());
    assert!(place.create("a/b", b"one").unwrap());
    assert!(!place.create("a/b", b"two").unwrap(), "it is never changed");
    assert_eq!(place.get("a/b").unwrap().as_deref(), Some(&b"one"[..]));
    place.settle("a/b").unwrap();
    for (name, bytes) in [("a/c/d", &b""[..]), ("a/b-1", b"x"), ("ab/c", b"xyz"), ("a/c/e/f", b"1")]
    {
        assert!(place.create(name, bytes).unwrap(), "{name}");
        assert_eq!(place.get(name).unwrap().as_deref(), Some(bytes));
    }
    let listing = |objects: &[(&str, u64)], prefixes: &[&str]| Listing {
        objects: objects.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect(),
        prefixes: prefixes.iter().map(|name| (*name).to_owned()).collect(),
        unfinished: Vec::new(),
    };
    assert_eq!(place.list("").unwrap(), listing(&[], &["a", "ab"]));
    assert_eq!(place.list("a").unwrap(), listing(&[("b", 3), ("b-1", 1)], &["c"]));
    assert_eq!(place.list("a/c").unwrap(), listing(&[("d", 0)], &["e"]));
    assert_eq!(place.list("b").unwrap(), Listing::default());
    assert!(place.remove("ab/c").unwrap());
    assert!(place.remove("a/c/e/f").unwrap());
    assert_eq!(place.list("").unwrap(), listing(&[], &["a"]));
    assert_eq!(place.list("a/c").unwrap(), listing(&[("d", 0)], &[]));
    assert!(place.create("a/c/e/f", b"22").unwrap());
    assert_eq!(place.get("a/c/e/f").unwrap().as_deref(), Some(&b"22"[..]));
}

/// Of those who create an object at the same time, one succeeds, and it is that one's.
fn check_races(place: &dyn Place) {
    for round in 0..20 {
        let name = format!("races/{round:03}");
        let made: Vec<bool> = thread::scope(|scope| {
            // Names come and go while somebody lists them.
            scope.spawn(|| place.list("races").unwrap());
            let writers: Vec<_> = (0..4_u8)
                .map(|writer| {
                    let name = &name;
                    scope.spawn(move || place.create(name, &[writer; 100]).unwrap())
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let winner = made.iter().position(|made| *made).unwrap();
        assert_eq!(made.iter().filter(|made| **made).count(), 1);
        let found = place.get(&name).unwrap().unwrap();
        assert_eq!(found, [u8::try_from(winner).unwrap(); 100]);
    }
}

#[test]
fn a_place_in_memory_keeps_objects() {
    check_place(&MemoryPlace::new());
    check_races(&MemoryPlace::new());
}

#[test]
fn a_directory_keeps_objects() {
    let root = tempfile::tempdir().unwrap();
    check_place(&DirectoryPlace::open(&root.path().join("new")).unwrap());
    check_races(&DirectoryPlace::open(&root.path().join("races")).unwrap());
    // What is not complete has a name that means nothing, and it is gone.
    let races = DirectoryPlace::open(&root.path().join("races")).unwrap();
    assert_eq!(races.list("races").unwrap().objects.len(), 20);
}

#[test]
fn a_directory_that_somebody_else_has_removed_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    let [place, other] = [(); 2].map(|()| DirectoryPlace::open(root.path()).unwrap());
    for name in ["a/b/c", "a/b/d", "a/b/c"] {
        assert!(place.create(name, b"x").unwrap());
        assert!(other.remove(name).unwrap());
        assert!(!root.path().join("a").exists());
    }
}

#[test]
fn a_segment_that_was_never_completed_is_sent_again() {
    let root = tempfile::tempdir().unwrap();
    let place = DirectoryPlace::open(root.path()).unwrap();
    let mut dice = Dice::new(2);
    let mut server = Server::new(1, 1);
    server.turns(&mut dice, 40);
    server.back_up(&place).unwrap();
    let shard = "0000000000000001/shard-00";
    let segment = place.list(shard).unwrap().prefixes.pop().unwrap();
    assert!(place.remove(&format!("{shard}/{segment}/whole")).unwrap());
    let left = [
        format!("{shard}/{segment}/.new-0123456789abcdef"),
        format!("{shard}/0000000001-9/.new-0123456789abcdef"),
    ];
    for name in &left {
        assert!(place.create(name, b"x").unwrap());
    }
    let listing = place.list(shard).unwrap();
    assert!(!listing.prefixes.contains(&segment), "{listing:?}");
    assert_eq!(listing.unfinished, ["0000000001-9", &*segment]);
    server.back_up(&place).unwrap();
    let found = verify(&place, &mut |_| {}).unwrap();
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    // What was left goes, as other things do that nothing needs.
    for hours in 0..2 {
        let now = Timestamp::from_ms(server.now().ms() + hours * 3_600_000);
        prune(&place, Span::MAX, now, false).unwrap();
    }
    assert!(left.iter().all(|name| place.get(name).unwrap().is_none()));
}

#[test]
fn a_directory_is_its_owners_alone() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("archive");
    let place = DirectoryPlace::open(&data).unwrap();
    assert!(!data.exists(), "opening makes nothing");
    place.create("a/b", b"x").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("a")), 0o700);
    assert_eq!(mode(&data.join("a/b")), 0o600);
}

#[test]
fn a_directory_whose_surroundings_are_missing_is_not_made() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("not-mounted/archive");
    let place = DirectoryPlace::open(&data).unwrap();
    let refused = place.create("a/b", b"x").unwrap_err();
    assert!(matches!(refused, PlaceError::NotThere { .. }), "{refused}");
    assert!(!root.path().join("not-mounted").exists());
    assert_eq!(place.list("marks").unwrap(), Listing::default());
    // A file is no directory.
    let file = DirectoryPlace::open(root.path()).unwrap();
    file.create("file/x", b"x").unwrap();
    let refused = DirectoryPlace::open(&root.path().join("file/x")).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
}

/// Whatever is below a place that is not mounted any more is another one.
#[test]
fn a_directory_that_was_there_and_is_gone_is_not_made_again() {
    let root = tempfile::tempdir().unwrap();
    let (mounted, hidden) = (root.path().join("archive"), root.path().join("hidden"));
    let place = DirectoryPlace::open(&mounted).unwrap();
    assert!(place.create("a/b", b"x").unwrap());
    rustix::fs::rename(&mounted, &hidden).unwrap();
    let refused = place.create("a/c", b"x").unwrap_err();
    assert!(matches!(refused, PlaceError::Away { .. }), "{refused}");
    assert!(refused.to_string().contains("is it mounted?"), "{refused}");
    for failed in [place.get("a/b").map(drop), place.list("a").map(drop), place.settle("a/b")] {
        assert!(matches!(failed, Err(PlaceError::Away { .. })), "{failed:?}");
    }
    assert!(place.remove("a/b").is_err() && !mounted.exists());
    // It is mounted again.
    rustix::fs::rename(&hidden, &mounted).unwrap();
    assert!(place.create("a/c", b"x").unwrap());
    assert_eq!(place.get("a/b").unwrap().as_deref(), Some(&b"x"[..]));
}

/// Two file systems that every Linux has.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_on_another_file_system_than_before_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    let (link, real) = (root.path().join("archive"), root.path().join("real"));
    DirectoryPlace::open(&real).unwrap().create("a/b", b"x").unwrap();
    rustix::fs::symlink(&real, &link).unwrap();
    let place = DirectoryPlace::open(&link).unwrap();
    assert!(place.get("a/b").unwrap().is_some());
    rustix::fs::unlink(&link).unwrap();
    rustix::fs::symlink("/proc", &link).unwrap();
    let refused = place.list("marks").unwrap_err();
    assert!(refused.to_string().contains("another file system"), "{refused}");
}

#[test]
fn no_name_leads_out_of_a_directory() {
    let root = tempfile::tempdir().unwrap();
    let place = DirectoryPlace::open(&root.path().join("archive")).unwrap();
    for name in ["../x", "a/../../x", "/x", "a//x", "a/./x", "a/ x", "a/\0", "a/"] {
        assert!(matches!(place.create(name, b"x"), Err(PlaceError::Bad { .. })), "{name:?}");
        assert!(matches!(place.get(name), Err(PlaceError::Bad { .. })), "{name:?}");
        assert!(matches!(place.remove(name), Err(PlaceError::Bad { .. })), "{name:?}");
    }
}

#[test]
fn a_directory_takes_backups() {
    let root = tempfile::tempdir().unwrap();
    let place = DirectoryPlace::open(&root.path().join("archive")).unwrap();
    let mut dice = Dice::new(1);
    let mut server = Server::new(1, 2);
    for _ in 0..3 {
        server.turns(&mut dice, 10);
        server.back_up(&place).unwrap();
    }
    let found = verify(&place, &mut |_| {}).unwrap();
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    assert_eq!(found.marks, 3);
}
