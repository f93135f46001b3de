//! The tables of figures and of the ends of connections in `docs/protocol/resp.md` are those of the
//! server. `UPDATE_EXPECT=1` prints them again.

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;

use crate::clients::ending::Ending;
use crate::figures::stats::Scope;
use crate::figures::{Figure, Kind, Unit, info, stats};

#[test]
fn figures_on_the_page_are_those_of_the_server() {
    agree("info", &info_table());
    agree("stats", &stats_table());
    agree("endings", &endings_table());
}

fn agree(word: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol/resp.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {word}:begin -->\n"), format!("<!-- {word}:end -->"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    expect_file![path].assert_eq(&format!("{before}{begin}{table}{end}{after}"));
}

fn info_table() -> String {
    let mut table = "| section | name | kind | unit | value |\n|---|---|---|---|---|\n".to_owned();
    for figure in info::TABLE {
        let name = match figure.kind.label() {
            Some(label) => format!("{}_<{label}>", figure.name),
            None => figure.name.to_owned(),
        };
        put_row(&mut table, figure.section.name(), &name, figure);
    }
    table
}

fn stats_table() -> String {
    let mut table = "| of | name | kind | unit | value |\n|---|---|---|---|---|\n".to_owned();
    for figure in stats::TABLE {
        let scope = match figure.section {
            Scope::Any => "any",
            Scope::All => "all together",
            Scope::Queue => "a queue or lane",
            Scope::Lane => "a lane",
        };
        put_row(&mut table, scope, figure.name, figure);
    }
    table
}

fn endings_table() -> String {
    let mut table = "| reason | meaning |\n|---|---|\n".to_owned();
    for ending in Ending::ALL {
        let _ = writeln!(table, "| `{}` | {} |", ending.word(), meaning(ending));
    }
    table
}

fn put_row<F, S>(table: &mut String, section: &str, name: &str, figure: &Figure<F, S>) {
    let Figure { kind, unit, help, .. } = figure;
    let (kind, unit) = (kind_word(*kind), unit_word(*unit));
    let _ = writeln!(table, "| {section} | `{name}` | {kind} | {unit} | {help} |");
}

const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter | Kind::Counters(_) => "counter",
        Kind::Gauge | Kind::Gauges(_) => "gauge",
        Kind::Text => "text",
        Kind::Histogram => "histogram",
    }
}

const fn unit_word(unit: Unit) -> &'static str {
    match unit {
        Unit::Plain => "",
        Unit::Bytes => "bytes",
        Unit::Seconds => "s",
        Unit::Milliseconds => "ms",
        Unit::Microseconds => "µs",
    }
}

const fn meaning(ending: Ending) -> &'static str {
    match ending {
        Ending::Closed => "the client closed its side",
        Ending::Quit => "the client sent `QUIT`",
        Ending::Broken => "the connection broke: it was reset, or the host of the client is gone",
        Ending::Killed => "a client sent `CLIENT KILL`",
        Ending::Late => "a request did not arrive within `--frame-timeout-ms`",
        Ending::Malformed => "the input was malformed",
        Ending::Refused => "a request was refused at the pinpriq door, which has no refusals",
        Ending::Unread => {
            "the client did not read its replies, which kept old files on the disk, or were too \
             many"
        }
        Ending::StoreFailed => "the disk failed, and the pinpriq door cannot say so",
        Ending::Stopped => "the server stopped",
        Ending::TooMany => "closed at once: there were `--connections-max` already",
        Ending::Unknown => {
            "the owner of a shard has changed, and the pinpriq door cannot say that it is not \
             known what became of a request"
        }
        Ending::Denied => "its user may no longer take from a queue that it has subscribed to",
        Ending::Handshake => "there was no TLS handshake, or none in time",
    }
}
