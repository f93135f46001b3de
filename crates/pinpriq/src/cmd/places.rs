//! Where backups may lie, and where a data directory may: neither inside the other.
//!
//! Only paths and the names of files are looked at. A bucket is beside everything.

use std::io;
use std::path::{Path, PathBuf};

use pinpriq_store::StoreError;
use pinpriq_store::layout::shards_in;

use crate::exit::Failure;

/// What stands between the scheme of a URL and the rest.
const SCHEME_END: &str = "://";

/// Refuses a place in a data directory, or below one: both would be lost at once, and a server
/// keeps its directory to itself.
pub(super) fn refuse_data_directory(place: &str) -> Result<(), Failure> {
    if place.contains(SCHEME_END) {
        return Ok(());
    }
    let Ok(resolved) = resolved(Path::new(place)) else { return Ok(()) };
    match resolved.ancestors().find(|directory| is_data(directory)) {
        None => Ok(()),
        Some(data) => Err(in_data(place, data)),
    }
}

fn in_data(place: &str, data: &Path) -> Failure {
    Failure::unusable(format!(
        "{place} lies in the data directory {}: give a place outside, best on another disk",
        data.display()
    ))
}

/// Refuses the place of a server that archives there if the place and its data directory lie in
/// each other, whether the directory is there already or not.
pub(super) fn refuse_data_around(data: &Path, place: &str) -> Result<(), Failure> {
    refuse_data_directory(place)?;
    refuse_in_place(data, place)?;
    if place.contains(SCHEME_END) {
        return Ok(());
    }
    match (resolved(Path::new(place)), resolved(data)) {
        (Ok(inside), Ok(around)) if inside.starts_with(&around) => Err(in_data(place, &around)),
        _ => Ok(()),
    }
}

/// Refuses a new data directory that is a URL, or lies in the place that it comes from.
pub(super) fn refuse_in_place(data: &Path, place: &str) -> Result<(), Failure> {
    let shown = data.display();
    if let Some((scheme, _)) = data.to_string_lossy().split_once(SCHEME_END) {
        return Err(Failure::unusable(format!(
            "--data is a directory of this machine, and cannot begin with {scheme}{SCHEME_END}"
        )));
    }
    if place.contains(SCHEME_END) {
        return Ok(());
    }
    match (resolved(data), resolved(Path::new(place))) {
        (Ok(data), Ok(around)) if data.starts_with(&around) => Err(Failure::unusable(format!(
            "--data {shown} lies in the place {place}: give a directory outside"
        ))),
        _ => Ok(()),
    }
}

/// Returns a path without symbolic links. Its end need not exist.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut last = io::ErrorKind::NotFound.into();
    for there in path.ancestors() {
        match there.canonicalize() {
            Ok(found) => {
                let rest = path.strip_prefix(there).unwrap_or_else(|_| Path::new(""));
                return Ok(if rest.as_os_str().is_empty() { found } else { found.join(rest) });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether a directory is a data directory or that of a shard, as far as its files tell.
fn is_data(directory: &Path) -> bool {
    match shards_in(directory) {
        Ok(shards) => shards.is_some(),
        Err(StoreError::Unfinished | StoreError::Following) => true,
        // A server that has begun has both.
        Err(_) => ["LOCK", "head"].iter().all(|name| directory.join(name).is_file()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn made(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        assert!(Command::new("mkdir").arg("-p").arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn a_place_beside_data_is_none_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        assert_eq!(refuse_data_directory("s3://bucket/prefix"), Ok(()));
        assert_eq!(refuse_data_directory(folder.join("a/b").to_str().unwrap()), Ok(()));
        let data = made(&folder, "data");
        let place = data.join("backups/place");
        assert_eq!(refuse_data_directory(place.to_str().unwrap()), Ok(()));
        let touched = Command::new("touch").arg(data.join("segment-0000000001.log")).status();
        assert!(touched.unwrap().success());
        let link = folder.join("link");
        assert!(Command::new("ln").arg("-s").arg(&data).arg(&link).status().unwrap().success());
        for inside in [data.clone(), place, link.clone(), link.join("x")] {
            let refusal = refuse_data_directory(inside.to_str().unwrap()).unwrap_err();
            let words = format!("lies in the data directory {}:", data.display());
            assert_eq!(refusal.code(), 2);
            assert!(refusal.to_string().contains(&words), "{refusal}");
        }
        assert_eq!(refuse_data_directory(folder.join("data-2").to_str().unwrap()), Ok(()));
    }

    #[test]
    fn a_place_and_the_data_that_is_archived_there_are_apart() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        // Neither has to be there.
        let (data, place) = (folder.join("data"), folder.join("place"));
        for apart in ["place", "data-2", "a/data"] {
            let apart = folder.join(apart);
            assert_eq!(refuse_data_around(&data, apart.to_str().unwrap()), Ok(()));
        }
        assert_eq!(refuse_data_around(&data, "s3://bucket/data"), Ok(()));
        for inside in [data.clone(), data.join("place"), data.join("a/b")] {
            let refusal = refuse_data_around(&data, inside.to_str().unwrap()).unwrap_err();
            assert_eq!(refusal.code(), 2, "{refusal}");
        }
        let inside = data.join("place");
        let refusal = refuse_data_around(&data, inside.to_str().unwrap()).unwrap_err();
        let words = format!("lies in the data directory {}:", data.display());
        assert!(refusal.to_string().contains(&words), "{refusal}");
        let refusal = refuse_data_around(&place.join("data"), place.to_str().unwrap());
        assert!(refusal.unwrap_err().to_string().contains("give a directory outside"));
        // Another directory with data is none for an archive either.
        let other = made(&folder, "other");
        let touched = Command::new("touch").arg(other.join("segment-0000000001.log")).status();
        assert!(touched.unwrap().success());
        assert!(refuse_data_around(&data, other.join("x").to_str().unwrap()).is_err());
    }

    #[test]
    fn a_new_directory_is_not_in_the_place_and_no_url() {
        let folder = tempfile::tempdir().unwrap();
        let place = made(folder.path(), "place");
        let place = place.to_str().unwrap();
        for inside in ["place", "place/new", "place/marks/x"] {
            let refusal = refuse_in_place(&folder.path().join(inside), place).unwrap_err();
            assert_eq!(refusal.code(), 2, "{inside}: {refusal}");
        }
        for outside in ["new", "place-2", "a/place"] {
            assert_eq!(refuse_in_place(&folder.path().join(outside), place), Ok(()), "{outside}");
        }
        assert!(refuse_in_place(Path::new("s3://bucket/new"), place).is_err());
        assert_eq!(refuse_in_place(Path::new("new"), "s3://bucket/p"), Ok(()));
    }
}
