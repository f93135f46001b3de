//! Runs every script in `testdata` and compares its outputs with those in the script.
//!
//! With `UPDATE_EXPECT=1` in the environment, the outputs are rewritten. The format of scripts is
//! described in [`crate::script`].

use std::path::{Path, PathBuf};

use crate::script;

#[test]
fn scripts_do_what_they_say() {
    let paths = script_paths();
    assert!(paths.len() >= 40, "only {} scripts were found", paths.len());
    let rewrites = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failures = Vec::new();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path).unwrap();
        // If one script fails, the others still run.
        let played = std::panic::catch_unwind(|| script::play(&text));
        match played {
            Err(_) => failures.push(format!("{name} panicked, as said above")),
            Ok(played) if played == text => {}
            Ok(played) if rewrites => expect_test::expect_file![path].assert_eq(&played),
            Ok(played) => failures.push(format!("{name}:\n{}", first_difference(&text, &played))),
        }
    }
    assert!(failures.is_empty(), "{} scripts fail:\n{}", failures.len(), failures.join("\n"));
}

fn script_paths() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the first line that differs, with the lines before it.
fn first_difference(expected: &str, actual: &str) -> String {
    let (mut expected_lines, mut actual_lines) = (expected.lines(), actual.lines());
    let mut before = "";
    let mut number = 1;
    loop {
        match (expected_lines.next(), actual_lines.next()) {
            (Some(expected), Some(actual)) if expected == actual => before = actual,
            (expected, actual) => {
                return format!(
                    "  after {before:?}, in line {number}\n  expected {expected:?}\n  got      \
                     {actual:?}"
                );
            }
        }
        number += 1;
    }
}
