//! Where bugs are planted: each in a text that is once in its file of the product.
//!
//! So a change of that text shows that a bug has to change too, and so does a change of the name of
//! a test. Whether the bugs can be built and whether tests object, `cargo xtask planted` shows.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::tree::Tree;
use crate::planted::edits;
use crate::planted::programs::Kind;
use crate::planted::table::{self, Bug, Suite};

/// Every bug of the tables has its place.
pub(crate) fn places(tree: &Tree) -> Vec<Violation> {
    let (bugs, problems) = table::read(tree);
    let mut found: Vec<Violation> =
        problems.into_iter().map(|it| Violation::new(&it.path, it.line, it.what)).collect();
    let mut by_file: BTreeMap<&str, Vec<&Bug>> = BTreeMap::new();
    for bug in &bugs {
        by_file.entry(&bug.file).or_default().push(bug);
    }
    let mut object = |bug: &Bug, what: &str| {
        let message = format!("{}: {what}", bug.name);
        found.push(Violation::new(&bug.entry.path, bug.entry.first, message));
    };
    for (path, bugs) in by_file {
        let Some(file) = tree.file(path).filter(|file| !file.is_test()) else {
            for bug in bugs {
                object(bug, "its file is not part of the product");
            }
            continue;
        };
        for (bug, what) in edits::plant(&file.text, &bugs).err().into_iter().flatten() {
            object(bugs[bug], &what);
        }
    }
    let mut tests: BTreeMap<(&str, Kind), BTreeSet<String>> = BTreeMap::new();
    for bug in &bugs {
        for suite in &bug.tests {
            let Suite::Tests { package, kind, filter } = suite else { continue };
            let names = tests.entry((package, *kind)).or_insert_with(|| {
                let directory = if *kind == Kind::Within { "src" } else { "tests/it" };
                names_below(tree, &format!("crates/{package}/{directory}/"))
            });
            // Some tests are made once more for encrypted connections, in a module of this name.
            let filter = filter.replace("encrypted::", "");
            if !names.iter().any(|name| name.contains(&filter)) {
                object(bug, &format!("there is no test {filter} in {package}"));
            }
        }
    }
    found
}

/// Returns the names of all functions in the files below a directory, with those of their modules.
/// They may be in a module of tests within a file. A macro may name functions after any word.
fn names_below(tree: &Tree, directory: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in tree.files() {
        let Some(path) = file.path.strip_prefix(directory) else { continue };
        let Some(path) = path.strip_suffix(".rs") else { continue };
        let module = path.replace('/', "::");
        let marker = if file.text.contains("macro_rules!") { " " } else { "fn " };
        for function in file.text.split(marker).skip(1) {
            let is_word = |char: char| char.is_alphanumeric() || char == '_';
            let name =
                function.trim_start().split(|char| !is_word(char)).next().unwrap_or_default();
            names.insert(format!("{module}::{name}"));
            names.insert(format!("{module}::tests::{name}"));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::places;
    use crate::tidy::samples::{check_repository, check_tree};

    const TABLE: &str = "crates/pinpriq-engine/tests/planted/engine.toml";
    const TEST: (&str, &str) = ("crates/pinpriq-engine/tests/it/scripts.rs", "fn runs() {}");

    /// Checks how many objections there are to a table of these entries, in which the text of a
    /// bug is `b`, where the file has this text.
    #[track_caller]
    fn check(entries: &[(&str, &str)], text: &str, count: usize) {
        let entry = "wrong = 'a'\nfile = 'src/put.rs'\ntext = 'b'\nbug = 'c'";
        let entries = entries.iter().map(|(name, more)| format!("[{name}]\n{entry}\n{more}\n"));
        let table: String = entries.collect();
        let files = [TEST, ("crates/pinpriq-engine/src/put.rs", text), (TABLE, &*table)];
        check_tree(places, &files, count);
    }

    #[test]
    fn every_bug_has_its_place() {
        let tests = "tests = ['engine scripts::', 'simulator']";
        check(&[("a", tests)], "b", 0);
        check(&[("a", tests)], "fn a() {}", 1);
        check(&[("a", tests)], "bb", 1);
        check(&[("a", "")], "b", 1);
        check(&[("a", "tests = []")], "b", 1);
        check(&[("a", "tests = ['engine']")], "b", 1);
        check(&[("a", "tests = ['shed a::']")], "b", 1);
        check(&[("a", "tests = ['engine scripts::encrypted::runs']")], "b", 0);
        check(&[("a", "tests = ['engine scripts::stops']")], "b", 1);
        check(&[("a", "tests = ['in engine scripts::']")], "b", 1);
        check(&[("a", "tests = ['simulator']\nother = 1")], "b", 1);
        check(&[("A b", tests)], "b", 1);
        check(&[("a", tests), ("a", tests)], "b", 1);
        let other = "crates/pinpriq-engine/tests/planted/other.toml";
        let entry =
            format!("[a]\nwrong = 'a'\nfile = 'src/a.rs'\ntext = 'b'\nbug = 'c'\n{tests}\n");
        let there = ("crates/pinpriq-engine/src/a.rs", "b");
        check_tree(places, &[TEST, there, (TABLE, &entry)], 0);
        check_tree(places, &[TEST, there, (TABLE, &entry), (other, &entry)], 1);
        check_tree(places, &[TEST, (TABLE, &entry)], 1);
        check_repository(places);
    }
}
