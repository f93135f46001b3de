//! Samples for the rules about prose.

use super::{comments, outside, unfinished};
use crate::tidy::samples::{check, check_repository};

#[test]
fn nothing_is_marked_as_unfinished() {
    check(
        unfinished,
        &[
            ("a.rs", "// FIXME: later\n"),
            ("a.rs", "/// Does a thing (TODO).\n"),
            ("a.rs", "/* XXX */\n"),
            ("a.rs", "const TODO: u8 = 1;\n"),
            ("a.rs", "fn a() { todo!() }\n"),
            ("a.rs", "fn a() { unimplemented!(\"b\") }\n"),
            ("a.rs", "#[test]\n#[ignore]\nfn a() {}\n"),
            ("a.rs", "#[ignore = \"slow\"]\nfn a() {}\n"),
            ("a.rs", "#[cfg_attr(windows, ignore)]\nfn a() {}\n"),
            ("a.rs", "#[should_panic(expected = \"b\")]\nfn a() {}\n"),
            ("a.rs", "/// ```ignore\n/// a\n/// ```\n"),
            ("a.md", "- TODO: write this\n"),
            ("a.toml", "# FIXME\n"),
        ],
        &[
            ("a.rs", "const A: &str = \"TODO\";\n"),
            ("a.rs", "// A list of things to do, and some XXXL shirts.\n"),
            ("a.rs", "fn ignore(todo: u8) {}\n"),
            ("a.rs", "#[expect(dead_code)]\nfn a() {}\n"),
            ("a.md", "mktemp /tmp/a.XXXXXX\n"),
        ],
    );
    check_repository(unfinished);
}

#[test]
fn comments_are_sentences() {
    check(
        comments,
        &[
            ("a.rs", "// let a = 1;\n"),
            ("a.rs", "    // fn a() {\n"),
            ("a.rs", "// }\n"),
            ("a.rs", "// #[test]\n"),
            ("a.rs", "// use std::io;\n"),
            ("a.rs", "// self.a(b);\n"),
            ("a.rs", "a(); // println!(\"b\");\n"),
            ("a.rs", "// if a {\n"),
            ("a.rs", "// ====\n"),
            ("a.rs", "// ---- helpers ----\n"),
            ("a.rs", "//----------\n"),
            ("a.rs", "/////////\n"),
            ("a.rs", "/// *****\n"),
            ("a.toml", "# ---- dependencies\n"),
            (".ci/run", "#!/bin/sh\n########\n"),
        ],
        &[
            ("a.rs", "// Let the caller decide; use what is there.\n"),
            ("a.rs", "// use the clock, and\n// let the caller decide (as it must);\n// done.\n"),
            ("a.rs", "/// ```\n/// let a = 1;\n/// ```\n"),
            ("a.rs", "//! | a | b |\n//! |---|---|\n"),
            ("a.rs", "const A: &str = \"// ====\";\n"),
            ("a.rs", "// A -> B --> C\n"),
            ("a.rs", "// -1 is no number here.\n"),
            ("a.md", "# A\n\n----\n"),
        ],
    );
    check_repository(comments);
}

#[test]
fn nothing_names_a_place_that_readers_do_not_have() {
    let path = ["see /wo", "rk/a\n"].concat();
    let home = ["const A: &str = \"/ho", "me/a\";\n"].concat();
    let notes = ["see sha", "red/spec\n"].concat();
    let own = format!("see src{}a.rs\n", ["/ho", "me/"].concat());
    check(
        outside,
        &[("a.md", &path), ("a.rs", &home), ("Cargo.toml", &notes)],
        &[("a.md", "see /var/lib/pinpriq and /usr/share/doc\n"), ("b.md", &own)],
    );
    check_repository(outside);
}
