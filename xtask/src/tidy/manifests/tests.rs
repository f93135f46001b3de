//! Samples for the directions between crates.

use super::directions;
use crate::tidy::samples::{check_repository, check_tree};

/// Checks how many objections there are to a crate of this name with these dependencies.
#[track_caller]
fn check(name: &str, dependencies: &str, count: usize) {
    let path = format!("crates/{name}/Cargo.toml");
    let text = format!("[package]\nname = \"{name}\"\n{dependencies}");
    let root = "[workspace.dependencies]\nruntime = { package = \"tokio\", version = \"1\" }\n";
    check_tree(directions, &[("Cargo.toml", root), (&path, &text)], count);
}

#[test]
fn crates_use_each_other_in_one_direction() {
    check("pinpriq-store", "[dependencies]\npinpriq-engine.workspace = true\n", 0);
    check("pinpriq-store", "[dependencies]\npinpriq-server.workspace = true\n", 1);
    check("pinpriq-store", "[dependencies]\npinpriq-other = { path = \"../other\" }\n", 1);
    check("pinpriq-store", "[dev-dependencies]\npinpriq-server.workspace = true\n", 1);
    check("pinpriq-server", "[dependencies]\npinpriq-proto.workspace = true\n", 0);
    check("pinpriq-server", "[dependencies]\npinpriq.workspace = true\n", 1);
    check("pinpriq", "[dependencies]\npinpriq-server.workspace = true\n", 0);
    check("pinpriq", "[dependencies]\npinpriq-engine.workspace = true\n", 1);
    check("pinpriq", "[dependencies]\nxtask = { path = \"../../xtask\" }\n", 1);
    check("pinpriq", "[dependencies]\na = { package = \"xtask\", path = \"b\" }\n", 1);
    check_repository(directions);
}

#[test]
fn the_engine_uses_the_standard_library_and_the_vocabulary_alone() {
    {
        let name = "pinpriq-engine";
        check(name, "", 0);
        check(name, "[dependencies]\n[dev-dependencies]\nproptest = \"1\"\n", 0);
        check(name, "[dependencies]\nthiserror = \"2\"\n", 1);
        check(name, "[build-dependencies]\ncc = \"1\"\n", 1);
        check(name, "[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n", 1);
        check(name, "[dev-dependencies]\npinpriq-store.workspace = true\n", 1);
    }
}

#[test]
fn tests_alone_use_what_tests_the_product() {
    let testing = "pinpriq-testing.workspace = true\n";
    check("pinpriq-engine", &format!("[dev-dependencies]\n{testing}"), 0);
    check("pinpriq-engine", &format!("[dependencies]\n{testing}"), 1);
    check("pinpriq-store", &format!("[dev-dependencies]\n{testing}"), 0);
    check("pinpriq", &format!("[dependencies]\n{testing}"), 1);
    check("pinpriq-testing", "[dependencies]\npinpriq-engine.workspace = true\n", 0);
}

#[test]
fn the_runtime_is_in_the_shell_alone() {
    check("pinpriq-store", "[dependencies]\nthiserror = \"2\"\n", 0);
    check("pinpriq-store", "[dependencies]\ntokio = \"1\"\n", 1);
    check("pinpriq-store", "[dependencies]\nruntime.workspace = true\n", 1);
    check("pinpriq-store", "[dependencies]\nasync-io = \"2\"\n", 1);
    check("pinpriq-store", "[dev-dependencies]\nsmol = \"2\"\n", 1);
    check("pinpriq-store", "[target.'cfg(unix)'.dev-dependencies]\ntokio-util = \"1\"\n", 1);
    check("pinpriq-engine", "[dev-dependencies]\ntokio = \"1\"\n", 1);
    check("pinpriq-server", "[dependencies]\ntokio = \"1\"\n", 0);
    check("pinpriq", "[dependencies]\nruntime.workspace = true\n", 0);
}

#[test]
fn every_crate_has_its_place() {
    check("pinpriq-shed", "", 1);
    check_tree(directions, &[("crates/a/Cargo.toml", "[package\n")], 1);
    check_tree(directions, &[("fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n")], 0);
}
