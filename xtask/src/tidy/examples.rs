//! Examples name queues for dead letters that every server accepts.
//!
//! A queue and its queue for dead letters live in one shard only if they share what is in braces.
//! Tests are not looked at: they may have one shard, or show what is refused.

use super::Violation;
use super::tree::{File, Tree};

/// What comes before the name of a queue for dead letters.
const MARKS: [&str; 6] = [
    "DEADLETTER ",
    "--dead-letter ",
    "deadLetter: \"",
    "dead_letter=\"",
    "\"deadletter\":\"",
    "\"deadletter\": \"",
];

/// What comes before the name of the queue that gets the setting.
const COMMANDS: [&str; 4] = ["QUEUE CREATE ", "QUEUE SET ", "queue create ", "queue set "];

/// Every queue for dead letters in an example is in the shard of its queue.
pub(crate) fn dead_letters(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| has_examples(file)) {
        for (index, line) in file.text.lines().enumerate() {
            for mark in MARKS {
                let object = |name: &str| {
                    let message = format!("{name} may be in another shard: write {{queue}}-dead");
                    found.push(Violation::new(&file.path, index + 1, message));
                };
                names_elsewhere(line, mark).into_iter().for_each(object);
            }
        }
    }
    found
}

fn has_examples(file: &File) -> bool {
    let is_of_client = file.path.starts_with("clients/") && !file.path.contains("/test");
    let folders = ["docs/", "examples/", "contrib/", "crates/pinpriq/src/args"];
    is_of_client
        || file.path == "README.md"
        || folders.iter().any(|folder| file.path.starts_with(folder))
}

/// Returns the names behind this mark that may be in another shard than their queue.
fn names_elsewhere<'a>(line: &'a str, mark: &str) -> Vec<&'a str> {
    let is_elsewhere = |&(at, _): &(usize, &str)| {
        let before = &line[..at];
        let name = first_word(&line[at + mark.len()..]);
        let places = COMMANDS.iter().filter_map(|it| Some(before.rfind(it)? + it.len()));
        let queue = places.max().map(|place| first_word(&before[place..]));
        match queue {
            _ if matches!(name, "none" | "" | "<QUEUE>") => false,
            Some(queue) => common_part(queue) != common_part(name),
            // A text may speak of the word itself.
            None => mark != MARKS[0] && common_part(name) == name,
        }
    };
    let places = line.match_indices(mark).filter(is_elsewhere);
    places.map(|(at, _)| first_word(&line[at + mark.len()..])).collect()
}

/// Returns the first word of a text, without quotation marks.
fn first_word(text: &str) -> &str {
    let text = text.trim_start_matches(['"', '\'', ' ']);
    let end = |char: char| char.is_whitespace() || "\"'`,;)\\".contains(char);
    text.split(end).next().unwrap_or_default()
}

/// Returns what decides the shard of a queue: what is in its first braces, or the whole name.
fn common_part(name: &str) -> &str {
    let inside = name.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    inside.map_or(name, |(part, _)| if part.is_empty() { name } else { part })
}

#[cfg(test)]
mod tests {
    use super::dead_letters;
    use crate::tidy::samples::{check as check_samples, check_repository};

    #[test]
    fn queues_for_dead_letters_are_in_the_shard_of_their_queue() {
        check_samples(
            dead_letters,
            &[
                ("docs/a.md", "QUEUE CREATE mail DEADLETTER mail-dead\n"),
                ("docs/a.md", "`QUEUE SET {mail} ATTEMPTS 3 DEADLETTER {jobs}-dead`\n"),
                ("README.md", "pinpriq queue set jobs --dead-letter 'jobs-dead'\n"),
                ("examples/a.py", "jobs.set(attempts=3, dead_letter=\"dead\")\n"),
                ("clients/typescript/README.md", "jobs.set({ deadLetter: \"dead\" });\n"),
                ("examples/a.sh", "-d '{\"attempts\":3,\"deadletter\":\"dead\"}'\n"),
            ],
            &[
                ("docs/a.md", "QUEUE CREATE mail DEADLETTER {mail}-dead TTR 30000\n"),
                ("docs/a.md", "QUEUE SET a{mail} DEADLETTER {mail}-dead\n"),
                ("docs/a.md", "QUEUE SET mail DEADLETTER none\n"),
                ("docs/a.md", "| `DEADLETTER queue` | the `DEADLETTER` queue |\n"),
                ("README.md", "pinpriq queue set jobs --dead-letter '{jobs}-dead'\n"),
                ("examples/a.py", "jobs.set(dead_letter=\"{jobs}-dead\")\n"),
                ("clients/python/tests/a.py", "jobs.set(dead_letter=\"dead\")\n"),
            ],
        );
        check_repository(dead_letters);
    }
}
