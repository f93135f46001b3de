//! The fast gate: what must pass before a commit.
//!
//! It stops at the first step that fails, so that the reason is the last thing on the screen. Of
//! dependencies it sees only whether the lock files are complete: `.ci/run` looks at more.

use std::process::{Command, ExitCode, Stdio};

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
    for directory in outside() {
        println!("ci: the lock file of {directory}");
        if !is_locked(&directory) {
            println!("ci: FAILED: run `cargo update --workspace` in {directory}");
            return ExitCode::FAILURE;
        }
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

/// The crates that stand outside of the workspace, each with a lock file of its own.
fn outside() -> Vec<String> {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap_or_default();
    let excluded = manifest.get("workspace").and_then(|workspace| workspace.get("exclude"));
    let excluded = excluded.and_then(toml::Value::as_array).into_iter().flatten();
    excluded.filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

/// Whether the lock file of a crate has all that the crate depends on.
fn is_locked(directory: &str) -> bool {
    let manifest = format!("{directory}/Cargo.toml");
    let mut command = cargo();
    command.args(["metadata", "--locked", "--format-version", "1", "--manifest-path", &manifest]);
    command.stdout(Stdio::null());
    is_success(command)
}

fn succeeds(step: &Step) -> bool {
    let mut command = cargo();
    command.args(step.arguments);
    if let Some(flags) = step.rustdoc_flags {
        command.env("RUSTDOCFLAGS", flags);
    }
    is_success(command)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tidy::tree::root());
    command
}

fn is_success(mut command: Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo cannot be started: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::outside;
    use crate::tidy::tree::root;

    #[test]
    fn crates_outside_of_the_workspace_are_known() {
        let outside = outside();
        assert!(outside.iter().any(|directory| directory == "fuzz"), "{outside:?}");
        for directory in outside {
            assert!(root().join(&directory).join("Cargo.lock").is_file(), "{directory}");
        }
    }
}
