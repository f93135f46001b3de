//! Where bugs are planted: each in one place of the product, and only bugs of the list.
//!
//! A build with bugs would notice an unknown name, but not a bug that is planted nowhere. A build
//! for use checks no names.

use std::collections::BTreeMap;

use pinpriq_planted::Bug;

use super::Violation;
use super::source::spells;
use super::tree::Tree;

/// The list of the bugs.
const LIST: &str = "crates/pinpriq-planted/src/list.rs";

/// The crates that bugs are planted in.
const PRODUCT: [&str; 8] = [
    "crates/pinpriq-cluster/src/",
    "crates/pinpriq-engine/src/",
    "crates/pinpriq-etcd/src/",
    "crates/pinpriq-postgres/src/",
    "crates/pinpriq-proto/src/",
    "crates/pinpriq-store/src/",
    "crates/pinpriq-ledger/src/",
    "crates/pinpriq-server/src/",
];

/// Every bug is planted once, and in the product.
pub(crate) fn places(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (file, source) in tree.sources() {
        for tokens in source.tokens().windows(4) {
            if !spells(tokens, &["planted", "!", "("]) {
                continue;
            }
            let (line, name) = (tokens[3].line, &tokens[3].text);
            let mut object = |what: String| found.push(Violation::new(&file.path, line, what));
            if file.is_test() || !PRODUCT.iter().any(|path| file.path.starts_with(path)) {
                object("bugs are planted in the product and nowhere else".to_owned());
            }
            if !Bug::ALL.iter().any(|bug| format!("{bug:?}") == *name) {
                object(format!("{LIST} has no bug {name}"));
            }
            let count = places.entry(name.clone()).or_default();
            *count += 1;
            if *count == 2 {
                object(format!("{name} is planted in another place already"));
            }
        }
    }
    if tree.contains(LIST) {
        let missing = Bug::ALL.iter().filter(|bug| !places.contains_key(&format!("{bug:?}")));
        found.extend(
            missing.map(|bug| Violation::new(LIST, 0, format!("{bug:?} is planted nowhere"))),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::places;
    use crate::tidy::samples::{check, check_repository, check_tree};

    #[test]
    fn every_bug_is_planted_once_and_in_the_product() {
        let engine = "crates/pinpriq-engine/src/operations/put.rs";
        check(
            places,
            &[
                (engine, "fn a() { planted!(NoSuchBug) }"),
                (engine, "fn a() { planted!(SyncSkipped) || planted!(SyncSkipped) }"),
                ("crates/pinpriq-engine/src/put/tests.rs", "fn a() { planted!(SyncSkipped) }"),
                ("crates/pinpriq-sim/src/run.rs", "fn a() { planted!(SyncSkipped) }"),
            ],
            &[
                (engine, "fn a() { planted!(SyncSkipped) }"),
                (engine, "// planted!(NoSuchBug) is asked like this"),
                (engine, "macro_rules! planted { ($bug:ident) => { false }; }"),
            ],
        );
        let count = pinpriq_planted::Bug::ALL.len();
        check_tree(places, &[(super::LIST, "//! None is planted.")], count);
        check_repository(places);
    }
}
