//! What comments and pages must not contain: unfinished work, dead code, decoration, and places
//! that only exist on their writer's machine.
//!
//! Spelling and style are left to people.

use super::Violation;
use super::source::spells;
use super::tree::{File, Tree};

/// Words that mark unfinished work if they stand alone.
const MARKERS: [&str; 3] = ["FIXME", "TODO", "XXX"];

/// Code that marks unfinished work, or a test that does not say what it expects.
const UNFINISHED: [(&[&str], &str); 5] = [
    (&["todo", "!"], "unfinished: write it or leave it out"),
    (&["unimplemented", "!"], "unfinished: write it or leave it out"),
    (&["#", "[", "ignore"], "a test that is not run proves nothing"),
    (&[",", "ignore", ")", "]"], "a test that is not run proves nothing"),
    (&["should_panic"], "say what is expected instead of hoping for a panic"),
];

/// Nothing is marked as unfinished, and no test is switched off.
pub(crate) fn unfinished(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files() {
        let mut object = |line: usize, message: &str| {
            found.push(Violation::new(&file.path, line, message));
        };
        // In Rust a literal may name a marker, as the list above does.
        let marker = |text: &str| words(text).any(|word| MARKERS.contains(&word));
        let message = "a marker of unfinished work";
        let Some(source) = &file.source else {
            file.text.lines().enumerate().filter(|(_, line)| marker(line)).for_each(
                |(index, _)| {
                    object(index + 1, message);
                },
            );
            continue;
        };
        for (index, comment) in source.comments.iter().enumerate() {
            if marker(comment) {
                object(index + 1, message);
            }
            if comment.contains("```ignore") || comment.contains("```rust,ignore") {
                object(index + 1, "an example that is not compiled");
            }
        }
        for (index, token) in source.tokens().iter().enumerate() {
            if MARKERS.contains(&token.text.as_str()) {
                object(token.line, message);
            }
            for (code, message) in UNFINISHED {
                if spells(&source.tokens()[index..], code) {
                    object(token.line, message);
                }
            }
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_')
}

/// Comments are sentences: no code that was commented out, no banners.
pub(crate) fn comments(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files() {
        for (index, text) in comment_lines(file).into_iter().enumerate() {
            let message = if is_banner(text) {
                "a banner: a heading is a module or a sentence"
            } else if is_code(text) {
                "code that is commented out: delete it, git remembers"
            } else {
                continue;
            };
            found.push(Violation::new(&file.path, index + 1, message));
        }
    }
    found
}

/// Returns the comment of each line with its marker, or an empty text.
fn comment_lines<'a>(file: &'a File) -> Vec<&'a str> {
    match &file.source {
        Some(source) => source.comments.iter().map(String::as_str).collect(),
        None if file.has_extension("toml") || is_script(file) => {
            let comment = |line: &'a str| line.find('#').map_or("", |at| line[at..].trim_end());
            file.text.lines().map(comment).collect()
        }
        None => Vec::new(),
    }
}

/// Whether this is a program for a shell or for Python.
pub(crate) fn is_script(file: &File) -> bool {
    file.has_extension("sh") || file.has_extension("py") || file.text.starts_with("#!")
}

fn is_banner(comment: &str) -> bool {
    let body = comment.trim_start_matches(['/', '#', '!']);
    let marks = comment.len() - body.len();
    let body = body.trim_start();
    let first = body.chars().next().filter(|char| "=-*#~_+".contains(*char));
    let run = first.map_or(0, |first| body.chars().take_while(|char| *char == first).count());
    marks >= 4 || run >= 4
}

fn is_code(comment: &str) -> bool {
    let Some(body) = comment.strip_prefix("//") else { return false };
    if body.starts_with(['/', '!']) {
        return false;
    }
    let body = body.trim();
    let words: Vec<&str> = body.split(' ').collect();
    let ends = body.ends_with(';');
    let first = words.first().copied().unwrap_or("");
    // Some keywords are English words too, so each needs something that does not occur in prose.
    let statement = match first {
        "let" | "const" | "static" => body.contains(" = "),
        "use" => ends && body.contains("::"),
        "mod" | "return" | "break" => ends && words.len() <= 3,
        "fn" | "pub" => ends || body.contains('('),
        call => ends && (call.contains(['(', '!']) || call.contains("::")),
    };
    statement || body.starts_with('}') || body.starts_with("#[") || body.ends_with('{')
}

/// No text names a place outside the repository that only its writer has.
pub(crate) fn outside(tree: &Tree) -> Vec<Violation> {
    // Assembled here, so that this file does not contain what it forbids.
    let places = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["/Us", "ers/"],
        ["sha", "red/spec"],
        ["sha", "red/design"],
        ["sha", "red/founding"],
        ["sha", "red/research"],
    ]
    .map(|parts| parts.concat());
    let mut found = Vec::new();
    for file in tree.files() {
        for (index, line) in file.text.lines().enumerate() {
            for place in places.iter().filter(|place| names(line, place)) {
                let message = format!("names `{place}`, which readers do not have");
                found.push(Violation::new(&file.path, index + 1, message));
            }
        }
    }
    found
}

/// Whether a line names a place. Our directories may have the names of a machine's, as long as
/// their path does not begin with them.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !place.starts_with('/') || !before.is_some_and(|it| it.is_alphanumeric() || it == '_')
    })
}

#[cfg(test)]
mod tests;
