//! Shows what is derived of a small example, for those who read the derives.

use std::io::Write as _;
use std::process::{Command, Stdio};

use expect_test::expect_file;
use syn::DeriveInput;

use crate::{facts, kinds, letters};

fn formatted(text: &str) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    rustfmt.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(rustfmt.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn an_example_is_expanded() {
    let input: DeriveInput = syn::parse_str(include_str!("../testdata/declaration.txt")).unwrap();
    let derived = [facts::derive, kinds::derive, letters::derive];
    let texts = derived.map(|derive| formatted(&derive(&input).unwrap().to_string()));
    expect_file!["../testdata/expanded.txt"].assert_eq(&texts.join("\n"));
}
