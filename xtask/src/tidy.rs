//! The house rules that the compiler does not check.
//!
//! A rule is a function from the [`Tree`] of files to a list of [`Violation`]s. Each has its
//! `#[test]` next to it. The test shows the rule bad samples that it must object to and good ones
//! that it must accept, and then the repository itself. A rule checks text, not resolved names: it
//! helps honest people, and does not stop a determined one.

mod examples;
mod imports;
mod manifests;
mod markdown;
mod names;
mod planted;
mod prose;
mod rooms;
#[cfg(test)]
mod samples;
mod shape;
mod source;
pub(crate) mod tree;
mod unbuilt_tests;

use std::fmt;
use std::process::ExitCode;

use tree::Tree;

/// A place that breaks a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Violation {
    /// The file, from the root of the repository.
    path: String,
    /// The line, counted from 1; 0 for the file as a whole.
    line: usize,
    /// What is wrong and, if helpful, what to do instead.
    message: String,
}

/// Checks the whole tree and returns the violations.
type Rule = fn(&Tree) -> Vec<Violation>;

/// Every rule, under the name that its violations are printed with.
const RULES: [(&str, Rule); 19] = [
    ("header", shape::header),
    ("length", shape::length),
    ("columns", shape::columns),
    ("white space", shape::white_space),
    ("unfinished", prose::unfinished),
    ("comments", prose::comments),
    ("outside", prose::outside),
    ("sleep", imports::sleeping),
    ("runtime", imports::runtime),
    ("file system", imports::file_system),
    ("manifests", manifests::directions),
    ("rooms", rooms::directions),
    ("circles", rooms::circles),
    ("unbuilt tests", unbuilt_tests::unbuilt_tests),
    ("names", names::names),
    ("planted", planted::places),
    ("links", markdown::links),
    ("prose columns", markdown::columns),
    ("dead letters", examples::dead_letters),
];

/// Prints every violation in the repository, and their number.
pub(crate) fn run() -> ExitCode {
    let tree = match Tree::of_repository() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("the repository cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut total = 0_usize;
    for (name, rule) in RULES {
        for violation in rule(&tree) {
            println!("{violation} [{name}]");
            total += 1;
        }
    }
    if total == 0 {
        println!("tidy: {} files, {} rules, no violation", tree.len(), RULES.len());
        ExitCode::SUCCESS
    } else {
        println!("tidy: {total} violations");
        ExitCode::FAILURE
    }
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let mut names: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }
}
