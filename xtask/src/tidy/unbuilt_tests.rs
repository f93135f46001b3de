//! No test stands where cargo would not run it.
//!
//! A crate without tests in its source says `test = false`, and one without examples in its
//! comments `doctest = false`, since building a program that runs nothing takes time. This rule
//! objects when such a crate gets a test. It does not look at programs and integration tests.

use toml::{Table, Value};

use super::Violation;
use super::tree::Tree;

/// Crates whose manifest switches tests off have none.
pub(crate) fn unbuilt_tests(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for manifest in tree.files().filter(|file| file.path.ends_with("/Cargo.toml")) {
        // What is no TOML is reported by the rule on directions.
        let Ok(table) = manifest.text.parse::<Table>() else { continue };
        let is_off = |key: &str| {
            let lib = table.get("lib").and_then(Value::as_table);
            lib.and_then(|lib| lib.get(key)).and_then(Value::as_bool) == Some(false)
        };
        let source = manifest.path.replace("/Cargo.toml", "/src/");
        for file in tree.files().filter(|file| file.path.starts_with(&source)) {
            let has_tests = is_off("test") && file.text.lines().any(is_test);
            let has_examples = is_off("doctest") && file.text.lines().any(is_example);
            if has_tests || has_examples {
                let key = if has_tests { "test" } else { "doctest" };
                let message = format!("does not run: {} has `{key} = false`", manifest.path);
                found.push(Violation::new(&file.path, 0, message));
            }
        }
    }
    found
}

fn is_test(line: &str) -> bool {
    line.trim_start().starts_with("#[test]")
}

/// Whether an example begins or ends in this line of a comment.
fn is_example(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("/// ```") || line.starts_with("//! ```")
}

#[cfg(test)]
mod tests {
    use super::unbuilt_tests;
    use crate::tidy::samples::{check_repository, check_tree};

    #[test]
    fn tests_are_where_cargo_runs_them() {
        let manifest = |keys: &str| format!("[package]\nname = \"a\"\n[lib]\n{keys}\n");
        let (tested, example) = ("    #[test]\nfn f() {}\n", "/// ```\n/// f();\n/// ```\n");
        for (keys, text, count) in [
            ("test = false", tested, 1),
            ("test = false", example, 0),
            ("doctest = false", tested, 0),
            ("doctest = false", example, 1),
            ("", tested, 0),
        ] {
            let files = [("crates/a/Cargo.toml", &*manifest(keys)), ("crates/a/src/b.rs", text)];
            check_tree(unbuilt_tests, &files, count);
        }
        check_repository(unbuilt_tests);
    }
}
