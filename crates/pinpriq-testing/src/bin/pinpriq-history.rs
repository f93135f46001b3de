//! The program `pinpriq-history`: checks a history and prints its objections.
//!
//! It contacts no server: the file is all it reads.

use std::io::{self, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use pinpriq_testing::history::{History, Tolerance, Unreadable, check};

const USAGE: &str = "usage: pinpriq-history check FILE [--tolerance-ms N] [--details N]

Checks what the clients of a queue wrote down, and lists what no correct queue would have done.
FILE may be - for standard input. Exit codes: 0 nothing to object to, 1 violations, 2 wrong usage,
3 the file is no history.
";

/// How many violations of each kind are printed in full.
const DETAILS: usize = 5;

const VIOLATIONS: u8 = 1;
const WRONG_USAGE: u8 = 2;
const UNREADABLE: u8 = 3;

/// The parsed arguments.
struct Wanted {
    file: String,
    tolerance: Tolerance,
    details: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(wanted) = wanted(&arguments) else {
        return print(&mut io::stderr().lock(), USAGE, WRONG_USAGE);
    };
    let history = match read(&wanted.file) {
        Ok(history) => history,
        Err(error) => {
            let text = format!("{}: {error}\n", wanted.file);
            return print(&mut io::stderr().lock(), &text, UNREADABLE);
        }
    };
    let report = check(&history, wanted.tolerance);
    let code = if report.is_clean() { 0 } else { VIOLATIONS };
    print(&mut io::stdout().lock(), &report.text(wanted.details), code)
}

/// Writes a text. If it is not read, the exit code still gives the result.
fn print(out: &mut impl Write, text: &str, code: u8) -> ExitCode {
    let _ = out.write_all(text.as_bytes());
    ExitCode::from(code)
}

fn wanted(arguments: &[String]) -> Option<Wanted> {
    let (command, rest) = arguments.split_first()?;
    if command != "check" {
        return None;
    }
    let mut file = None;
    let mut tolerance = Tolerance::default();
    let mut details = DETAILS;
    let mut rest = rest.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--tolerance-ms" => {
                let ms: u64 = rest.next()?.parse().ok()?;
                tolerance.fixed_us = ms.checked_mul(1_000)?;
            }
            "--details" => details = rest.next()?.parse().ok()?,
            flag if flag.starts_with("--") => return None,
            name if file.is_none() => file = Some(name.to_owned()),
            _ => return None,
        }
    }
    Some(Wanted { file: file?, tolerance, details })
}

#[expect(clippy::disallowed_methods, reason = "the user names the file that is to be read")]
fn read(file: &str) -> Result<History, Unreadable> {
    if file == "-" {
        return History::read(io::stdin().lock());
    }
    History::read(BufReader::new(std::fs::File::open(Path::new(file))?))
}
