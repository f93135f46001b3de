//! The engines of clusters that are installed on this machine: etcd and PostgreSQL. Starts none.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether what needs an engine fails if that is not installed.
#[must_use]
pub fn are_required() -> bool {
    std::env::var("PINPRIQ_ENGINES").is_ok_and(|value| value == "required")
}

/// Says that a test does not run since an engine is not installed.
///
/// # Panics
/// If it must be installed.
#[expect(clippy::print_stdout, reason = "it is the output of a test")]
pub fn skip_without(engine: &str) {
    assert!(!are_required(), "{engine} is not installed");
    println!("NOT RUN: {engine} is not installed");
}

/// Whether etcd is here.
///
/// # Panics
/// If it must be and is not.
#[must_use]
pub fn has_etcd() -> bool {
    let mut command = Command::new("etcd");
    let version = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_here = version.is_ok_and(|status| status.success());
    if !is_here {
        skip_without("etcd");
    }
    is_here
}

/// The programs of the newest PostgreSQL. As root they run as its user, since they refuse to run as
/// root.
#[derive(Clone, Debug)]
pub struct PostgresPrograms {
    directory: PathBuf,
    is_root: bool,
}

impl PostgresPrograms {
    /// Finds them.
    #[must_use]
    pub fn find() -> Option<Self> {
        let versions = Path::new("/usr/lib/postgresql").read_dir().into_iter().flatten();
        let mut found: Vec<PathBuf> =
            versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect();
        found.sort();
        let path = std::env::var_os("PATH").unwrap_or_default();
        found.splice(0..0, std::env::split_paths(&path));
        let has_all = |at: &PathBuf| ["initdb", "postgres"].iter().all(|it| at.join(it).exists());
        let directory = found.into_iter().rfind(has_all)?;
        let is_root = Path::new("/proc/self").metadata().is_ok_and(|it| it.uid() == 0);
        Some(Self { directory, is_root })
    }

    /// Finds them for a test.
    ///
    /// # Panics
    /// If they must be installed and are not.
    #[must_use]
    pub fn find_or_skip() -> Option<Self> {
        let found = Self::find();
        if found.is_none() {
            skip_without("PostgreSQL");
        }
        found
    }

    /// What runs one of them.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let program = self.directory.join(program);
        if !self.is_root {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        command
    }

    /// Makes their user own a file, or a directory and everything in it. Returns whether that is
    /// another user than that of this process.
    pub fn give(&self, path: &Path) -> io::Result<bool> {
        if self.is_root {
            let done =
                Command::new("chown").args(["-R", "postgres:postgres"]).arg(path).status()?;
            if !done.success() {
                return Err(io::Error::other("chown failed"));
            }
        }
        Ok(self.is_root)
    }
}
