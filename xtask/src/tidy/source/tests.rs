//! What splitting Rust text must get right, and where it stops.

use super::{Source, lines_naming};

#[track_caller]
fn check(text: &str, code: &str, comments: &str) {
    let source = Source::new(text);
    let words: Vec<&str> = source.tokens().iter().map(|token| token.text.as_str()).collect();
    assert_eq!(words.join(" "), code, "code of {text}");
    assert_eq!(source.comments.join("|"), comments, "comments of {text}");
}

#[track_caller]
fn check_naming(text: &str, path: &[&str], lines: &[usize]) {
    let source = Source::new(text);
    assert_eq!(lines_naming(source.tokens(), path), lines, "{text}");
}

#[test]
fn comments_and_literals_are_no_code() {
    check("let a = 1; // b c", "let a = 1 ;", "// b c");
    check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
    check("a(\"// b\", c)", "a ( , c )", "");
    check(r#"a("\"b", c)"#, "a ( , c )", "");
    check("a(r#\"b\"c\"#, d)", "a ( , d )", "");
    check("a(br\"b\\\", d)", "a ( , d )", "");
    check("a(b\"c\", d)", "a ( b , d )", "");
    check("a(\"b\nc\", d)", "a ( , d )", "|");
    check("/// a\nb", "b", "/// a|");
}

#[test]
fn characters_and_lifetimes_are_told_apart() {
    check("a('\"', b)", "a ( , b )", "");
    check(r"a('\'', '\\', b)", "a ( , , b )", "");
    check("fn a<'b>(c: &'b d)", "fn a < ' b > ( c : & ' b d )", "");
    check("'a: loop { break 'a; }", "' a : loop { break ' a ; }", "");
}

#[test]
fn words_that_look_like_raw_strings_are_code() {
    check("r#fn + bar + r", "r # fn + bar + r", "");
    check("for(a, br)", "for ( a , br )", "");
}

#[test]
fn an_end_within_a_literal_or_comment_is_the_end() {
    check("a \"b", "a", "");
    check("a \"b\\", "a", "");
    check("a /* b", "a", "/* b");
    check("a '\\", "a", "");
    check("a /*/", "a", "/*/");
}

#[test]
fn paths_are_found_in_every_form_of_use() {
    let path = ["std", "fs"];
    check_naming("use std::fs;", &path, &[1]);
    check_naming("a\nstd::fs::read(b)", &path, &[2]);
    check_naming("use std::{fs, io};", &path, &[1]);
    check_naming("use std::{\n    io,\n    fs::File,\n};", &path, &[3]);
    check_naming("use std::{io::{self, fs}, net};", &path, &[]);
    check_naming("use std::{io::{self}, fs};", &path, &[1]);
    check_naming("use std::io; fs::read(a)", &path, &[]);
    check_naming("a.std; std :: fs", &path, &[1]);
    check_naming("use std::{", &path, &[]);
    check_naming("std", &path, &[]);
}

#[test]
fn items_for_tests_are_left_out() {
    let text = "a; #[cfg(test)] mod tests { fn b() { c } } d; #[cfg(test)] use e; f";
    let product = Source::new(text).tokens_of_product();
    let words: Vec<&str> = product.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(words, ["a", ";", "d", ";", "f"]);
}
