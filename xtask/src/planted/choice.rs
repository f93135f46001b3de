//! Chooses the bugs that the gate plants by chance: more of those that a change may have touched,
//! and fewer of the others.
//!
//! A bug counts as touched if its entry in a table has changed since a commit, or its text in the
//! product or a few lines around that. It does not look at which tests have changed: the others,
//! and the long run, which plants all, are there for those.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::process::Command;

use super::edits::place;
use super::table::Bug;
use crate::tidy::tree::{Tree, root};

/// How many lines around its text count as part of it.
const LINES_AROUND: usize = 8;

/// The lines that have changed, counted from 1, for each file.
type Changed = BTreeMap<String, Vec<Range<usize>>>;

/// How many bugs that a change has touched are planted at most. A large change touches nearly all,
/// and the long run plants those.
const TOUCHED_MAX: usize = 30;

/// How many of the other bugs are planted at most.
const OTHERS_MAX: usize = 10;

/// Returns bugs that have been touched since this commit, and some of the others. Another `seed`
/// chooses others.
pub(crate) fn choose(
    mut bugs: Vec<Bug>,
    tree: &Tree,
    since: &str,
    seed: &str,
) -> Result<Vec<Bug>, String> {
    let changed = changed_lines(&difference_since(since)?);
    bugs.sort_by_key(|bug| {
        let mut hasher = DefaultHasher::new();
        (seed, &bug.name).hash(&mut hasher);
        hasher.finish()
    });
    let (mut touched, mut others): (Vec<Bug>, Vec<Bug>) = bugs.into_iter().partition(|bug| {
        let file = tree.file(&bug.file).map(|file| file.text.as_str());
        is_touched(bug, file.unwrap_or_default(), &changed)
    });
    let count = touched.len();
    touched.truncate(TOUCHED_MAX);
    others.truncate(OTHERS_MAX);
    println!(
        "planted: {} of {count} bugs that were touched since {since}, {} others (seed {seed})",
        touched.len(),
        others.len()
    );
    touched.append(&mut others);
    Ok(touched)
}

/// Whether lines of the entry of this bug or near its text in the file have changed.
fn is_touched(bug: &Bug, file: &str, changed: &Changed) -> bool {
    let touches = |path: &str, first: usize, last: usize| {
        changed.get(path).into_iter().flatten().any(|it| it.start <= last && first < it.end)
    };
    let line_of = |at: usize| file[..at].matches('\n').count() + 1;
    touches(&bug.entry.path, bug.entry.first, bug.entry.last)
        || place(file, &bug.text).is_ok_and(|found| {
            let first = line_of(found.start).saturating_sub(LINES_AROUND);
            touches(&bug.file, first, line_of(found.end) + LINES_AROUND)
        })
}

/// Returns the lines that a difference without lines around says have changed. Where lines have
/// only gone, this is the line before.
fn changed_lines(difference: &str) -> Changed {
    let mut changed = Changed::new();
    let mut path = "";
    for line in difference.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = name;
        } else if let Some(range) = line.strip_prefix("@@ ").and_then(changed_range) {
            changed.entry(path.to_owned()).or_default().push(range);
        }
    }
    changed
}

/// Reads `-1,2 +3,4 @@`.
fn changed_range(hunk: &str) -> Option<Range<usize>> {
    let new = hunk.split(' ').nth(1)?.strip_prefix('+')?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
    Some(first..first + count.max(1))
}

/// Returns what git shows of the crates.
fn difference_since(commit: &str) -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["diff", "--no-color", "--unified=0", commit, "--", "crates"]).current_dir(root());
    let output = git.output().map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "git shows no difference since {commit:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{changed_lines, is_touched};
    use crate::planted::table::{Bug, Lines, Suite};

    #[test]
    fn bug_is_touched_where_its_text_or_its_entry_changes() {
        let file = "\n".repeat(29) + "let a = b;\n";
        let bug = Bug {
            name: "wrong".to_owned(),
            wrong: "It is wrong.".to_owned(),
            file: "crates/a/src/lib.rs".to_owned(),
            text: "a = b".to_owned(),
            instead: "a = c".to_owned(),
            tests: vec![Suite::Simulator],
            entry: Lines { path: "crates/a/tests/planted/a.toml".to_owned(), first: 8, last: 13 },
        };
        let check = |difference: &str, expected| {
            assert_eq!(
                is_touched(&bug, &file, &changed_lines(difference)),
                expected,
                "{difference}"
            );
        };
        let hunk = |path, hunk| format!("--- a/{path}\n+++ b/{path}\n@@ {hunk} @@\n+a\n");
        check(&hunk("crates/a/src/lib.rs", "-30 +30"), true);
        check(&hunk("crates/a/src/lib.rs", "-5,0 +20,2"), false);
        check(&hunk("crates/a/src/lib.rs", "-5,0 +20,3"), true);
        check(&hunk("crates/a/src/lib.rs", "-39,2 +38,0"), true);
        check(&hunk("crates/a/src/lib.rs", "-39,2 +39,0"), false);
        check(&hunk("crates/a/src/other.rs", "-30 +30"), false);
        check(&hunk("crates/a/tests/planted/a.toml", "-13 +13"), true);
        check(&hunk("crates/a/tests/planted/a.toml", "-14,7 +14,7"), false);
    }
}
