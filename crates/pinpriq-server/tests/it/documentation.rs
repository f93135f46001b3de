//! The tables of commands, fields and settings in `docs/protocol/resp.md`, and that of
//! settings in `docs/internals/journal.md`, are printed from the tables that drive the server.
//! `UPDATE_EXPECT=1` prints them again.

use std::fmt::Write as _;
use std::path::Path;

use pinpriq_proto::fields::{Shown as Seen, TASK, carried};
use pinpriq_proto::request::spec::Group;
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::settings::{SETTINGS, SettingKind, Settings, Shown};

/// A table of the page: the word in its marks, and what prints it.
type Table = (&'static str, fn() -> String);

const TABLES: [Table; 4] = [
    ("task", task_table),
    ("record", record_table),
    ("commands", command_tables),
    ("settings", settings_table),
];

#[test]
fn tables_on_the_page_are_those_of_the_server() {
    agree("protocol/resp.md", &TABLES);
}

#[test]
fn tags_of_settings_on_the_page_are_those_of_the_journal() {
    agree("internals/journal.md", &[("settings", tags_of_settings)]);
}

fn tags_of_settings() -> String {
    let mut text = "| tag | setting | value |\n|---|---|---|\n".to_owned();
    for setting in SETTINGS {
        let words: Vec<&str> = setting.words().map(|word| word.word).collect();
        let words = words.join(", ");
        let value = match setting.kind {
            SettingKind::Number => "a number".to_owned(),
            SettingKind::Span => "a duration".to_owned(),
            SettingKind::Name | SettingKind::Limits => "bytes".to_owned(),
            SettingKind::Rate => "a number in a time".to_owned(),
            SettingKind::Words(_) => format!("a word: {words}"),
            SettingKind::WordsOrSpan(..) => {
                format!("a word: {words}; the last is a duration instead")
            }
        };
        let _ = writeln!(text, "| {} | {} | {value} |", setting.tag, setting.field);
    }
    text
}

/// Returns the tables of commands for the documentation page as Markdown, one for each chapter.
fn command_tables() -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let _ = write!(text, "### {}\n\n| command | what | reply |\n|---|---|---|\n", group.name());
        for spec in TABLE.iter().filter(|spec| spec.group == group) {
            let syntax = spec.syntax().replace('|', "\\|");
            let (summary, reply) = (spec.summary, spec.reply);
            let _ = writeln!(text, "| `{syntax}` | {summary} | {reply} |");
        }
        text.push('\n');
    }
    text
}

/// Prints the fields of a task for the page of the docs.
fn task_table() -> String {
    let mut table = String::from("| field | value |\n|---|---|\n");
    for field in TASK.iter().filter(|field| field.shown != Seen::Never) {
        let _ = writeln!(table, "| `{}` | {} |", field.name, field.help);
    }
    table
}

/// Prints the fields of a task in an export for the page of the docs.
fn record_table() -> String {
    let names: Vec<String> = carried().map(|(_, carried)| format!("`{}`", carried.name)).collect();
    format!("| a task has |\n|---|\n| {} |\n", names.join(", "))
}

/// Returns the table of settings as Markdown, for `docs/protocol/resp.md`.
fn settings_table() -> String {
    let mut text = String::from("| setting | values | default | what |\n|---|---|---|---|\n");
    for setting in SETTINGS {
        let (name, help) = (setting.name, setting.help);
        let mut values: Vec<String> =
            setting.words().map(|word| format!("`{}`", word.word)).collect();
        match setting.kind {
            SettingKind::Number => values.push("n".to_owned()),
            SettingKind::Span => values.push("ms".to_owned()),
            SettingKind::Name => values.push("queue".to_owned()),
            SettingKind::Limits => values.push("limit[,limit…]".to_owned()),
            SettingKind::Rate => values.push("n/ms".to_owned()),
            SettingKind::Words(_) | SettingKind::WordsOrSpan(..) => {}
        }
        if setting.optional {
            values.push("`none`".to_owned());
        }
        let default = Settings::default();
        let default = match setting.shown((setting.read)(&default)).next() {
            None | Some((_, Shown::None)) => "`none`".to_owned(),
            Some((_, Shown::Number(number))) => number.to_string(),
            Some((_, Shown::Text(text))) => format!("`{}`", text.escape_ascii()),
            Some((_, Shown::Rate(rate))) => format!("`{rate}`"),
        };
        let (values, note) = (values.join(", "), setting.changes.note());
        let _ = writeln!(text, "| `{name}` | {values} | {default} | {help}{note} |");
        if let Some(length) = setting.length() {
            let (own, word, help) = (length.name, length.word.word, length.help);
            let _ = writeln!(text, "| `{own}` | ms | – | {help}; goes with `{name} {word}` |");
        }
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "rewrites a page of the repository when asked to")]
#[expect(clippy::expect_used, reason = "only tests call it")]
fn agree(page: &str, tables: &[Table]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let mut page = std::fs::read_to_string(&path).expect("the page is there");
    let updates = std::env::var_os("UPDATE_EXPECT").is_some();
    for (word, print) in tables {
        let (begin, end) = (format!("<!-- {word}:begin -->\n"), format!("<!-- {word}:end -->"));
        let (before, rest) = page.split_once(&begin).expect("the page has a place for the table");
        let (current, after) = rest.split_once(&end).expect("the place for the table ends");
        let wanted = print();
        if updates {
            page = format!("{before}{begin}{wanted}{end}{after}");
            continue;
        }
        let first = before.lines().count() + 2;
        let differing = first_difference(current, &wanted);
        if let Some((line, current, wanted)) = differing {
            panic!(
                "line {} of the page is\n{current}\nand the server says\n{wanted}\n\
                 Run the test with UPDATE_EXPECT=1 to print the tables again.",
                first + line
            );
        }
    }
    if updates {
        std::fs::write(&path, page).expect("the page can be written");
    }
}

/// The first line that is not the same in both, counted from 0, and what it is in each.
fn first_difference<'a>(one: &'a str, other: &'a str) -> Option<(usize, &'a str, &'a str)> {
    const ABSENT: &str = "(no such line)";
    let (mut ones, mut others) = (one.lines(), other.lines());
    (0..).find_map(|line| match (ones.next(), others.next()) {
        (None, None) => Some(None),
        (one, other) if one == other => None,
        (one, other) => Some(Some((line, one.unwrap_or(ABSENT), other.unwrap_or(ABSENT)))),
    })?
}
