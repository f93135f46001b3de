//! The shape of files: a header on each, a bound on length and width, no stray white space.
//!
//! Whatever rustfmt formats is left to rustfmt.

use super::Violation;
use super::tree::{File, Tree};

/// A file longer than this does two things. Tests may have any length.
const LINES_MAX: usize = 800;

/// The width that two files side by side can show.
pub(super) const COLUMNS_MAX: usize = 100;

/// Every Rust file begins with what it is for.
pub(crate) fn header(tree: &Tree) -> Vec<Violation> {
    let ours = |path: &str| path.starts_with("crates/") || path.starts_with("xtask/");
    tree.sources()
        .filter(|(file, _)| ours(&file.path) && !says_what_it_is_for(&file.text))
        .map(|(file, _)| {
            let message = "begin with a `//!` header: two lines, or one sentence with a full stop";
            Violation::new(&file.path, 1, message)
        })
        .collect()
}

fn says_what_it_is_for(text: &str) -> bool {
    let lines: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.as_slice() {
        [] => false,
        // Three words with a full stop are a note to oneself.
        [sentence] => sentence.ends_with('.') && sentence.split_whitespace().count() > 3,
        _ => true,
    }
}

/// No Rust file is too long to be read in one sitting.
pub(crate) fn length(tree: &Tree) -> Vec<Violation> {
    let long = |file: &File| !file.is_test() && file.text.lines().count() > LINES_MAX;
    tree.sources()
        .filter(|(file, _)| long(file))
        .map(|(file, _)| {
            Violation::new(&file.path, 0, format!("longer than {LINES_MAX} lines: split it"))
        })
        .collect()
}

/// No line of Rust or TOML is too wide.
pub(crate) fn columns(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| file.has_extension("rs") || file.has_extension("toml")) {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                let message = format!("{columns} columns, {COLUMNS_MAX} is the most");
                found.push(Violation::new(&file.path, index + 1, message));
            }
        }
    }
    found
}

/// No tabs, no carriage returns, and nothing invisible at the end of a line. Expected output of
/// programs in `testdata/` is exempt, and Go is indented with tabs.
pub(crate) fn white_space(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| !file.path.contains("/testdata/")) {
        let is_go = file.has_extension("go");
        for (index, line) in file.text.split('\n').enumerate() {
            let message = if line.contains('\t') && !is_go {
                "a tab: use spaces"
            } else if line.ends_with(char::is_whitespace) {
                "white space at the end of the line"
            } else {
                continue;
            };
            found.push(Violation::new(&file.path, index + 1, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{columns, header, length, white_space};
    use crate::tidy::samples::{check, check_repository};

    #[test]
    fn every_file_has_a_header() {
        check(
            header,
            &[
                ("crates/a/src/lib.rs", ""),
                ("crates/a/src/lib.rs", "fn a() {}\n"),
                ("crates/a/src/lib.rs", "\n//! The header does not come first.\n"),
                ("crates/a/src/lib.rs", "//! No full stop at the end\n"),
                ("crates/a/src/lib.rs", "//! Later on.\n"),
                ("crates/a/src/lib.rs", "/// This is not the header.\nfn a() {}\n"),
                ("xtask/src/main.rs", "//!\n//!\nfn main() {}\n"),
            ],
            &[
                ("crates/a/src/lib.rs", "//! What this file is for.\n"),
                ("crates/a/src/lib.rs", "//! A sentence that takes\n//! two lines\n"),
                ("docs/example.rs", "fn a() {}\n"),
                ("crates/a/README.md", "# A\n"),
            ],
        );
        check_repository(header);
    }

    #[test]
    fn files_are_short_enough_to_read() {
        let long = "a\n".repeat(801);
        let short = "a\n".repeat(800);
        check(
            length,
            &[("crates/a/src/b.rs", &long)],
            &[
                ("crates/a/src/b.rs", &short),
                ("crates/a/src/b/tests.rs", &long),
                ("crates/a/tests/it/main.rs", &long),
                ("docs/a.md", &long),
            ],
        );
        check_repository(length);
    }

    #[test]
    fn lines_are_narrow_enough() {
        let wide = "x".repeat(101);
        let narrow = "ü".repeat(100);
        check(
            columns,
            &[("a.rs", &wide), ("a.toml", &wide)],
            &[("a.rs", &narrow), ("a.md", &wide), ("Cargo.lock", &wide)],
        );
        check_repository(columns);
    }

    #[test]
    fn white_space_is_only_between_words() {
        check(
            white_space,
            &[("a.md", "a\tb\n"), ("a.rs", "a \n"), ("a.rs", "a\r\n"), ("a.toml", "a\n  ")],
            &[
                ("a.md", "a b\n\n  c\n"),
                ("a.rs", ""),
                ("b/testdata/a.txt", "a \n"),
                ("fuzz/regressions/resp/a", "a\r\n"),
            ],
        );
        check_repository(white_space);
    }
}
