//! Names that say nothing: modules for leftovers, functions that get, do or process.
//!
//! The glossary says which word means which thing.

use super::Violation;
use super::source::spells;
use super::tree::Tree;

/// Prefixes of functions that leave out what the function is about.
const PREFIXES: [&str; 3] = ["get_", "do_", "process_"];

/// Names of modules and directories that could contain anything.
const DRAWERS: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "misc", "manager"];

/// Functions and modules are named for what they are about.
pub(crate) fn names(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, source) in tree.sources() {
        let stem = file.path.trim_end_matches(".rs");
        if let Some(drawer) = stem.split('/').find(|part| DRAWERS.contains(part)) {
            let message = format!("`{drawer}` is a drawer: name the module for what is in it");
            found.push(Violation::new(&file.path, 0, message));
        }
        for (index, token) in source.tokens().iter().enumerate() {
            let Some(next) = source.tokens().get(index + 1) else { break };
            let name = next.text.as_str();
            let prefix = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
            if token.text == "fn"
                && let Some(prefix) = prefix
            {
                let message = format!("`{name}`: leave out `{prefix}` and say what it is about");
                found.push(Violation::new(&file.path, token.line, message));
            }
            // A module in its own file is reported with that file.
            let inline = spells(&source.tokens()[index + 1..], &[name, "{"]);
            if token.text == "mod" && inline && DRAWERS.contains(&name) {
                let message = format!("`{name}` is a drawer: name the module for what is in it");
                found.push(Violation::new(&file.path, token.line, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::names;
    use crate::tidy::samples::{check, check_repository};

    #[test]
    fn names_say_what_things_are_about() {
        check(
            names,
            &[
                ("a.rs", "fn get_task() {}\n"),
                ("a.rs", "pub(crate) async fn do_put() {}\n"),
                ("a.rs", "fn\nprocess_queue() {}\n"),
                ("a.rs", "mod helpers { }\n"),
                ("crates/a/src/util.rs", ""),
                ("crates/a/src/common/mod.rs", ""),
                ("crates/a/tests/common/b.rs", ""),
            ],
            &[
                ("a.rs", "fn get() { a.get_mut(); }\n"),
                ("a.rs", "fn done() {}\nfn processor() {}\n"),
                ("a.rs", "// fn get_task, as others call it.\n"),
                ("a.rs", "const A: &str = \"fn get_b() {}\";\n"),
                ("crates/a/src/utility.rs", ""),
            ],
        );
        check_repository(names);
    }
}
