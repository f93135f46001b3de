//! The builders of requests, the settings and the tasks of the clients are printed from the
//! vocabulary, and so is what the dashboard knows of settings and tasks. The files are checked in;
//! `UPDATE_EXPECT=1` prints them again.
//!
//! What a client does besides (sending again, waiting in slices, payloads) is written by hand.

mod dashboard;
mod python;
mod rust;
mod typescript;

use pinpriq_proto::fields::{Field, Shown, TASK};
use pinpriq_proto::request::options::{Opt, OptionKind};
use pinpriq_proto::request::spec::{Group, Spec, Word};
use pinpriq_proto::request::table::TABLE;

/// Names that differ from the words in small letters: a word, in Python, in TypeScript.
const NAMES: [(&str, &str, &str); 10] = [
    ("BACKOFFMAX", "backoff_max", "backoffMax"),
    ("FROM", "from_", "from"),
    ("FOR", "for_", "for"),
    ("IF", "only_if", "onlyIf"),
    ("ONDUP", "on_duplicate", "onDuplicate"),
    ("WITHMETA", "meta", "withMeta"),
    ("from", "queue", "queue"),
    ("R|W|B|Z|D", "to", "to"),
    ("IN|OUT", "side", "side"),
    ("schedule", "schedule", "schedule"),
];

/// Options that the clients give themselves, so that callers of a queue's method do not.
const OWN: [(&str, &str); 14] = [
    ("", "PAYLOAD"),
    ("", "MEMBER"),
    ("", "WITHMETA"),
    ("", "CURSOR"),
    ("", "DONE"),
    ("", "WAIT"),
    ("", "RESULT"),
    ("PUT", "ROOM"),
    ("PUT", "UNIQUE"),
    ("PUT", "STATE"),
    ("TAKE", "COUNT"),
    ("POP", "COUNT"),
    ("PLOW", "COUNT"),
    ("PEEK", "COUNT"),
];

/// A setting as a client has it.
struct Property {
    word: &'static str,
    name: String,
    help: &'static str,
    /// The type of a value that is given, and of one that is shown.
    given: String,
    shown: String,
    /// How a value is sent, and how it is read.
    send: &'static str,
    read: &'static str,
}

/// Compares each file with what is printed for it, or writes it.
#[test]
fn the_clients_say_what_the_table_says() {
    let files = [
        ("clients/python/src/pinpriq/commands.py", python::commands()),
        ("clients/python/src/pinpriq/settings.py", python::settings()),
        ("clients/python/src/pinpriq/task.py", python::task()),
        ("clients/typescript/src/commands.ts", typescript::commands()),
        ("clients/typescript/src/settings.ts", typescript::settings()),
        ("clients/typescript/src/meta.ts", typescript::meta()),
        ("crates/pinpriq-client/src/task/printed.rs", rust::task()),
        ("crates/pinpriq-server/assets/printed.js", dashboard::tables()),
    ];
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    for (file, text) in files {
        expect_test::expect_file![format!("{root}{file}")].assert_eq(&text);
    }
}

/// The commands on queues, topics, schedules and batches. The others belong to a connection or a
/// cluster.
fn commands() -> impl Iterator<Item = &'static Spec> {
    let groups =
        [Group::Tasks, Group::Push, Group::FanOut, Group::Queues, Group::Schedules, Group::Batches];
    TABLE.iter().filter(move |spec| groups.contains(&spec.group))
}

/// The options of a command that callers of a queue's method may give.
fn given(spec: &'static Spec) -> impl Iterator<Item = &'static Opt> {
    let own = |option: &Opt| {
        OWN.iter().any(|(of, word)| *word == option.word && (of.is_empty() || *of == spec.name))
    };
    spec.options.iter().filter(move |option| !own(option))
}

/// The fields of tasks that replies show, but for the origin, which clients make one of.
fn task_fields() -> impl Iterator<Item = &'static Field> {
    let shown = |field: &&Field| field.shown != Shown::Never;
    TASK.iter().filter(shown).filter(|field| !field.name.starts_with("origin_"))
}

/// A name for people: the exception, or the word in small letters.
fn name(word: &str, exception: fn(&(&str, &'static str, &'static str)) -> &'static str) -> String {
    let found = NAMES.iter().find(|(known, ..)| *known == word).map(exception);
    found.map_or_else(|| word.to_lowercase(), str::to_owned)
}

/// The words that begin a request, and the calls that add the others. What is only added stands
/// among the words, up to the first call that does more.
fn first_words(spec: &Spec, added: impl IntoIterator<Item = String>) -> (String, Vec<String>) {
    let words = spec.full_name();
    let mut first: Vec<String> = words.split(' ').map(|word| format!("\"{word}\"")).collect();
    let mut calls = Vec::new();
    for call in added {
        match call.strip_prefix("add(").and_then(|call| call.strip_suffix(')')) {
            Some(plain) if calls.is_empty() => first.push(plain.to_owned()),
            _ => calls.push(call),
        }
    }
    (first.join(", "), calls)
}

/// A summary and what the command replies, as two sentences.
fn about(spec: &Spec) -> String {
    format!("{}. The reply: {}.", spec.summary, spec.reply)
}

/// A phrase as a sentence.
fn sentence(phrase: &str) -> String {
    format!("{}{}.", phrase[..1].to_uppercase(), &phrase[1..])
}

/// Text in lines of at most `width`, each after this beginning.
fn wrapped(text: &str, begin: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut line = begin.to_owned();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > width && line.len() > begin.len() {
            lines += line.trim_end();
            lines.push('\n');
            line = begin.to_owned();
        }
        line += word;
        line.push(' ');
    }
    lines + line.trim_end() + "\n"
}

/// A name with a capital at the beginning and after each underscore, without those.
fn pascal(name: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').filter(|part| !part.is_empty()).map(capital).collect()
}

/// The same with a small letter at the beginning.
fn camel(name: &str) -> String {
    let pascal = pascal(name);
    pascal[..1].to_lowercase() + &pascal[1..]
}
