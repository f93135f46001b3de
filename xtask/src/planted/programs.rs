//! Builds the test programs of the copy that has every bug in it.
//!
//! Only the crates of the workspace are built for it. Those of others are built already.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::VARIABLE;
use super::copy::copied_root;
use super::table::{Bug, Suite};
use crate::tidy::tree::root;

/// Test programs and the simulator.
#[derive(Debug)]
pub(crate) struct Programs {
    tests: Vec<(String, Kind, PathBuf)>,
    pub(crate) simulator: PathBuf,
    /// The simulator of clusters.
    pub(crate) cluster_simulator: PathBuf,
}

/// Which tests of a crate a program holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Those in `tests`.
    Outside,
    /// Those within the source.
    Within,
}

/// The crate of both simulators.
const SIMULATORS: &str = "pinpriq-testing";
const SIMULATOR: &str = "pinpriq-sim";
const CLUSTER_SIMULATOR: &str = "pinpriq-cluster-sim";

impl Programs {
    /// Returns the test program of this kind of a crate.
    pub(crate) fn tests_of(&self, name: &str, kind: Kind) -> Option<&Path> {
        let found = self.tests.iter().find(|known| (known.0.as_str(), known.1) == (name, kind));
        found.map(|(_, _, path)| path.as_path())
    }
}

/// Returns the directory of a crate in the copy, in which its tests expect to run.
pub(crate) fn directory_of(name: &str) -> PathBuf {
    copied_root().join("crates").join(name)
}

/// Builds all of them. The error says what went wrong.
pub(crate) fn build(bugs: &[Bug]) -> Result<Programs, String> {
    // All of the workspace, so that crates of others need not be built again with other features.
    // The simulators have tests that run them, so they are built too.
    let built = cargo(&["test", "--workspace", "--no-run", "--lib", "--test", "it"])?;
    let mut tests = Vec::new();
    for (package, kind) in needed(bugs) {
        let word = if kind == Kind::Within { "lib" } else { "test" };
        let path = executable(&built, package, word, None);
        let path = path.ok_or_else(|| format!("{package} has no tests"))?;
        tests.push((package.to_owned(), kind, path));
    }
    let simulator = |name| {
        let found = executable(&built, SIMULATORS, "bin", Some(name));
        found.ok_or_else(|| format!("there is no {name}"))
    };
    Ok(Programs {
        tests,
        simulator: simulator(SIMULATOR)?,
        cluster_simulator: simulator(CLUSTER_SIMULATOR)?,
    })
}

/// Returns which tests of which crates ought to object to bugs.
fn needed(bugs: &[Bug]) -> BTreeSet<(&str, Kind)> {
    let suites = bugs.iter().flat_map(|bug| &bug.tests);
    suites
        .filter_map(|suite| match suite {
            Suite::Tests { package, kind, .. } => Some((package.as_str(), *kind)),
            Suite::Simulator | Suite::ClusterSimulator => None,
        })
        .collect()
}

/// Runs cargo in the copy, and returns its messages.
fn cargo(arguments: &[&str]) -> Result<String, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let mut command = Command::new(program);
    command.args(arguments).arg("--message-format=json-render-diagnostics");
    command.current_dir(copied_root()).env("CARGO_TARGET_DIR", root().join(target));
    command.env_remove(VARIABLE);
    command.env("RUSTC_WORKSPACE_WRAPPER", root().join("scripts/rustc-with-bugs"));
    let built = command.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !built.status.success() {
        return Err(format!("cargo {} fails", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&built.stdout).into_owned())
}

/// Finds the program of this kind of a crate, and of this name if one is given, in the messages of
/// cargo, which have an object in each line.
fn executable(messages: &str, package: &str, kind: &str, name: Option<&str>) -> Option<PathBuf> {
    let manifest = format!("/crates/{package}/Cargo.toml\"");
    let kind = format!("\"kind\":[\"{kind}\"]");
    let name = name.map_or_else(String::new, |name| format!("\"name\":\"{name}\""));
    let ours = |line: &&str| [&manifest, &kind, &name].iter().all(|it| line.contains(it.as_str()));
    let mut paths = messages.lines().filter(ours).filter_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        rest.split_once('"').map(|(path, _)| PathBuf::from(path))
    });
    paths.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_crate_is_found_in_the_messages() {
        let messages = r#"
{"manifest_path":"/a/crates/pinpriq-proto/Cargo.toml","kind":["lib"],"executable":null}
{"manifest_path":"/a/crates/pinpriq-proto/Cargo.toml","kind":["test"],"executable":"/t/it-1"}
{"manifest_path":"/a/crates/b/Cargo.toml","kind":["bin"],"name":"sim","executable":"/t/sim"}
{"manifest_path":"/a/crates/b/Cargo.toml","kind":["bin"],"name":"crash","executable":"/t/crash"}
"#;
        let found = |package, kind, name| executable(messages, package, kind, name);
        assert_eq!(found("pinpriq-proto", "test", None), Some(PathBuf::from("/t/it-1")));
        assert_eq!(found("b", "bin", Some("sim")), Some(PathBuf::from("/t/sim")));
        assert_eq!(found("b", "test", None), None);
    }
}
