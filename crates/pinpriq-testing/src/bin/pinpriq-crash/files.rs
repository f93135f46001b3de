//! The files of the servers under test: copied, inspected and damaged.
//!
//! Only directories that the harness has created itself are changed.
#![expect(clippy::disallowed_methods, reason = "there is no server here whose disk it would be")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::fault::Fallible;

/// Creates a directory that is removed with this value, unless it is kept.
pub(crate) fn scratch(below: &Path) -> Fallible<tempfile::TempDir> {
    fs::create_dir_all(below)?;
    Ok(tempfile::Builder::new().prefix("pinpriq-crash-").tempdir_in(below)?)
}

/// Creates a directory, unless it exists.
pub(crate) fn make_directory(path: &Path) -> Fallible<()> {
    Ok(fs::create_dir_all(path)?)
}

/// The files of a directory by name, without those in its subdirectories.
pub(crate) fn list(directory: &Path) -> Fallible<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The files of the journal, oldest first.
pub(crate) fn segments(directory: &Path) -> Fallible<Vec<PathBuf>> {
    let is_segment = |path: &PathBuf| name_of(path).starts_with("segment-");
    Ok(list(directory)?.into_iter().filter(is_segment).collect())
}

/// The last part of a path.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Makes a directory a copy of another, including holes in files.
pub(crate) fn copy_directory(from: &Path, to: &Path) -> Fallible<()> {
    remove_directory(to)?;
    fs::create_dir_all(to)?;
    for path in list(from)? {
        copy(&path, &to.join(name_of(&path)))?;
    }
    Ok(())
}

/// Copies a file.
pub(crate) fn copy(from: &Path, to: &Path) -> Fallible<()> {
    fs::copy(from, to)?;
    Ok(())
}

/// Removes a directory and its contents, if it exists.
pub(crate) fn remove_directory(path: &Path) -> Fallible<()> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Fallible<()> {
    Ok(fs::remove_file(path)?)
}

/// Exchanges two files.
pub(crate) fn swap(one: &Path, other: &Path) -> Fallible<()> {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside)?;
    fs::rename(other, one)?;
    Ok(fs::rename(&aside, other)?)
}

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Fallible<Vec<u8>> {
    Ok(fs::read(path)?)
}

/// Creates a file of these bytes.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Fallible<()> {
    Ok(fs::write(path, bytes)?)
}

/// Creates a file of this length that occupies no room yet.
pub(crate) fn make_sparse(path: &Path, bytes: u64) -> Fallible<()> {
    Ok(File::create(path)?.set_len(bytes)?)
}

/// Truncates a file.
pub(crate) fn truncate(path: &Path, bytes: u64) -> Fallible<()> {
    Ok(OpenOptions::new().write(true).open(path)?.set_len(bytes)?)
}

/// A file that is being written.
pub(crate) type Output = BufWriter<File>;

/// Creates a file to write a history to.
pub(crate) fn history(path: &Path) -> Fallible<Output> {
    Ok(BufWriter::new(File::create(path)?))
}

/// Opens a file for reading.
pub(crate) fn reader(path: &Path) -> Fallible<BufReader<File>> {
    Ok(BufReader::new(File::open(path)?))
}

/// Copies a file for the investigation of a failure, and returns the path of the copy.
pub(crate) fn keep(path: &Path, name: &str) -> Fallible<PathBuf> {
    let directory = std::env::temp_dir().join("pinpriq-crash-kept");
    fs::create_dir_all(&directory)?;
    let kept = directory.join(name);
    fs::copy(path, &kept)?;
    Ok(kept)
}

/// The number of the socket on the loopback interface that has this local port, as the kernel
/// reports it, if it is connected.
pub(crate) fn socket_of_port(port: u16) -> Fallible<Option<u64>> {
    let table = fs::read_to_string("/proc/net/tcp")?;
    let local = format!("0100007F:{port:04X}");
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = table.lines().map(fields);
    let line = lines.find(|it| it.get(1) == Some(&local) && it.get(9).is_some_and(|it| it != "0"));
    Ok(line.and_then(|fields| fields[9].parse().ok()))
}

/// Whether a process has this socket open.
pub(crate) fn has_socket(process: u32, socket: u64) -> Fallible<bool> {
    let wanted = format!("socket:[{socket}]");
    for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
        // Others may be closed in the meantime.
        if fs::read_link(entry?.path()).is_ok_and(|it| it.to_string_lossy() == wanted) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lets all users reach what is in a directory, if they know its name.
pub(crate) fn let_enter(path: &Path) -> Fallible<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o711))?)
}

/// The processes that a process has started and that run.
pub(crate) fn children(process: u32) -> Fallible<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    text.split_whitespace().map(|child| Ok(child.parse()?)).collect()
}

/// Whether a process runs. One that has ended and was not waited for does not.
pub(crate) fn is_alive(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}
