//! Runs every target with every input kept in `fuzz/`: inputs that a fuzzer found interesting, and
//! those of former bugs. It invents no inputs.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stderr, reason = "a failed run says with which input")]

use std::path::{Path, PathBuf};

use pinpriq_fuzz::TARGETS;

/// Reports the input when a target panics.
struct Situation(PathBuf);

impl Drop for Situation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input is {}", self.0.display());
        }
    }
}

/// Returns the inputs in a directory below `fuzz/`, by name. A missing directory has none.
fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    assert!(fuzz.is_dir(), "the inputs are in {}", fuzz.display());
    let Ok(entries) = std::fs::read_dir(fuzz.join(kind).join(target)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[expect(clippy::disallowed_methods, reason = "the inputs are no part of a data directory")]
fn replay(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    let corpus = inputs("corpus", name);
    assert!(!corpus.is_empty(), "{name} has inputs");
    for path in corpus.into_iter().chain(inputs("regressions", name)) {
        let bytes = std::fs::read(&path).unwrap();
        let _situation = Situation(path);
        target(&bytes);
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

#[test]
fn every_target_is_replayed_and_has_its_wrapper() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut wrappers: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    wrappers.sort();
    let mut targets = TARGETS.map(|(name, _)| name.to_owned());
    targets.sort();
    assert_eq!(wrappers, targets);
}
