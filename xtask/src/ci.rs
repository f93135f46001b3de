//! The fast gate: what must pass before a commit.
//!
//! It stops at the first step that fails, so that the reason is the last thing on the screen. It
//! does not look at dependencies: `.ci/run` does.

use std::process::{Command, ExitCode};

use crate::tidy;

/// A step that runs cargo: its name, its arguments, and the flags for rustdoc.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    rustdoc_flags: Option<&'static str>,
}

/// The steps, the quick ones first.
const STEPS: [Step; 4] = [
    Step { name: "format", arguments: &["fmt", "--all", "--check"], rustdoc_flags: None },
    Step {
        name: "clippy",
        arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        rustdoc_flags: None,
    },
    Step { name: "tests", arguments: &["test", "--workspace"], rustdoc_flags: None },
    Step {
        name: "documentation",
        arguments: &["doc", "--workspace", "--no-deps"],
        rustdoc_flags: Some("-D warnings"),
    },
];

/// Runs the gate and says how it ended.
pub(crate) fn run() -> ExitCode {
    println!("ci: house rules");
    if tidy::run() != ExitCode::SUCCESS {
        println!("ci: FAILED at the house rules");
        return ExitCode::FAILURE;
    }
    for step in &STEPS {
        println!("ci: {} (cargo {})", step.name, step.arguments.join(" "));
        if !succeeds(step) {
            println!("ci: FAILED at {}", step.name);
            return ExitCode::FAILURE;
        }
    }
    println!("ci: passed");
    ExitCode::SUCCESS
}

fn succeeds(step: &Step) -> bool {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tidy::tree::root()).args(step.arguments);
    if let Some(flags) = step.rustdoc_flags {
        command.env("RUSTDOCFLAGS", flags);
    }
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo cannot be started: {error}");
            false
        }
    }
}
