//! The chores of the repository, as `cargo xtask <chore>`.
//!
//! Nothing here is part of the product, and nothing in the product depends on it. The house rules
//! themselves are in [`tidy`]; plain `cargo test` enforces them too.

#![expect(clippy::print_stdout, reason = "a tool for people at a terminal")]
#![expect(clippy::print_stderr, reason = "a tool for people at a terminal")]

mod ci;
mod planted;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <chore>

Chores:
  ci              the fast gate: format, house rules, clippy, tests, documentation
  planted [BUG…]  plants each bug, or these, and sees that the tests object; with --quick the
                  simulators need not object where other tests do; with --since COMMIT SEED
                  some by chance, more of those that were touched since the commit
  tidy            the house rules alone; prints each violation";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ci"] => ci::run(),
        ["planted", bugs @ ..] => planted::run(bugs),
        ["tidy"] => tidy::run(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
