//! The output of programs, and what it means.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use super::{Verdict, judge, simulate, simulated, tested};

fn exit(code: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8)
}

#[test]
fn only_failed_tests_are_an_objection() {
    let failed = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n\
                  thread 'a::b' panicked at x.rs:1:1:\nno\n\nfailures:\n    a::b\n\n\
                  test result: FAILED. 3 passed; 1 failed; 0 ignored\n";
    assert_eq!(tested(exit(101), failed), Verdict::Objected("a::b".to_owned()));
    assert!(matches!(tested(exit(0), failed), Verdict::Broken(_)), "the exit code says another");
    assert!(matches!(tested(exit(101), "test a::b ... "), Verdict::Broken(_)), "it never ended");
    assert!(matches!(tested(ExitStatus::from_raw(6), failed), Verdict::Broken(_)), "it aborted");
}

#[test]
fn a_pass_takes_at_least_one_test() {
    assert_eq!(tested(exit(0), "test result: ok. 12 passed; 0 failed\n"), Verdict::Passed);
    let nothing = "test result: ok. 0 passed; 0 failed; 0 ignored; 90 filtered out\n";
    assert!(matches!(tested(exit(0), nothing), Verdict::Broken(_)));
    assert!(matches!(tested(exit(0), ""), Verdict::Broken(_)));
}

#[test]
fn the_simulator_objects_with_a_seed() {
    let failed = "FAILED: lost\nin short: seed=4\nreplay: sim --knobs 'seed=4 operations=700'\n";
    assert_eq!(simulated(exit(1), failed), Verdict::Objected("seed 4: lost".to_owned()));
    assert_eq!(simulated(exit(0), "20 seeds"), Verdict::Passed);
    assert!(matches!(simulated(exit(2), "there is no option"), Verdict::Broken(_)));
    assert!(matches!(simulated(exit(1), "faults never struck"), Verdict::Broken(_)));
}

/// A simulator that objects at seed 7, and with one seed says this.
fn played(alone: &str) -> impl Fn(&str) -> Command {
    move |seeds| {
        let mut command = Command::new("sh");
        let script = match seeds {
            "0..9" => "echo 'FAILED: lost'; echo 'in short: seed=7'; exit 1",
            "7..8" => alone,
            _ => "exit 2",
        };
        command.args(["-c", script]);
        command
    }
}

#[test]
fn the_seed_at_which_a_simulator_objects_must_pass_without_the_bug() {
    let bug = Some("sync-skipped");
    assert_eq!(simulate(bug, 9, played("true")), Verdict::Objected("seed 7: lost".to_owned()));
    let always = "echo 'FAILED: lost'; echo 'in short: seed=7'; exit 1";
    assert!(matches!(simulate(bug, 9, played(always)), Verdict::Broken(_)));
    assert!(matches!(simulate(bug, 9, played("exit 3")), Verdict::Broken(_)));
}

#[test]
fn both_outputs_of_a_program_are_heard() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo 'test result: ok. 1 passed'; echo oops >&2"]);
    let heard = judge(command, None, |status, text| {
        assert!(status.success());
        Verdict::Broken(text.to_owned())
    });
    assert_eq!(heard, Verdict::Broken("test result: ok. 1 passed\noops\n".to_owned()));
}
