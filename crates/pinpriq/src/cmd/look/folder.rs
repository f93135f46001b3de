//! The directory of a look: made for it alone, below that for temporary files, and removed at its
//! end, also if that comes by a signal while there is no server yet.

use std::fs::{DirBuilder, remove_dir_all};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use super::super::signals::Heeding;
use crate::exit::Failure;
use crate::logging::tell;

/// How often the directory is removed anew if something was written into it meanwhile.
const TRIES: usize = 20;

/// A directory that its owner alone can read. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the directory.
    pub(super) fn new() -> Result<Self, Failure> {
        let drawn = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("pinpriq-look-{drawn:016x}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Failure::on_the_way(format!(
                "cannot make {}: {error}; TMPDIR names another directory to make it in",
                path.display()
            ))
        })?;
        Ok(Self { path })
    }

    /// What removes it where this is not dropped, since the process aborts.
    pub(super) fn remover(&self) -> Box<dyn Fn() + Send + Sync> {
        let path = self.path.clone();
        Box::new(move || remove_or_tell(&path))
    }

    /// Where the data directory is to be, which is not there yet.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove_or_tell(&self.path);
    }
}

fn remove_or_tell(path: &Path) {
    if let Err(error) = remove(path) {
        let path = path.display();
        tell(format_args!("{path} cannot be removed ({error}): remove it by hand"));
    }
}

/// Removes a directory with all that is in it. It may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    let mut tried = 1;
    loop {
        match remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) if tried < TRIES => tried += 1,
            removed => return removed,
        }
    }
}

/// Removes a directory when a signal comes, until what this returns is dropped. Then the signal
/// ends the process as it would without this.
pub(super) fn watch_over(folder: &Folder) -> Result<Heeding, Failure> {
    let path = folder.path.clone();
    Heeding::begin(&[SIGHUP, SIGINT, SIGTERM], move |signal| {
        // Nobody is left to tell if it stays.
        let _ = remove(&path);
        let _ = emulate_default_handler(signal);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_directory_is_for_its_owner_and_goes_with_all_that_is_in_it() {
        let folder = Folder::new().unwrap();
        let path = folder.path.clone();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let made = Command::new("mkdir").arg("-p").arg(folder.data().join("shard-00")).status();
        assert!(made.unwrap().success());
        drop(folder);
        assert!(!path.exists());
        assert!(remove(&path).is_ok(), "it is gone already");
    }

    #[test]
    fn it_can_be_removed_by_a_process_that_aborts() {
        let folder = Folder::new().unwrap();
        let remover = folder.remover();
        let made = Command::new("mkdir").arg(folder.data()).status();
        assert!(made.unwrap().success());
        remover();
        assert!(!folder.path.exists());
    }
}
