//! Which crate may depend on which, read from the manifests.
//!
//! The manifest is the import rule: a crate without dependencies cannot name what it must not know.
//! Dependencies for tests and builds follow the same directions. ARCHITECTURE.md says which
//! external crates are welcome, and cargo-deny checks them.

use toml::{Table, Value};

use super::Violation;
use super::imports::RUNTIME_CRATES;
use super::tree::{File, Tree};

/// Each of our crates, with those of ours that it may use. Nothing may use xtask.
const DIRECTIONS: [(&str, &[&str]); 13] = [
    (
        TESTING,
        &[
            "pinpriq",
            "pinpriq-archive",
            "pinpriq-client",
            "pinpriq-cluster",
            "pinpriq-engine",
            "pinpriq-server",
            "pinpriq-store",
            "pinpriq-proto",
        ],
    ),
    (
        "pinpriq",
        &[
            "pinpriq-archive",
            "pinpriq-client",
            "pinpriq-cluster",
            "pinpriq-load",
            "pinpriq-server",
            "pinpriq-store",
            "pinpriq-tls",
            "pinpriq-proto",
        ],
    ),
    ("pinpriq-client", &["pinpriq-tls", "pinpriq-proto"]),
    ("pinpriq-load", &["pinpriq-tls", "pinpriq-proto"]),
    (
        "pinpriq-server",
        &[
            "pinpriq-archive",
            "pinpriq-cluster",
            "pinpriq-engine",
            "pinpriq-store",
            "pinpriq-tls",
            "pinpriq-proto",
        ],
    ),
    ("pinpriq-archive", &["pinpriq-store", "pinpriq-proto"]),
    ("pinpriq-cluster", &["pinpriq-store", "pinpriq-tls"]),
    ("pinpriq-store", &["pinpriq-engine", "pinpriq-proto"]),
    ("pinpriq-engine", &["pinpriq-proto"]),
    ("pinpriq-proto", &["pinpriq-derive"]),
    ("pinpriq-derive", &[]),
    ("pinpriq-tls", &[]),
    ("xtask", &[]),
];

/// What tests the product. The tests of every crate may use it, and nothing else may.
const TESTING: &str = "pinpriq-testing";

/// The crate that uses nothing but the standard library and our vocabulary.
const PURE: [&str; 1] = ["pinpriq-engine"];

/// The beginnings of the names of async runtimes and of crates that bring one.
const RUNTIMES: [&str; 9] = [
    "tokio",
    "async-",
    "smol",
    "futures-executor",
    "embassy",
    "monoio",
    "glommio",
    "compio",
    "hyper",
];

/// A dependency: its table in the manifest, and the name of the crate itself.
struct Dependency {
    section: String,
    name: String,
}

/// The manifests of our crates follow the directions above.
pub(crate) fn directions(tree: &Tree) -> Vec<Violation> {
    let shared = tree
        .file("Cargo.toml")
        .and_then(|root| root.text.parse::<Table>().ok())
        .and_then(|root| root.get("workspace")?.get("dependencies")?.as_table().cloned())
        .unwrap_or_default();
    let ours = |file: &&File| {
        let parts: Vec<&str> = file.path.split('/').collect();
        matches!(parts.as_slice(), ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
    };
    let mut found = Vec::new();
    for file in tree.files().filter(ours) {
        let complaints = match file.text.parse::<Table>() {
            Ok(manifest) => complaints(&manifest, &shared),
            Err(error) => vec![format!("is no TOML: {}", error.message())],
        };
        found.extend(complaints.into_iter().map(|message| Violation::new(&file.path, 0, message)));
    }
    found
}

fn complaints(manifest: &Table, shared: &Table) -> Vec<String> {
    let name = manifest.get("package").and_then(|package| package.get("name"));
    let name = name.and_then(Value::as_str).unwrap_or("");
    let Some((_, allowed)) = DIRECTIONS.iter().find(|(own, _)| *own == name) else {
        return vec![format!("`{name}` has no place yet: say in xtask what it may use")];
    };
    dependencies(manifest, shared).iter().filter_map(|it| complaint(name, allowed, it)).collect()
}

fn complaint(name: &str, allowed: &[&str], dependency: &Dependency) -> Option<String> {
    let Dependency { section, name: used } = dependency;
    // A crate names itself to have all of its features in its tests.
    let is_for_tests = [TESTING, name].contains(&used.as_str());
    if section == "dev-dependencies" && is_for_tests {
        return None;
    }
    let known = DIRECTIONS.iter().any(|(own, _)| own == used);
    let runtime = RUNTIMES.iter().any(|prefix| used.starts_with(prefix));
    if (known || used.starts_with("pinpriq")) && !allowed.contains(&used.as_str()) {
        Some(format!("[{section}] {used}: {name} must not know {used}"))
    } else if PURE.contains(&name) && !known && !section.ends_with("dev-dependencies") {
        Some(format!("[{section}] {used}: {name} uses the standard library alone"))
    } else if runtime && !RUNTIME_CRATES.contains(&name) {
        Some(format!("[{section}] {used}: {name} knows no async runtime"))
    } else {
        None
    }
}

/// The dependencies of every kind and for every target.
fn dependencies(manifest: &Table, shared: &Table) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut holders = vec![(String::new(), manifest)];
    for (target, holder) in manifest.get("target").and_then(Value::as_table).into_iter().flatten() {
        holders.extend(holder.as_table().map(|holder| (format!("target.{target}."), holder)));
    }
    for (prefix, holder) in holders {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (key, value) in holder.get(kind).and_then(Value::as_table).into_iter().flatten() {
                let section = format!("{prefix}{kind}");
                found.push(Dependency { section, name: crate_name(key, value, shared) });
            }
        }
    }
    found
}

/// Returns the name of the crate behind a key, which may have been renamed here or in the
/// workspace.
fn crate_name(key: &str, value: &Value, shared: &Table) -> String {
    let of = |value: &Value| value.get("package").and_then(Value::as_str).map(str::to_owned);
    let inherited = value.get("workspace").is_some();
    let from_workspace = || shared.get(key).filter(|_| inherited).and_then(of);
    of(value).or_else(from_workspace).unwrap_or_else(|| key.to_owned())
}

#[cfg(test)]
mod tests;
