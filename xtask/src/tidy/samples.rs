//! Shows in the test of a rule that the rule objects where it should and nowhere else.
//!
//! The last step of each test is the repository itself, which is read once for all of them.

use std::sync::OnceLock;

use super::Rule;
use super::tree::Tree;

/// A file of a made-up repository: its path and its text.
type Sample<'a> = (&'a str, &'a str);

/// Checks that `rule` objects to each of `bad` alone and to none of `good` alone.
#[track_caller]
pub(crate) fn check(rule: Rule, bad: &[Sample<'_>], good: &[Sample<'_>]) {
    for sample in bad {
        check_tree(rule, &[*sample], 1);
    }
    for sample in good {
        check_tree(rule, &[*sample], 0);
    }
}

/// Checks how many violations `rule` finds in a repository of these files.
#[track_caller]
pub(crate) fn check_tree(rule: Rule, files: &[Sample<'_>], count: usize) {
    let found = rule(&Tree::of_samples(files));
    assert_eq!(found.len(), count, "{files:#?} gave {found:#?}");
}

/// Checks that the repository itself follows `rule`.
#[track_caller]
pub(crate) fn check_repository(rule: Rule) {
    static TREE: OnceLock<Tree> = OnceLock::new();
    let tree = TREE.get_or_init(|| Tree::of_repository().expect("the repository can be read"));
    let found: Vec<String> = rule(tree).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "house rules are broken:\n{}", found.join("\n"));
}
