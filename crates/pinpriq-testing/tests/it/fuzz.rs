//! Runs every target with the inputs of former bugs, which are in `fuzz/regressions`, and with some
//! random ones. It does not look for new ways through the code, as a fuzzer does.

use std::path::{Path, PathBuf};

use pinpriq_testing::Dice;
use pinpriq_testing::fuzz::TARGETS;

/// How many random inputs each target gets, and how long they are at most.
const RANDOM_INPUTS: u64 = 64;
const RANDOM_BYTES_MAX: u64 = 512;

/// Reports the input when a target panics.
struct Situation(String);

impl Drop for Situation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input is {}", self.0);
        }
    }
}

/// Returns the inputs of former bugs of a target, by name.
fn regressions(target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    assert!(fuzz.is_dir(), "the inputs are in {}", fuzz.display());
    let directory = fuzz.join("regressions").join(target);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[expect(clippy::disallowed_methods, reason = "the inputs are no part of a data directory")]
fn replay(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    for path in regressions(name) {
        let bytes = std::fs::read(&path).unwrap();
        let _situation = Situation(path.display().to_string());
        target(&bytes);
    }
    for seed in 0..RANDOM_INPUTS {
        let mut dice = Dice::new(seed);
        let length = dice.below(RANDOM_BYTES_MAX + 1);
        let _situation = Situation(format!("random, seed {seed}"));
        target(&dice.bytes(usize::try_from(length).unwrap()));
    }
}

#[test]
fn requests_and_replies_of_resp_keep_their_promises() {
    replay("resp");
}

#[test]
fn requests_and_frames_of_pinpriq_keep_their_promises() {
    replay("pinpriq_wire");
}

#[test]
fn damaged_journals_are_recovered_or_refused() {
    replay("recovery");
}

#[test]
fn commands_do_what_the_model_does() {
    replay("commands");
}

#[test]
fn configurations_are_accepted_or_refused_by_name() {
    replay("configuration");
}

#[test]
fn letters_keep_their_promises() {
    replay("letters");
}

#[test]
fn files_of_users_keep_their_promises() {
    replay("users");
}

#[test]
fn requests_and_answers_of_beanstalkd_keep_their_promises() {
    replay("beanstalkd");
}
