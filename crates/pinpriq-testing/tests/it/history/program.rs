//! The program: exit codes and what it prints.

use std::process::{Command, Output, Stdio};

use crate::history::story::{everything, popped};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinpriq-history"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the test writes the file that is checked")]
fn check(text: &str, flags: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    std::fs::write(&path, text).unwrap();
    run(&[&["check", path.to_str().unwrap()], flags].concat())
}

#[test]
fn a_good_history_is_exit_code_0() {
    let output = check(&everything().text(), &[]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("9 puts acknowledged, 13 deliveries"), "{text}");
    assert!(text.ends_with("no violation\n"), "{text}");
}

#[test]
fn violations_are_exit_code_1_counted_and_the_first_told() {
    let mut story = everything();
    for label in ["pop 9", "pop 10", "ack 4"] {
        story.remove(label);
    }
    story.after("ack 2", |story| story.call("again", crate::history::story::pop(), popped("2")));
    let output = check(&story.text(), &["--details", "2"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("LOST: 3\n  task \""), "{text}");
    assert!(text.contains("\n  and 1 more\nRESURRECTED: 1\n"), "{text}");
    assert!(text.ends_with("VIOLATIONS\n"), "{text}");
}

#[test]
fn the_tolerance_can_be_chosen() {
    let mut story = everything();
    *story.operation("take 5") = crate::history::story::take(Some(3_000));
    assert_eq!(check(&story.text(), &[]).status.code(), Some(1));
    assert_eq!(check(&story.text(), &["--tolerance-ms", "2000"]).status.code(), Some(0));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for arguments in [&[][..], &["look"], &["check"], &["check", "a", "b"], &["check", "--x", "a"]]
    {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn no_history_is_exit_code_3() {
    assert_eq!(run(&["check", "/dev/null/nothing"]).status.code(), Some(3));
    let output = check("nothing\n", &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("line 1"));
}
