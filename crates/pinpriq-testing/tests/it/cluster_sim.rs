//! The program runs the seeds that it is asked for, and says what it has seen.

use std::io;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_pinpriq-cluster-sim")).args(arguments).output()
}

#[test]
fn seeds_run_and_equal_ones_give_equal_runs() {
    let [first, second] = [(); 2].map(|()| run(&["--seeds", "3..5"]).unwrap());
    let told = String::from_utf8(first.stdout).unwrap();
    assert!(first.status.success(), "{told}");
    assert!(told.starts_with("2 seeds, ") && told.contains("digest"), "{told}");
    assert_eq!(told.as_bytes(), second.stdout);
}

#[test]
fn faults_that_never_struck_are_a_failure_if_all_are_wanted() {
    let outcome = run(&["--seed", "3", "--all-faults"]).unwrap();
    let told = String::from_utf8(outcome.stderr).unwrap();
    assert!(!outcome.status.success());
    assert!(told.contains("these faults never struck"), "{told}");
}

#[test]
fn what_it_does_not_know_is_refused_with_what_it_knows() {
    let outcome = run(&["--sed", "3"]).unwrap();
    let told = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2));
    assert!(told.contains("--sed") && told.contains("--seeds A..B"), "{told}");
}
