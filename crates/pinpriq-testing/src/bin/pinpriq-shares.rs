//! The program `pinpriq-shares`: plays the scenarios of fair shares and limits with a simulated
//! server and prints their figures, or tries limits alone.
//!
//! A real server is asked by `pinpriq-crash shares`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::process::ExitCode;

use pinpriq_testing::shares::costs;
use pinpriq_testing::shares::takes::{self, Tried};
use pinpriq_testing::shares::{Fault, Figure, SCENARIOS, Scenario, Simulated, run, table};

const USAGE: &str = "\
usage: pinpriq-shares [SCENARIO]...
       pinpriq-shares --takes N [--seed S]
       pinpriq-shares --costs SHARES TASKS

Plays scenarios, or all of them, and prints what was measured. With --takes, tasks are taken so many
times under limits that change, with fail-overs, and not one may be taken beyond a limit. With
--costs, time and memory of an engine are measured with so many shares of so many tasks each.
Exit codes: 0 everything is as promised, 1 something is not, 2 wrong usage.
";

/// What is wanted.
enum Wanted {
    Scenarios(Vec<Scenario>),
    Takes { count: u64, seed: u64 },
    Costs { shares: u64, each: u64 },
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(wanted) = wanted(&arguments) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    match wanted {
        Wanted::Scenarios(scenarios) => match play(&scenarios) {
            Ok(played) => {
                print!("{}", table(&played));
                let holds = played.iter().flat_map(|(_, figures)| figures).all(|it| it.holds);
                if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            Err(fault) => {
                eprintln!("{fault}");
                ExitCode::FAILURE
            }
        },
        Wanted::Costs { shares, each } => {
            println!("{}", costs::measure(shares, each, read));
            ExitCode::SUCCESS
        }
        Wanted::Takes { count, seed } => {
            let Tried { takes, failovers, most, refused } = takes::run(seed, count);
            println!(
                "{takes} takes and {failovers} fail-overs, seed {seed}: none over a limit, \
                 {most} at once at most, and {refused} found everything at its limit"
            );
            ExitCode::SUCCESS
        }
    }
}

fn play(scenarios: &[Scenario]) -> Result<Vec<(&str, Vec<Figure>)>, Fault> {
    let play = |scenario: &Scenario| {
        let mut server = Simulated::new(scenario.restarts())?;
        let figures = run(scenario, &mut server);
        Ok((scenario.what, figures.map_err(|fault| format!("{}: {fault}", scenario.name))?))
    };
    scenarios.iter().map(play).collect()
}

/// Reads what the kernel tells about this process.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn wanted(arguments: &[String]) -> Option<Wanted> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Some(Wanted::Scenarios(SCENARIOS.to_vec())),
        ["--takes", count] => Some(Wanted::Takes { count: count.parse().ok()?, seed: 1 }),
        ["--takes", count, "--seed", seed] => {
            Some(Wanted::Takes { count: count.parse().ok()?, seed: seed.parse().ok()? })
        }
        ["--costs", shares, each] => {
            Some(Wanted::Costs { shares: shares.parse().ok()?, each: each.parse().ok()? })
        }
        names => {
            let find = |name: &&str| SCENARIOS.iter().find(|it| it.name == *name).copied();
            names.iter().map(find).collect::<Option<Vec<Scenario>>>().map(Wanted::Scenarios)
        }
    }
}
