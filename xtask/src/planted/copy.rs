//! Writes the copy of the repository that has every bug in it.
//!
//! It is below `target`. A file that is as it should be is left alone, so that cargo builds again
//! only what has changed.

#![expect(clippy::disallowed_methods, reason = "a chore copies files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::VARIABLE;
use super::edits;
use super::table::Bug;
use crate::tidy::tree::{Tree, paths_of_repository, root};

/// Returns where the copy is.
pub(crate) fn copied_root() -> PathBuf {
    root().join("target/planted")
}

/// Writes the copy, with all of these bugs. The error is a sentence.
pub(crate) fn write(tree: &Tree, bugs: &[Bug]) -> Result<(), String> {
    let mut changed = planted_files(tree, bugs)?;
    let paths = paths_of_repository().map_err(|error| format!("no files are known: {error}"))?;
    let to = copied_root();
    for path in &paths {
        let written = match changed.remove(path) {
            Some(text) => write_if_new(&to.join(path), text.as_bytes()),
            None => copy_file(&root().join(path), &to.join(path)),
        };
        written.map_err(|error| format!("{path} cannot be copied: {error}"))?;
    }
    remove_others(&to, &|path| paths.contains(path))
        .map_err(|error| format!("{} cannot be tidied up: {error}", to.display()))
}

/// Returns the files that are not as they are here.
fn planted_files(tree: &Tree, bugs: &[Bug]) -> Result<BTreeMap<String, String>, String> {
    let mut by_file: BTreeMap<&str, Vec<&Bug>> = BTreeMap::new();
    for bug in bugs {
        by_file.entry(&bug.file).or_default().push(bug);
    }
    let mut changed = BTreeMap::new();
    for (path, bugs) in by_file {
        let file = tree.file(path).ok_or_else(|| format!("there is no {path}"))?;
        let planted = edits::plant(&file.text, &bugs).map_err(|problems| {
            let told = problems.iter().map(|(bug, what)| format!("{}: {what}", bugs[*bug].name));
            format!("{path}: {}", told.collect::<Vec<_>>().join("; "))
        })?;
        changed.insert(path.to_owned(), planted);
    }
    // The bugs ask this function of their crate.
    let asked = changed.keys().filter_map(|path| Some(path.split_once("/src/")?.0.to_owned()));
    for package in asked.collect::<BTreeSet<_>>() {
        let path = format!("{package}/src/lib.rs");
        let file = tree.file(&path).ok_or_else(|| format!("there is no {path}"))?;
        changed.entry(path).or_insert_with(|| file.text.clone()).push_str(&question());
    }
    Ok(changed)
}

/// Returns the function that says whether the bug of a name is switched on.
fn question() -> String {
    format!(
        "\n/// Whether the bug of this name is switched on.\n\
         pub(crate) fn is_planted(name: &str) -> bool {{\n    \
             static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();\n    \
             let chosen = NAME.get_or_init(|| std::env::var({VARIABLE:?}).ok());\n    \
             chosen.as_deref() == Some(name)\n\
         }}\n"
    )
}

/// Copies a file, with the right to run it. What has gone from here is passed over.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    match fs::read(from) {
        Ok(bytes) => write_if_new(to, &bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

fn write_if_new(to: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::write(to, bytes)
}

/// Removes the files of the copy that are no longer here, and the directories that are empty then:
/// cargo would look for a crate in them. What was built in the copy stays.
fn remove_others(root: &Path, is_known: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let mut directories = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(directory) = directories.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if entry.file_name() != "target" {
                    directories.push(path);
                }
            } else if !is_known(&path.to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    for directory in directories.iter().rev().map(|directory| root.join(directory)) {
        if fs::read_dir(&directory)?.next().is_none() {
            fs::remove_dir(directory)?;
        }
    }
    Ok(())
}
