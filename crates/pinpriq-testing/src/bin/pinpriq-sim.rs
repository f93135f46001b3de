//! The program `pinpriq-sim`: runs seeds, replays them, and shrinks failing ones.
//!
//! It parses its arguments by hand, since there are few and only developers use them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::process::ExitCode;

use pinpriq_testing::sim::{Bug, Failure, Knobs, Summary, Trail, replay, run_seeds, shrink};

const USAGE: &str = "\
pinpriq-sim runs a whole server on a simulated disk, clock and network.

  --seeds A..B        run these seeds (default 0..100)
  --seed S            run this seed alone
  --operations N      let clients make so many requests in each (default 4000)
  --set name=value    fix a knob; may be given several times
  --knobs 'LINE'      run with exactly these knobs, as a failure prints them
  --bug NAME          plant a bug; --bugs lists them
  --shrink            make what fails smaller
  --trail             tell what happened last before a failure
  --all-faults        fail unless every kind of fault has struck
  --json              print the summary as JSON
";

/// The parsed arguments.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct Asked {
    seeds: Option<std::ops::Range<u64>>,
    operations: Option<u64>,
    fixed: Vec<(String, u64)>,
    knobs: Option<Knobs>,
    bug: Option<Bug>,
    shrinks: bool,
    trail: bool,
    all_faults: bool,
    json: bool,
}

fn main() -> ExitCode {
    let asked = match parse(std::env::args().skip(1)) {
        Ok(Some(asked)) => asked,
        Ok(None) => return ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("pinpriq-sim: {wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // A panic is a finding, and is reported with the knobs that cause it.
    if !asked.trail {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let summary = simulate(&asked);
    for failure in &summary.failures {
        report(failure, &asked);
    }
    let missing = summary.outcome.faults.missing();
    if asked.json {
        print_json(&summary);
    } else {
        println!(
            "{} seeds ({} of them twice), {} requests, {} commands, {} faults, digest {:016x}",
            summary.seeds,
            summary.twice,
            summary.outcome.operations,
            summary.outcome.commands,
            summary.outcome.faults.total(),
            summary.outcome.digest
        );
        print!("{}", summary.outcome.faults);
    }
    if asked.all_faults && !missing.is_empty() {
        let words: Vec<&str> = missing.iter().map(|kind| kind.word()).collect();
        eprintln!("these faults never struck: {}", words.join(", "));
        return ExitCode::FAILURE;
    }
    if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn simulate(asked: &Asked) -> Summary {
    let seeds = match (&asked.knobs, &asked.seeds) {
        (Some(knobs), _) => knobs.seed..knobs.seed + 1,
        (None, Some(seeds)) => seeds.clone(),
        (None, None) => 0..100,
    };
    let adjust = |knobs: &mut Knobs| {
        if let Some(given) = asked.knobs {
            *knobs = given;
        }
        if let Some(operations) = asked.operations {
            knobs.operations = operations;
        }
        for (name, value) in &asked.fixed {
            knobs.set(name, *value);
        }
    };
    run_seeds(seeds, adjust, asked.bug, 1)
}

fn report(failure: &Failure, asked: &Asked) {
    let failure = if asked.shrinks { shrink(failure, asked.bug) } else { failure.clone() };
    let bug = asked.bug.map(|bug| format!(" --bug {}", bug.word())).unwrap_or_default();
    if asked.trail {
        let trail = Trail::kept();
        drop(replay(&failure.knobs, asked.bug, &trail));
        for line in trail.lines() {
            eprintln!("{line}");
        }
    }
    eprintln!("FAILED: {}", failure.message);
    eprintln!("in short: {}", failure.knobs.differences());
    eprintln!(
        "replay:   cargo run --release -p pinpriq-testing --bin pinpriq-sim --{bug} --knobs '{}'",
        failure.knobs
    );
}

fn print_json(summary: &Summary) {
    let faults: Vec<String> = pinpriq_testing::sim::Kind::ALL
        .iter()
        .map(|kind| format!("\"{}\":{}", kind.word(), summary.outcome.faults.of(*kind)))
        .collect();
    println!(
        "{{\"seeds\":{},\"twice\":{},\"requests\":{},\"commands\":{},\"failures\":{},\
         \"digest\":\"{:016x}\",\"faults\":{{{}}}}}",
        summary.seeds,
        summary.twice,
        summary.outcome.operations,
        summary.outcome.commands,
        summary.failures.len(),
        summary.outcome.digest,
        faults.join(",")
    );
}

/// Returns none if there is nothing more to do.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Asked>, String> {
    let mut asked = Asked::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or("seeds are given as A..B")?;
                asked.seeds = Some(number(from)?..number(to)?);
            }
            "--seed" => {
                let seed = number(&value()?)?;
                asked.seeds = Some(seed..seed + 1);
            }
            "--operations" => asked.operations = Some(number(&value()?)?),
            "--set" => {
                let text = value()?;
                let (name, value) = text.split_once('=').ok_or("a knob is set by name=value")?;
                if !Knobs::NAMES.contains(&name) {
                    return Err(format!("there is no knob {name}"));
                }
                asked.fixed.push((name.to_owned(), number(value)?));
            }
            "--knobs" => asked.knobs = Some(Knobs::parse(&value()?)?),
            "--bug" => {
                let name = value()?;
                let bug = Bug::named(&name);
                asked.bug = Some(bug.ok_or_else(|| format!("there is no bug {name}"))?);
            }
            "--bugs" => {
                for bug in Bug::ALL {
                    println!("{}", bug.word());
                }
                return Ok(None);
            }
            "--shrink" => asked.shrinks = true,
            "--trail" => asked.trail = true,
            "--all-faults" => asked.all_faults = true,
            "--json" => asked.json = true,
            "--help" => {
                print!("{USAGE}");
                return Ok(None);
            }
            _ => return Err(format!("{argument} is no option")),
        }
    }
    Ok(Some(asked))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}
