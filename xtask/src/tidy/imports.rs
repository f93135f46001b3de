//! Which code may name what: files and the async runtime each have their place.
//!
//! [`super::manifests`] checks the manifests. Clippy's list of disallowed methods keeps time in its
//! place.

use super::Violation;
use super::prose::is_script;
use super::source::{Token, lines_naming};
use super::tree::{File, Tree};

/// The crates that may name the async runtime.
pub(crate) const RUNTIME_CRATES: [&str; 5] =
    ["pinpriq-server", "pinpriq", "pinpriq-client", CLUSTER, ARCHIVE];

/// The parts of [`CLUSTER`] and [`ARCHIVE`] that may: those that ask somebody over a network.
const RUNTIME_PARTS: [&str; 4] = ["remote", "etcd", "postgres", "s3"];

/// Which node serves which shard, and the engines that it is agreed on with.
const CLUSTER: &str = "pinpriq-cluster";

/// Backups.
const ARCHIVE: &str = "pinpriq-archive";

/// The one file through which the store reaches the operating system's files.
const DISK: &str = "crates/pinpriq-store/src/real_disk.rs";

/// The one file that reads and replaces the file of users, which is no part of a data directory.
const USERS: &str = "crates/pinpriq-server/src/users/store.rs";

/// Reads certificates and keys, which are no part of a data directory.
const TLS: &str = "crates/pinpriq-server/src/tls/files.rs";

/// Writes the audit, which is no part of a data directory.
const AUDIT: &str = "crates/pinpriq-server/src/access/audit.rs";

/// Reads what the system tells about the process.
const MACHINE: &str = "crates/pinpriq-server/src/doors/beanstalkd/machine.rs";

/// They play conversations with two servers in real time, and wait for what each step of another
/// program leads to.
const REAL_TIME: [&str; 2] = ["scripts/beanstalkd_play.py", "scripts/beanstalkd_random.py"];

/// The verifier runs outside of the server. It creates and damages the directories of servers, and
/// its checker reads the file that it is given. What measures reads what the kernel tells.
const VERIFIER_FILES: [&str; 3] = [
    "crates/pinpriq-testing/src/bin/pinpriq-crash/files.rs",
    "crates/pinpriq-testing/src/bin/pinpriq-history.rs",
    "crates/pinpriq-testing/src/bin/pinpriq-shares.rs",
];

/// No script sleeps: it waits for the event itself. The examples and the packages for users may
/// sleep, and so may what plays in real time. Clippy refuses what sleeps in Rust.
pub(crate) fn sleeping(tree: &Tree) -> Vec<Violation> {
    let is_of_users = |path: &str| path.starts_with("examples/") || path.starts_with("clients/");
    let may = |path: &str| is_of_users(path) || REAL_TIME.contains(&path);
    let mut found = Vec::new();
    for file in tree.files().filter(|file| is_script(file) && !may(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            let code = line.split('#').next().unwrap_or("");
            if code.split(|char: char| !char.is_alphanumeric()).any(|word| word == "sleep") {
                let message = "nothing sleeps: wait for the event itself";
                found.push(Violation::new(&file.path, index + 1, message));
            }
        }
    }
    found
}

/// Only the outermost crates name the async runtime.
pub(crate) fn runtime(tree: &Tree) -> Vec<Violation> {
    let may = |file: &File| {
        let mut folders = file.path.split('/').skip(1);
        let Some(name) = folders.next().filter(|name| RUNTIME_CRATES.contains(name)) else {
            return false;
        };
        let mut parts = folders.filter_map(|part| part.split('.').next());
        ![CLUSTER, ARCHIVE].contains(&name) || parts.any(|part| RUNTIME_PARTS.contains(&part))
    };
    let message = "tokio stops at the server: this code gets events from its caller";
    let mut found = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| !may(file)) {
        let names = |token: &&Token| token.text == "tokio" || token.text.starts_with("tokio_");
        for token in source.tokens().iter().filter(names) {
            found.push(Violation::new(&file.path, token.line, message));
        }
    }
    found
}

/// Files are reached through the store's `Disk`; the binary may read what its user names.
pub(crate) fn file_system(tree: &Tree) -> Vec<Violation> {
    let may = |path: &str| {
        [AUDIT, DISK, MACHINE, TLS, USERS].contains(&path)
            || path.starts_with("crates/pinpriq/")
            || VERIFIER_FILES.contains(&path)
    };
    naming(tree, &[&["std", "fs"], &["tokio", "fs"]], "go through the Disk trait", may)
}

/// Returns where the product names one of `paths`, other than in the files that may.
fn naming(
    tree: &Tree,
    paths: &[&[&str]],
    message: &str,
    may: impl Fn(&str) -> bool,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, source) in tree.sources() {
        if may(&file.path) || file.is_beside_product() {
            continue;
        }
        let tokens = source.tokens_of_product();
        for line in paths.iter().flat_map(|path| lines_naming(&tokens, path)) {
            found.push(Violation::new(&file.path, line, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{file_system, runtime, sleeping};
    use crate::tidy::samples::{check, check_repository};

    #[test]
    fn no_script_sleeps() {
        check(
            sleeping,
            &[
                ("scripts/a.sh", "sleep 1\n"),
                ("scripts/a", "#!/bin/sh\nwhile sleep 0.1; do :; done\n"),
            ],
            &[
                ("a.md", "sleep well\n"),
                ("examples/shell/a.sh", "sleep 1\n"),
                ("scripts/a.sh", "# No sleep here.\n"),
            ],
        );
        check_repository(sleeping);
    }

    #[test]
    fn the_runtime_stays_in_the_shell() {
        check(
            runtime,
            &[
                ("crates/pinpriq-engine/src/lib.rs", "use tokio::sync;\n"),
                ("crates/pinpriq-store/tests/it/main.rs", "#[tokio::test]\nasync fn a() {}\n"),
                ("crates/pinpriq-proto/src/lib.rs", "use tokio_util::codec;\n"),
                ("crates/pinpriq-serverless/src/lib.rs", "use tokio::sync;\n"),
                ("crates/pinpriq-cluster/src/placement.rs", "use tokio::sync;\n"),
            ],
            &[
                ("crates/pinpriq-server/src/lib.rs", "use tokio::sync;\n"),
                ("crates/pinpriq/src/main.rs", "use tokio::sync;\n"),
                ("crates/pinpriq-cluster/src/etcd/client.rs", "use tokio::sync;\n"),
                ("crates/pinpriq-cluster/tests/it/remote.rs", "use tokio::sync;\n"),
                ("crates/pinpriq-engine/src/lib.rs", "//! Knows no tokio.\n"),
            ],
        );
        check_repository(runtime);
    }

    #[test]
    fn files_are_reached_through_the_disk() {
        check(
            file_system,
            &[
                ("crates/pinpriq-store/src/lib.rs", "use std::fs::File;\n"),
                ("crates/pinpriq-store/src/lib.rs", "use std::{fs, io};\n"),
                ("crates/pinpriq-server/src/lib.rs", "tokio::fs::read(a)\n"),
                ("crates/pinpriq-server/src/users/file.rs", "use std::fs;\n"),
                ("crates/pinpriq-store/src/journal/real_disk.rs", "use std::fs;\n"),
            ],
            &[
                ("crates/pinpriq-store/src/real_disk.rs", "use std::fs;\n"),
                ("crates/pinpriq-server/src/users/store.rs", "use std::fs;\n"),
                ("crates/pinpriq-store/src/lib.rs", "#[cfg(test)]\nmod tests { use std::fs; }\n"),
                ("crates/pinpriq-store/tests/it/main.rs", "use std::fs;\n"),
                ("crates/pinpriq-store/src/journal/tests.rs", "use std::fs;\n"),
                ("crates/pinpriq/src/config.rs", "std::fs::read_to_string(a)\n"),
                ("crates/pinpriq-server/src/lib.rs", "use std::{io, path};\n"),
            ],
        );
        check_repository(file_system);
    }
}
