//! Builds the test programs with every bug in them, and checks that a build for use has none.
//!
//! Only the crates of the workspace are built again for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tidy::tree::root;

/// Test programs and the simulator.
#[derive(Debug)]
pub(crate) struct Programs {
    tests: Vec<(&'static str, Kind, PathBuf)>,
    pub(crate) simulator: PathBuf,
    /// The simulator of clusters.
    pub(crate) cluster_simulator: PathBuf,
}

/// Which tests of a crate a program holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Those in `tests`.
    Outside,
    /// Those within the source.
    Within,
}

/// The crates whose tests are used.
const TESTED: [&str; 8] = [
    "pinpriq-engine",
    "pinpriq-proto",
    "pinpriq-store",
    "pinpriq-ledger",
    "pinpriq-cluster",
    "pinpriq-etcd",
    "pinpriq-postgres",
    "pinpriq-server",
];
const SIMULATOR: &str = "pinpriq-sim";
const CLUSTER_SIMULATOR: &str = "pinpriq-cluster-sim";
const PLANTED: &str = "pinpriq-planted";

impl Programs {
    /// Returns the test program of this kind of a crate.
    pub(crate) fn tests_of(&self, name: &str, kind: Kind) -> Option<&Path> {
        let found = self.tests.iter().find(|known| (known.0, known.1) == (name, kind));
        found.map(|(_, _, path)| path.as_path())
    }
}

/// Returns the directory of a crate, in which its tests expect to run.
pub(crate) fn directory_of(name: &str) -> PathBuf {
    root().join("crates").join(name)
}

/// Builds all of them. The error says what went wrong.
pub(crate) fn build() -> Result<Programs, String> {
    look_for_bugs_in_use()?;
    // All of the workspace, so that crates of others need not be built again with other features.
    // The simulators have tests that run them, so they are built too.
    let built = cargo(&["test", "--workspace", "--no-run", "--lib", "--test", "it"])?;
    let mut tests = Vec::new();
    for name in TESTED {
        for (kind, word) in [(Kind::Outside, "test"), (Kind::Within, "lib")] {
            let path = executable(&built, name, word);
            tests.push((name, kind, path.ok_or_else(|| format!("{name} has no tests"))?));
        }
    }
    let simulator =
        |name| executable(&built, name, "bin").ok_or_else(|| format!("there is no {name}"));
    Ok(Programs {
        tests,
        simulator: simulator(SIMULATOR)?,
        cluster_simulator: simulator(CLUSTER_SIMULATOR)?,
    })
}

/// Checks that the program in a build for use does not contain the crate that plants bugs.
fn look_for_bugs_in_use() -> Result<(), String> {
    let arguments = ["tree", "--package", "pinpriq", "--edges", "normal,build", "--prefix", "none"];
    let mut tree = Command::new(cargo_program());
    tree.args(arguments).current_dir(root()).stderr(Stdio::inherit());
    let tree = tree.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
    let listing = String::from_utf8_lossy(&tree.stdout);
    if !tree.status.success() || !listing.contains("pinpriq-engine") {
        return Err("cargo does not say what the program is made of".to_owned());
    }
    // Each line begins with the name of a crate.
    if listing.lines().any(|line| line.split(' ').next() == Some(PLANTED)) {
        return Err(format!("{PLANTED} is part of the program in a build for use"));
    }
    Ok(())
}

/// Runs cargo with bugs planted, and returns its messages.
fn cargo(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(cargo_program());
    command.args(arguments).arg("--message-format=json-render-diagnostics").current_dir(root());
    // The build must not fix which bug is planted.
    command.env_remove(pinpriq_planted::VARIABLE);
    command.env("RUSTC_WORKSPACE_WRAPPER", root().join("scripts/rustc-with-bugs"));
    let built = command.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !built.status.success() {
        return Err(format!("cargo {} fails", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&built.stdout).into_owned())
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Finds the program of this kind of a crate in the messages of cargo, which have an object in each
/// line.
fn executable(messages: &str, name: &str, kind: &str) -> Option<PathBuf> {
    let manifest = format!("/crates/{name}/Cargo.toml\"");
    let kind = format!("\"kind\":[\"{kind}\"]");
    let ours = |line: &&str| line.contains(&manifest) && line.contains(&kind);
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
{"manifest_path":"/a/crates/pinpriq-sim/Cargo.toml","kind":["bin"],"executable":"/t/sim"}
"#;
        let found = |name, kind| executable(messages, name, kind);
        assert_eq!(found("pinpriq-proto", "test"), Some(PathBuf::from("/t/it-1")));
        assert_eq!(found("pinpriq-sim", "bin"), Some(PathBuf::from("/t/sim")));
        assert_eq!(found("pinpriq-sim", "test"), None);
    }
}
