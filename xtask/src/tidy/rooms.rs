//! Which file may import which: the rooms of the server in their order, and no large circles.
//!
//! An arrow goes from a file to each file whose names it uses, in `use` or in a path. Paths are
//! read and not resolved: what a module exports again counts as its own. Tests are left out. A file
//! and the files of its folder belong together, so an arrow up to an enclosing module does not
//! count for circles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Violation;
use super::source::{Token, spells};
use super::tree::Tree;

/// The rooms of the server, which are the modules of its `lib.rs`. Each may use those above it in
/// this list, and none below it.
const ROOMS: [(&str, &str); 32] = [
    ("bell", "wakes a task on the same thread"),
    ("error", "why a server does not start, or has ended"),
    ("plain", "escapes what may be shown on a terminal"),
    ("random", "numbers that cannot be guessed"),
    ("runtime", "the runtime of a thread, and long work beside it"),
    ("stamp", "tells one state of a file from another"),
    ("stop", "the request to stop"),
    ("throttle", "how often the same thing is logged"),
    ("log", "lines of the log that wait for their reader"),
    ("clock", "the only reader of the clock of the machine"),
    ("calendars", "the slots of schedules, for the engine"),
    ("config", "how a server is set"),
    ("keepalive", "how the system watches a connection"),
    ("sharding", "which name belongs to which shard"),
    ("tls", "certificates, and sockets that may be encrypted"),
    ("users", "who may do what, and the file that says so"),
    ("dashboard", "the files that a browser gets"),
    ("access", "users, how they sign in, and the audit"),
    ("clients", "what is said about a client in any shard"),
    ("facts", "what is counted and known about a shard"),
    ("cuts", "how far all journals are, and their files"),
    ("archiving", "sends what happens to an archive, while the server serves"),
    ("letters", "what shards write to each other, and who serves which"),
    ("links", "letters to other nodes, as bytes on connections"),
    ("session", "what a shard knows about one client, and its outbox"),
    ("host", "one shard: its engine, store, clients and guests"),
    ("home", "connections and the desks that doors talk to"),
    ("monitor", "figures each second, for those who look"),
    ("figures", "describes each figure once"),
    ("doors", "the protocols"),
    ("cluster", "what a node knows, and what it exchanges with others"),
    ("process", "threads, listeners, nodes: puts everything together"),
];

/// The most files that may import each other in a circle.
const CIRCLE_MAX: usize = 3;

/// Where the rooms are.
const SERVER: &str = "crates/pinpriq-server/src/";

/// A module of a crate: its names from the root. That of `lib.rs` has none.
type Module = Vec<String>;

/// A path in the code: the line, and its names.
type Named = (usize, Vec<String>);

/// No room of the server uses one that is further down in [`ROOMS`].
pub(crate) fn directions(tree: &Tree) -> Vec<Violation> {
    let place = |room: &str| ROOMS.iter().position(|(name, _)| *name == room);
    let mut found = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| !file.is_beside_product()) {
        let Some(module) = file.path.strip_prefix(SERVER).map(module_of) else { continue };
        let Some(room) = module.first() else { continue };
        let Some(own) = place(room) else {
            let message = format!("`{room}` is no room: give it its place in tidy/rooms.rs");
            found.push(Violation::new(&file.path, 0, message));
            continue;
        };
        let mut seen = BTreeSet::new();
        for (line, path) in paths(&source.tokens_of_product()) {
            let Some(path) = from_root(&module, &path) else { continue };
            let Some(used) = path.first().and_then(|name| place(name)) else { continue };
            if used > own && seen.insert(used) {
                let message = format!(
                    "`{room}` must not use `{}`, which comes later: move what both need into a \
                     room before both",
                    ROOMS[used].0
                );
                found.push(Violation::new(&file.path, line, message));
            }
        }
    }
    found
}

/// No circle of imports has more than [`CIRCLE_MAX`] files.
pub(crate) fn circles(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for arrows in arrows_by_crate(tree).into_values() {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            arrows.keys().map(|from| (from.as_str(), reach(&arrows, from))).collect();
        let mut done = BTreeSet::new();
        for (from, all) in &reached {
            let is_back = |to: &&str| reached.get(to).is_some_and(|it| it.contains(from));
            let circle: BTreeSet<&str> = all.iter().copied().filter(is_back).collect();
            if done.contains(from) || !circle.contains(from) {
                continue;
            }
            done.extend(circle.iter().copied());
            if circle.len() > CIRCLE_MAX {
                let message = format!("{} files import each other: {circle:?}", circle.len());
                found.push(Violation::new(from, 0, message));
            }
        }
    }
    found
}

/// For each crate, which file imports which.
fn arrows_by_crate(tree: &Tree) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut modules: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    let of_crate = |path: &str| {
        let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
        // A program beside the library has a root of its own.
        match file.strip_prefix("bin/").and_then(|it| it.split_once('/')) {
            Some((program, file)) => Some((format!("{name}/{program}"), module_of(file))),
            None => Some((name.to_owned(), module_of(file))),
        }
    };
    for (file, _) in tree.sources().filter(|(file, _)| !file.is_beside_product()) {
        if let Some((name, module)) = of_crate(&file.path) {
            modules.entry(name).or_default().entry(module).or_insert_with(|| file.path.clone());
        }
    }
    let mut all: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (file, source) in tree.sources() {
        let Some((name, module)) = of_crate(&file.path) else { continue };
        let Some(known) = modules.get(&name).filter(|it| it.get(&module) == Some(&file.path))
        else {
            continue;
        };
        let arrows = all.entry(name).or_default().entry(file.path.clone()).or_default();
        for (_, path) in paths(&source.tokens_of_product()) {
            let is_child = |first: &String| {
                known.contains_key(&[&*module, std::slice::from_ref(first)].concat())
            };
            let path = match path.first() {
                Some(first) if is_child(first) => Some([&*module, &*path].concat()),
                _ => from_root(&module, &path),
            };
            let Some(path) = path else { continue };
            let to = (0..=path.len()).rev().find_map(|length| known.get_key_value(&path[..length]));
            if let Some((to, target)) = to.filter(|(to, _)| !module.starts_with(to)) {
                debug_assert!(!to.is_empty(), "the root encloses all");
                arrows.insert(target.clone());
            }
        }
    }
    all
}

/// Returns the files that are reached by one arrow or more.
fn reach<'a>(arrows: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: VecDeque<&str> = arrows.get(from).into_iter().flatten().map(|it| &**it).collect();
    while let Some(file) = next.pop_front() {
        if reached.insert(file) {
            next.extend(arrows.get(file).into_iter().flatten().map(|it| &**it));
        }
    }
    reached
}

/// Returns the module of a file, given its path from `src`.
fn module_of(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let names: Module = path.split('/').map(str::to_owned).collect();
    if path == "lib" || path == "main" { Module::new() } else { names }
}

/// Returns a path from the root of the crate, if it begins with `crate`, `self` or `super`.
fn from_root(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let base = match path.first()?.as_str() {
        "crate" => &[],
        "self" => module,
        "super" => &module[..module.len().checked_sub(ups)?],
        _ => return None,
    };
    Some([base, &path[ups.max(1)..]].concat())
}

/// Returns the paths of more than one name in the code, those of `use` trees one by one.
fn paths(tokens: &[Token]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_name(&tokens[at].text) && tokens.get(at + 1).is_some_and(|it| it.text == ":") {
            at = path(tokens, at, &[], &mut found);
        }
        at += 1;
    }
    found.retain(|(_, path)| path.len() > 1);
    found
}

/// Reads a path that begins at this token, and the tree at its end. Returns its last token.
fn path(tokens: &[Token], mut at: usize, before: &[String], found: &mut Vec<Named>) -> usize {
    let mut names = before.to_vec();
    loop {
        names.push(tokens[at].text.clone());
        if !spells(&tokens[at + 1..], &[":", ":"]) {
            break;
        }
        match tokens.get(at + 3) {
            Some(next) if is_name(&next.text) => at += 3,
            Some(next) if next.text == "{" => return tree_of(tokens, at + 3, &names, found),
            _ => break,
        }
    }
    found.push((tokens[at].line, names));
    at
}

/// Reads the branches within the brace at this token. Returns the brace at the end.
fn tree_of(tokens: &[Token], brace: usize, names: &[String], found: &mut Vec<Named>) -> usize {
    let mut at = brace + 1;
    while at < tokens.len() && tokens[at].text != "}" {
        let begins = matches!(tokens[at - 1].text.as_str(), "{" | ",");
        if begins && is_name(&tokens[at].text) {
            at = path(tokens, at, names, found);
        }
        at += 1;
    }
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|char: char| char.is_alphabetic() || char == '_')
}

#[cfg(test)]
mod tests {
    use super::{ROOMS, SERVER, circles, directions, paths};
    use crate::tidy::samples::{check, check_repository, check_tree};
    use crate::tidy::source::Source;
    use crate::tidy::tree::root;

    #[track_caller]
    fn check_paths(text: &str, expected: &[&str]) {
        let found = paths(&Source::new(text).tokens_of_product());
        let found: Vec<String> = found.iter().map(|(_, path)| path.join("::")).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_form_of_path_is_read() {
        check_paths("use crate::a::b;", &["crate::a::b"]);
        check_paths("pub(crate) use self::a::{b, c as d};", &["self::a::b", "self::a::c"]);
        check_paths(
            "use super::{a, b::{c, d}, e::F};",
            &["super::a", "super::b::c", "super::b::d", "super::e::F"],
        );
        check_paths("fn a(b: crate::c::D) -> e::F {}", &["crate::c::D", "e::F"]);
        check_paths("use super::*; let a: u8 = b;", &[]);
        check_paths(
            "#[cfg(test)]\nmod tests { use crate::a::B; }\nuse crate::c::D;",
            &["crate::c::D"],
        );
    }

    #[test]
    fn rooms_use_those_before_them() {
        check(
            directions,
            &[
                ("crates/pinpriq-server/src/host/seat.rs", "use crate::home::desk::Desk;\n"),
                ("crates/pinpriq-server/src/host.rs", "use super::process::threads;\n"),
                ("crates/pinpriq-server/src/host/shard/a.rs", "fn a(b: crate::doors::Door) {}\n"),
                ("crates/pinpriq-server/src/cellar.rs", "//! Is in no list.\n"),
            ],
            &[
                ("crates/pinpriq-server/src/home/desk.rs", "use crate::host::seat::Seat;\n"),
                ("crates/pinpriq-server/src/host/seat.rs", "use super::shard::Shard;\n"),
                ("crates/pinpriq-server/src/host/seat/tests.rs", "use crate::doors::Door;\n"),
                ("crates/pinpriq-server/src/lib.rs", "pub use self::process::run;\n"),
                ("crates/pinpriq-store/src/host.rs", "use crate::home::Desk;\n"),
            ],
        );
        check_repository(directions);
    }

    #[test]
    fn every_room_is_there() {
        for (room, _) in ROOMS {
            assert!(root().join(SERVER).join(format!("{room}.rs")).exists(), "{room}");
        }
    }

    #[test]
    fn four_files_make_a_large_circle() {
        let uses = |other: &str| format!("use crate::{other}::It;\n");
        let texts = ["b", "c", "d", "a"].map(uses);
        let names = ["a", "b", "c", "d"].map(|it| format!("crates/pinpriq-store/src/{it}.rs"));
        let files: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        check_tree(circles, &files, 1);
        check_tree(circles, &files[..3], 0);
        let back = uses("a");
        let three = [files[0], files[1], (files[2].0, back.as_str())];
        check_tree(circles, &three, 0);
        check_repository(circles);
    }

    #[test]
    fn a_file_and_its_folder_belong_together() {
        let below = ["a", "b", "c", "d"];
        let names = below.map(|it| format!("crates/pinpriq-store/src/log/{it}.rs"));
        let own = "use self::a::A; use self::b::B; use self::c::C; use self::d::D;\n";
        let mut files = vec![("crates/pinpriq-store/src/log.rs", own)];
        files.extend(names.iter().map(|it| (it.as_str(), "use super::Log;\n")));
        check_tree(circles, &files, 0);
    }
}
