//! The tables of commands, fields, settings and figures in `docs/protocol/resp.md`, that of paths
//! in `docs/http.md`, that of metrics in `docs/monitoring.md` and that of settings in
//! `docs/internals/journal.md` are printed from the tables that drive the server.
//! `UPDATE_EXPECT=1` prints them again.

use std::fmt::Write as _;
use std::path::Path;

use pinpriq_server::queue_settings::{Kind, SETTINGS};

/// A table of the page: the word in its marks, and what prints it.
type Table = (&'static str, fn() -> String);

const TABLES: [Table; 7] = [
    ("task", pinpriq_server::task_table),
    ("record", pinpriq_server::record_table),
    ("commands", pinpriq_server::command_tables),
    ("settings", pinpriq_server::settings_table),
    ("stats", pinpriq_server::stats_table),
    ("info", pinpriq_server::info_table),
    ("endings", pinpriq_server::endings_table),
];

#[test]
fn tables_on_the_page_are_those_of_the_server() {
    agree("protocol/resp.md", &TABLES);
}

#[test]
fn paths_on_the_page_are_those_of_the_server() {
    agree("http.md", &[("http", pinpriq_server::http_table)]);
}

#[test]
fn metrics_on_the_page_are_those_of_the_server() {
    agree("monitoring.md", &[("metrics", pinpriq_server::metrics_table)]);
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
            Kind::Number => "a number".to_owned(),
            Kind::Span => "a duration".to_owned(),
            Kind::Name => "bytes".to_owned(),
            Kind::Rate => "a number in a time".to_owned(),
            Kind::Words(_) => format!("a word: {words}"),
            Kind::WordsOrSpan(..) => format!("a word: {words}; the last is a duration instead"),
        };
        let _ = writeln!(text, "| {} | {} | {value} |", setting.tag, setting.field);
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
