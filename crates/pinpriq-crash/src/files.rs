//! The files of the servers under test: copied, inspected and damaged.
//!
//! Only directories that the harness has created itself are changed.
#![expect(clippy::disallowed_methods, reason = "there is no server here whose disk it would be")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter};
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

/// Copies a file for whoever investigates a failure, and returns the path of the copy.
pub(crate) fn keep(path: &Path, name: &str) -> Fallible<PathBuf> {
    let directory = std::env::temp_dir().join("pinpriq-crash-kept");
    fs::create_dir_all(&directory)?;
    let kept = directory.join(name);
    fs::copy(path, &kept)?;
    Ok(kept)
}
