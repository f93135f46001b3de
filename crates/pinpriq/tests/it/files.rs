//! The files of a data directory, looked at and changed from the outside.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[expect(clippy::disallowed_methods, reason = "a test looks from the outside")]
pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test does damage on purpose")]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test does damage on purpose")]
pub(crate) fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

/// The names of the files in a directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// All files of a directory with what is in them.
pub(crate) fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir).into_iter().map(|name| (name.clone(), read(&dir.join(name)))).collect()
}

/// All files below a directory, with what is in them.
pub(crate) fn everything(data: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for name in names(data) {
        let path = data.join(&name);
        if path.is_dir() {
            let below = contents(&path).into_iter();
            found.extend(below.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            found.push((name, read(&path)));
        }
    }
    found
}

/// The segments, oldest first.
pub(crate) fn segments(dir: &Path) -> Vec<PathBuf> {
    let is_segment = |name: &String| name.starts_with("segment-");
    names(dir).into_iter().filter(is_segment).map(|name| dir.join(name)).collect()
}

/// Where `needle` stands in a file.
pub(crate) fn position(path: &Path, needle: &[u8]) -> Option<usize> {
    read(path).windows(needle.len()).position(|window| window == needle)
}

/// Flips one bit of the byte at `offset`.
pub(crate) fn flip(path: &Path, offset: usize) {
    let mut bytes = read(path);
    bytes[offset] ^= 1;
    write(path, &bytes);
}
