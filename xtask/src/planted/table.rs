//! The tables of the bugs: what each is called, what goes wrong, where, and which tests object.
//!
//! Each is a file `tests/planted/*.toml` of a crate of the product. [`edits`](super::edits) finds
//! the text of a bug and changes it.

use std::fmt;

use toml::{Table, Value};

use super::programs::Kind;
use crate::tidy::tree::{File, Tree};

/// A bug that can be planted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bug {
    pub(crate) name: String,
    /// What goes wrong, as a sentence.
    pub(crate) wrong: String,
    /// The file of the product, from the root of the repository.
    pub(crate) file: String,
    /// The text of that file which is right.
    pub(crate) text: String,
    /// What stands there with the bug.
    pub(crate) instead: String,
    /// The tests that ought to object, each of them, the cheapest first.
    pub(crate) tests: Vec<Suite>,
    /// The lines of the entry.
    pub(crate) entry: Lines,
}

/// Lines of a file, counted from 1. The last belongs to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lines {
    pub(crate) path: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Tests that ought to object to a bug.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Suite {
    /// The simulator, with many seeds.
    Simulator,
    /// The simulator of clusters.
    ClusterSimulator,
    /// The tests of this crate whose names begin like this.
    Tests { package: String, kind: Kind, filter: String },
}

/// What is wrong with a table: a line of it, and a sentence.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// The keys of an entry.
const KEYS: [&str; 5] = ["wrong", "file", "text", "bug", "tests"];

/// Returns all bugs, table by table, and what is wrong with the tables.
pub(crate) fn read(tree: &Tree) -> (Vec<Bug>, Vec<Problem>) {
    let mut bugs: Vec<Bug> = Vec::new();
    let mut problems = Vec::new();
    for file in tree.files().filter(|file| file.has_extension("toml")) {
        let Some(package) = package_of_table(&file.path) else { continue };
        let mut object = |line: usize, what: String| {
            problems.push(Problem { path: file.path.clone(), line, what });
        };
        let table = match file.text.parse::<Table>() {
            Ok(table) => table,
            Err(error) => {
                object(0, format!("is no TOML: {}", error.message()));
                continue;
            }
        };
        let mut found = Vec::new();
        for (name, entry) in &table {
            let lines = lines_of(file, name);
            match bug(package, name, entry, lines.clone()) {
                Ok(bug) => found.push(bug),
                Err(what) => object(lines.first, format!("{name}: {what}")),
            }
        }
        // The table itself has no order.
        found.sort_by_key(|bug| bug.entry.first);
        for bug in found {
            if let Some(other) = bugs.iter().find(|other| other.name == bug.name) {
                let what = format!("{} is in {} already", bug.name, other.entry.path);
                object(bug.entry.first, what);
            }
            bugs.push(bug);
        }
    }
    (bugs, problems)
}

/// Returns the folder of the crate that this is a table of.
fn package_of_table(path: &str) -> Option<&str> {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", package, "tests", "planted", _] => Some(package),
        _ => None,
    }
}

/// Returns the lines of an entry: from its name to the line before the next one.
fn lines_of(file: &File, name: &str) -> Lines {
    let header = format!("[{name}]");
    let lines: Vec<&str> = file.text.lines().collect();
    let at = lines.iter().position(|line| *line == header).unwrap_or(0);
    let is_header = |line: &&str| line.starts_with('[');
    let next = lines.iter().skip(at + 1).position(is_header).map_or(lines.len(), |n| at + 1 + n);
    let entry = lines.get(at..next).unwrap_or_default();
    let length = entry.iter().rposition(|line| !line.is_empty()).unwrap_or(0);
    Lines { path: file.path.clone(), first: at + 1, last: at + 1 + length }
}

fn bug(package: &str, name: &str, entry: &Value, lines: Lines) -> Result<Bug, String> {
    let is_usual = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    if name.is_empty() || !name.chars().all(is_usual) {
        return Err("a name has small letters, digits and hyphens".to_owned());
    }
    let entry = entry.as_table().ok_or("is no table")?;
    if let Some(key) = entry.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("`{key}` is none of {}", KEYS.join(", ")));
    }
    let string = |key: &str| {
        let text = entry.get(key).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| format!("lacks the text `{key}`"))
    };
    let tests = entry.get("tests").and_then(Value::as_array).ok_or("lacks the list `tests`")?;
    let tests = tests.iter().map(|suite| suite.as_str().and_then(Suite::of));
    let tests: Vec<Suite> = tests.collect::<Option<_>>().ok_or("`tests` names unknown tests")?;
    if tests.is_empty() {
        return Err("no test objects".to_owned());
    }
    Ok(Bug {
        name: name.to_owned(),
        wrong: string("wrong")?,
        file: format!("crates/{package}/{}", string("file")?),
        text: string("text")?,
        instead: string("bug")?,
        tests,
        entry: lines,
    })
}

impl Suite {
    /// Returns what is written like this in a table, such as `engine scripts::`.
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word {
            "simulator" => return Some(Self::Simulator),
            "simulator of clusters" => return Some(Self::ClusterSimulator),
            _ => {}
        }
        let (kind, rest) = match word.strip_prefix("in ") {
            Some(rest) => (Kind::Within, rest),
            None => (Kind::Outside, word),
        };
        let (package, filter) = rest.split_once(' ')?;
        // The program itself has no second part in its name.
        let package = match package {
            "pinpriq" => package.to_owned(),
            _ => format!("pinpriq-{package}"),
        };
        (!filter.is_empty()).then(|| Self::Tests { package, kind, filter: filter.to_owned() })
    }

    /// Whether it tries many seeds until one objects.
    pub(crate) const fn is_simulator(&self) -> bool {
        matches!(self, Self::Simulator | Self::ClusterSimulator)
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulator => f.write_str("simulator"),
            Self::ClusterSimulator => f.write_str("simulator of clusters"),
            Self::Tests { package, kind, filter } => {
                let within = if *kind == Kind::Within { "in " } else { "" };
                write!(f, "{within}{} {filter}", package.trim_start_matches("pinpriq-"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Suite, read};
    use crate::tidy::tree::Tree;

    #[test]
    fn an_entry_has_its_lines() {
        let entry = "wrong = \"a\"\nfile = \"src/lib.rs\"\ntext = \"1\"\nbug = \"2\"\n\
                     tests = [\"engine scripts::\", \"in store journal::\", \"simulator\"]\n";
        let table = format!("[later-on]\n{entry}\n[above]\n{entry}");
        let path = "crates/pinpriq-engine/tests/planted/engine.toml";
        let (bugs, problems) = read(&Tree::of_samples(&[(path, &table)]));
        assert!(problems.is_empty(), "{problems:?}");
        let found: Vec<_> =
            bugs.iter().map(|bug| (&*bug.name, bug.entry.first, bug.entry.last)).collect();
        assert_eq!(found, [("later-on", 1, 6), ("above", 8, 13)]);
        assert_eq!(bugs[0].file, "crates/pinpriq-engine/src/lib.rs");
        let words: Vec<String> = bugs[0].tests.iter().map(Suite::to_string).collect();
        assert_eq!(words, ["engine scripts::", "in store journal::", "simulator"]);
    }
}
