//! The files that the house rules check: what git tracks or would add, as text.
//!
//! Without git, as in an unpacked archive, this is every file below the root, except `target` and
//! hidden directories other than our own. Binary files are listed but have no text. Neither have
//! the inputs of the fuzz targets, which have any content.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::source::Source;

/// Where the inputs of the fuzz targets are.
const INPUTS: [&str; 1] = ["fuzz/regressions/"];

/// The files of a repository, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<File>,
    /// Every file and every directory that holds one.
    paths: BTreeSet<String>,
}

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root, with `/` between the parts.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
    /// The text as Rust, if it is.
    pub(crate) source: Option<Source>,
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

impl Tree {
    /// Reads the repository that this file is part of.
    pub(crate) fn of_repository() -> io::Result<Self> {
        let mut tree = Self::default();
        for path in paths_of_repository()? {
            match fs::read_to_string(root().join(&path)) {
                Ok(text) => tree.add(&path, Some(text)),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => tree.add(&path, None),
                // Tracked by git and deleted since, or a directory behind a symbolic link.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
            }
        }
        Ok(tree)
    }

    /// A made-up repository, for the test of a rule.
    #[cfg(test)]
    pub(crate) fn of_samples(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add(path, Some((*text).to_owned()));
        }
        tree
    }

    fn add(&mut self, path: &str, text: Option<String>) {
        let mut prefix = Some(path);
        while let Some(known) = prefix {
            self.paths.insert(known.to_owned());
            prefix = known.rsplit_once('/').map(|(directory, _)| directory);
        }
        let is_input = INPUTS.iter().any(|directory| path.starts_with(directory));
        if let Some(text) = text.filter(|text| !is_input && !text.contains('\0')) {
            let mut file = File { path: path.to_owned(), text, source: None };
            file.source = file.has_extension("rs").then(|| Source::new(&file.text));
            self.files.push(file);
        }
    }

    /// How many text files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Every text file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Every Rust file with its source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
    }

    /// The text file of this path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether this is a file, or a directory that holds one.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }
}

impl File {
    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the name ends like this, in any case.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
    }

    /// Whether the file holds tests only.
    pub(crate) fn is_test(&self) -> bool {
        self.name() == "tests.rs" || self.path.split('/').any(|part| part == "tests")
    }

    /// Whether the file stands beside the product: tests, benches, examples and chores.
    pub(crate) fn is_beside_product(&self) -> bool {
        self.is_test()
            || self.path.starts_with("xtask/")
            || self.path.split('/').any(|part| matches!(part, "benches" | "examples"))
    }
}

/// Returns the paths of all files of the repository that this file is part of.
pub(crate) fn paths_of_repository() -> io::Result<BTreeSet<String>> {
    known_to_git(root()).map_or_else(|| walk(root()), Ok)
}

/// Returns what git tracks or would add, or `None` if there is no repository here.
fn known_to_git(root: &Path) -> Option<BTreeSet<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    let paths: BTreeSet<String> =
        list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = directory.join(&name);
            if entry.file_type()?.is_dir() {
                let name = name.to_string_lossy();
                let ours = matches!(&*name, ".cargo" | ".ci");
                if name != "target" && (ours || !name.starts_with('.')) {
                    directories.push(path);
                }
            } else {
                paths.insert(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::{known_to_git, root, walk};

    #[test]
    fn the_walk_without_git_finds_this_file_and_skips_what_was_built() {
        let paths = walk(root()).unwrap();
        assert!(paths.contains("xtask/src/tidy/tree.rs"));
        assert!(paths.contains(".cargo/config.toml"));
        assert!(!paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }

    #[test]
    fn git_knows_no_file_that_the_walk_does_not_find() {
        // Without git there is nothing to compare.
        let known = known_to_git(root()).unwrap_or_default();
        let walked = walk(root()).unwrap();
        let hidden = |path: &String| path.starts_with('.');
        let missing: Vec<_> = known
            .difference(&walked)
            .filter(|path| !hidden(path) && root().join(path).exists())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
