//! Where bugs are planted: each in a text that is once in its file of the product.
//!
//! So a change of that text shows that a bug has to change too. Whether the bugs can be built
//! and whether tests object, `cargo xtask planted` shows.

use std::collections::BTreeMap;

use super::Violation;
use super::tree::Tree;
use crate::planted::edits;
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
    for bug in &bugs {
        for suite in &bug.tests {
            let Suite::Tests { package, .. } = suite else { continue };
            if !tree.contains(&format!("crates/{package}/Cargo.toml")) {
                object(bug, &format!("there is no crate {package}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::places;
    use crate::tidy::samples::{check_repository, check_tree};

    const TABLE: &str = "crates/pinpriq-engine/tests/planted/engine.toml";
    const MANIFEST: (&str, &str) = ("crates/pinpriq-engine/Cargo.toml", "");

    /// Checks how many objections there are to a table of these entries, in which the text of a
    /// bug is `b`, where the file has this text.
    #[track_caller]
    fn check(entries: &[(&str, &str)], text: &str, count: usize) {
        let entry = "wrong = 'a'\nfile = 'src/put.rs'\ntext = 'b'\nbug = 'c'";
        let entries = entries.iter().map(|(name, more)| format!("[{name}]\n{entry}\n{more}\n"));
        let table: String = entries.collect();
        let files = [MANIFEST, ("crates/pinpriq-engine/src/put.rs", text), (TABLE, &*table)];
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
        check(&[("a", "tests = ['simulator']\nother = 1")], "b", 1);
        check(&[("A b", tests)], "b", 1);
        check(&[("a", tests), ("a", tests)], "b", 1);
        let other = "crates/pinpriq-engine/tests/planted/other.toml";
        let entry =
            format!("[a]\nwrong = 'a'\nfile = 'src/a.rs'\ntext = 'b'\nbug = 'c'\n{tests}\n");
        let there = ("crates/pinpriq-engine/src/a.rs", "b");
        check_tree(places, &[MANIFEST, there, (TABLE, &entry)], 0);
        check_tree(places, &[MANIFEST, there, (TABLE, &entry), (other, &entry)], 1);
        check_tree(places, &[MANIFEST, (TABLE, &entry)], 1);
        check_repository(places);
    }
}
