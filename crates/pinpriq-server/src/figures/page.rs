//! The tables of figures for the documentation page, as Markdown.
//!
//! A test compares them with `docs/protocol/resp.md`.

use std::fmt::Write as _;

use super::stats::{self, Scope};
use super::{Figure, info};
use crate::clients::ending::Ending;

/// Returns the table of the figures of `INFO`.
#[must_use]
pub fn info_table() -> String {
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

/// Returns the table of the figures of `STATS`.
#[must_use]
pub fn stats_table() -> String {
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

/// Returns the table of the reasons why connections end.
#[must_use]
pub fn endings_table() -> String {
    let mut table = "| reason | meaning |\n|---|---|\n".to_owned();
    for ending in Ending::ALL {
        let _ = writeln!(table, "| `{}` | {} |", ending.word(), ending.meaning());
    }
    table
}

fn put_row<F, S>(table: &mut String, section: &str, name: &str, figure: &Figure<F, S>) {
    let Figure { kind, unit, help, .. } = figure;
    let (kind, unit) = (kind.word(), unit.word());
    let _ = writeln!(table, "| {section} | `{name}` | {kind} | {unit} | {help} |");
}
