//! Files in directories of their own.

use std::fs::{DirBuilder, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{
    MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, symlink,
};
use std::path::Path;
use std::thread;

use super::{IfMissing, StoreError, edit, load};
use crate::users::edit::EditError;
use crate::users::file::FILE_BYTES_MAX;
use crate::users::name::Name;

fn write(path: &Path, text: &str, mode: u32) {
    let mut options = File::options();
    let mut file = options.write(true).create_new(true).mode(mode).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_permissions(Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn add(path: &Path, name: &str) -> Result<(), StoreError> {
    let name: Name = name.parse().unwrap();
    edit(path, IfMissing::Make, |editor| editor.add(&name, None, &[]))
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_made_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    assert!(matches!(load(&path), Err(StoreError::Missing(_))));
    let refused = edit(&path, IfMissing::Refuse, |_| Ok(()));
    assert!(matches!(refused, Err(StoreError::Missing(_))));
    add(&path, "a").unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!((mode(&path), loaded.users.len(), loaded.warning), (0o600, 1, None));
    assert_eq!(entries(folder.path()), ["users.toml"], "nothing is left behind");
}

#[test]
fn a_mode_that_lets_others_in_is_warned_of_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    for (before, after) in [(0o644, 0o600), (0o660, 0o600), (0o400, 0o400), (0o600, 0o600)] {
        let path = folder.path().join(format!("{before:o}"));
        write(&path, "[users.a]\n", before);
        let warning = load(&path).unwrap().warning.map(|it| it.to_string());
        let expected = (before != after).then(|| format!("(mode {before:04o})"));
        match (&warning, &expected) {
            (Some(warning), Some(words)) => assert!(warning.contains(words), "{warning}"),
            _ => assert_eq!(warning, expected),
        }
        add(&path, "b").unwrap();
        assert_eq!(mode(&path), after);
        assert_eq!(load(&path).unwrap().users.len(), 2);
    }
}

#[test]
fn a_file_behind_a_link_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("real/users.toml"), folder.path().join("link"));
    DirBuilder::new().create(folder.path().join("real")).unwrap();
    write(&path, "[users.a]\n", 0o600);
    symlink("real/users.toml", &link).unwrap();
    add(&link, "b").unwrap();
    assert!(link.is_symlink());
    assert_eq!(load(&path).unwrap().users.len(), 2);
}

#[test]
fn a_change_that_fails_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    write(&path, "[users.a] # first\n", 0o640);
    let refused = add(&path, "a");
    assert!(matches!(refused, Err(StoreError::Refused(EditError::UserThere(_)))));
    assert_eq!(mode(&path), 0o640);
    let broken = folder.path().join("broken.toml");
    write(&broken, "[users.a\n", 0o600);
    for error in [load(&broken).unwrap_err(), add(&broken, "b").unwrap_err()] {
        assert!(matches!(error, StoreError::Unusable(..)), "{error}");
        assert!(error.to_string().contains("broken.toml cannot be used: line 1: "), "{error}");
    }
}

#[test]
fn what_a_crash_left_behind_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    write(&folder.path().join(".users.toml.new"), "half", 0o644);
    add(&path, "a").unwrap();
    assert_eq!((mode(&path), entries(folder.path()).len()), (0o600, 1));
}

#[test]
fn what_is_no_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), Path::new("/dev/null")] {
        let error = load(path).unwrap_err();
        assert!(matches!(error, StoreError::Unreadable(..)), "{error}");
    }
    let path = folder.path().join("large.toml");
    write(&path, &"#".repeat(FILE_BYTES_MAX + 9), 0o600);
    assert!(load(&path).unwrap_err().to_string().contains("more than 4194304 bytes"));
}

#[test]
fn no_change_is_lost_when_several_are_made_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    thread::scope(|scope| {
        for worker in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for turn in 0..10 {
                    add(path, &format!("u{worker}.{turn}")).unwrap();
                }
            });
        }
    });
    assert_eq!(load(&path).unwrap().users.len(), 40);
    assert_eq!(entries(folder.path()), ["users.toml"]);
}

#[test]
fn root_makes_a_file_for_whom_its_folder_belongs_to() {
    let folder = tempfile::tempdir().unwrap();
    let owner = |path: &Path| {
        let about = path.metadata().unwrap();
        (about.uid(), about.gid())
    };
    if owner(folder.path()).0 != 0 {
        // Only root can give a folder to somebody.
        return;
    }
    let path = folder.path().join("users.toml");
    add(&path, "a").unwrap();
    assert_eq!(owner(&path), (0, 0), "the folder is that of root");
    let service = tempfile::tempdir().unwrap();
    chown(service.path(), Some(12_345), Some(54_321)).unwrap();
    let path = service.path().join("users.toml");
    for name in ["a", "b"] {
        add(&path, name).unwrap();
        assert_eq!((owner(&path), mode(&path)), ((12_345, 54_321), 0o600), "after {name}");
    }
    assert_eq!(super::owner(&path).unwrap(), 12_345);
}
