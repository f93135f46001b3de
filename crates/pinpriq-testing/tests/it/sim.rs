//! The simulator finds nothing wrong with the product, and detects planted bugs.
//!
//! These runs are short, for every build. The program `pinpriq-sim` runs any number of them.

use pinpriq_testing::sim::{Bug, Failure, Kind, Knobs, Trail, replay, run, run_seeds, shrink};

/// The seeds for every build, and the number of requests in each.
const SEEDS: std::ops::Range<u64> = 40..160;
const OPERATIONS: u64 = 400;

/// A planted bug must be noticed within this many seeds.
const SEEDS_UNTIL_NOTICED: u64 = 120;

fn tell(failure: &Failure) -> String {
    format!("{}\nreplay with --knobs '{}'", failure.message, failure.knobs)
}

#[test]
fn seeds_find_nothing_and_every_kind_of_fault_strikes() {
    let summary = run_seeds(SEEDS, |knobs| knobs.operations = OPERATIONS, None, 1);
    if let Some(failure) = summary.failures.first() {
        panic!("{}", tell(failure));
    }
    assert_eq!(summary.outcome.faults.missing(), [], "{}", summary.outcome.faults);
    assert!(summary.twice > 0, "some seeds run twice");
    assert!(summary.outcome.commands > OPERATIONS * 30, "{summary:?}");
}

#[test]
fn an_archive_in_trouble_has_every_moment_as_it_was() {
    let adjust = |knobs: &mut Knobs| {
        (knobs.operations, knobs.archive, knobs.archive_troubles) = (OPERATIONS, 20, 30);
        (knobs.archive_outages, knobs.archive_kills, knobs.archive_removals) = (6, 25, 4);
    };
    let seeds = 0..12;
    let least = 3 * (seeds.end - seeds.start);
    let summary = run_seeds(seeds, adjust, None, 1);
    if let Some(failure) = summary.failures.first() {
        panic!("{}", tell(failure));
    }
    assert!(summary.outcome.faults.of(Kind::Restored) >= least, "{}", summary.outcome.faults);
}

#[test]
fn runs_that_once_failed_do_not_fail_again() {
    let lines = include_str!("../../testdata/sim/regressions.txt").lines();
    let lines: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(!lines.is_empty(), "there are some");
    for line in lines {
        let knobs = Knobs::parse(line).unwrap();
        assert_eq!(knobs.to_string(), line, "a line has all knobs, in order");
        if let Err(failure) = run(&knobs, None) {
            panic!("{}", tell(&failure));
        }
    }
}

#[test]
fn every_planted_bug_is_noticed() {
    for bug in Bug::ALL {
        let seeds = 0..SEEDS_UNTIL_NOTICED;
        let summary = run_seeds(seeds, |knobs| knobs.operations = 700, Some(bug), 1);
        assert_eq!(summary.failures.len(), 1, "{} goes unnoticed", bug.word());
    }
}

#[test]
fn equal_knobs_give_equal_runs_and_others_do_not() {
    let outcome = |seed| run(&Knobs { operations: 300, ..Knobs::draw(seed) }, None).unwrap();
    assert_eq!(outcome(3), outcome(3));
    assert_ne!(outcome(3).digest, outcome(4).digest);
}

#[test]
fn a_failing_run_shrinks_and_still_fails() {
    let bug = Some(Bug::StaleAccepted);
    let summary = run_seeds(0..20, |knobs| knobs.operations = 600, bug, 1);
    let failure = summary.failures.first().unwrap();
    let small = shrink(failure, bug);
    assert!(small.knobs.operations < failure.knobs.operations, "{}", small.knobs);
    assert!(run(&small.knobs, bug).is_err());
    let trail = Trail::kept();
    assert_eq!(replay(&small.knobs, bug, &trail).map_err(|it| it.message), Err(small.message));
    assert!(!trail.lines().is_empty(), "the trail tells what happened");
}

#[test]
fn knobs_come_back_from_their_text() {
    for seed in [0, 1, 77, u64::MAX] {
        let knobs = Knobs { operations: 12, ..Knobs::draw(seed) };
        assert_eq!(Knobs::parse(&knobs.to_string()), Ok(knobs));
        assert_eq!(Knobs::parse(&knobs.differences()), Ok(knobs));
    }
    for wrong in ["puts", "puts=many", "nosuch=1"] {
        assert!(Knobs::parse(wrong).is_err(), "{wrong}");
    }
}
