//! The program `pinpriq-cluster-sim`: runs seeds of the simulator of clusters.
//!
//! It parses its arguments by hand, since there are few and only developers use them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use pinpriq_testing::cluster_sim::{Outcome, run};

const USAGE: &str = "\
pinpriq-cluster-sim runs nodes of a cluster on a simulated engine, registry, network and clocks.

  --seeds A..B        run these seeds (default 0..100)
  --seed S            run this seed alone
  --all-faults        fail unless every kind of fault has struck
  --first-failure     stop at the first seed that fails
";

fn main() -> ExitCode {
    let Asked { seeds, all_faults, first_failure } = match parse(std::env::args().skip(1)) {
        Ok(parsed) => parsed,
        Err(wrong) => {
            eprintln!("pinpriq-cluster-sim: {wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut total = Outcome::default();
    let mut failed = 0;
    for seed in seeds.clone() {
        // A panic is a finding, and its message was printed.
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| run(seed))) else {
            eprintln!("FAILED: seed={seed} (again with --seed {seed})");
            failed += 1;
            if first_failure {
                return ExitCode::FAILURE;
            }
            continue;
        };
        total.calls += outcome.calls;
        total.unknown += outcome.unknown;
        total.take_overs += outcome.take_overs;
        total.moves += outcome.moves;
        total.sent_away += outcome.sent_away;
        total.faults.merge(&outcome.faults);
        total.digest = total.digest.rotate_left(7) ^ outcome.digest;
    }
    let missing = total.faults.missing();
    println!(
        "{} seeds, {} requests ({} unknown), {} take-overs, {} hand-overs, {} redirections, \
         {} kinds of faults, digest {:016x}",
        seeds.end - seeds.start,
        total.calls,
        total.unknown,
        total.take_overs,
        total.moves,
        total.sent_away,
        total.faults.kinds(),
        total.digest
    );
    print!("{}", total.faults);
    if all_faults && !missing.is_empty() {
        eprintln!("these faults never struck: {}", missing.join(", "));
        return ExitCode::FAILURE;
    }
    if failed > 0 {
        eprintln!("{failed} seeds failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The parsed arguments.
struct Asked {
    seeds: Range<u64>,
    all_faults: bool,
    first_failure: bool,
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { seeds: 0..100, all_faults: false, first_failure: false };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or("seeds are given as A..B")?;
                asked.seeds = number(from)?..number(to)?;
            }
            "--seed" => {
                let seed = number(&value()?)?;
                asked.seeds = seed..seed + 1;
            }
            "--all-faults" => asked.all_faults = true,
            "--first-failure" => asked.first_failure = true,
            _ => return Err(format!("{argument} is no option")),
        }
    }
    Ok(asked)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}
