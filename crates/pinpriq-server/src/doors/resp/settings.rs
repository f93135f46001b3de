//! Settings of queues, written into a reply and printed for the page on the protocol. All of them
//! come from the table of settings.

use std::fmt::Write as _;

use pinpriq_proto::settings::{Kind, Paused, SETTINGS, Setting, Settings, Shown};
use pinpriq_proto::wire::resp::Writer;

use super::values::whole;
use crate::figures::stats;

/// Writes the reply of `QUEUE SHOW`.
pub(super) fn map(writer: &mut Writer<'_>, settings: &Settings, paused: Paused) {
    let shown = |setting: &'static Setting| setting.shown((setting.read)(settings));
    let entries = || SETTINGS.into_iter().flat_map(shown);
    let ends = stats::paused_until(paused);
    writer.map(entries().count() + 1 + ends.len());
    for (name, shown) in entries() {
        writer.bulk(name.to_ascii_lowercase().as_bytes());
        match shown {
            Shown::None => writer.null(),
            Shown::Number(number) => whole(writer, number),
            Shown::Text(text) => writer.bulk(text),
            Shown::Rate(rate) => writer.bulk(rate.to_string().as_bytes()),
        }
    }
    writer.bulk(b"paused");
    writer.bulk(stats::paused_word(paused).as_bytes());
    for (name, until) in ends {
        writer.bulk(name.as_bytes());
        match until {
            Some(at) => whole(writer, at.ms()),
            None => writer.null(),
        }
    }
}

/// Returns the table of settings as Markdown, for `docs/protocol/resp.md`.
#[must_use]
pub fn settings_table() -> String {
    let mut text = String::from("| setting | values | default | what |\n|---|---|---|---|\n");
    for setting in SETTINGS {
        let (name, help) = (setting.name, setting.help);
        let mut values: Vec<String> =
            setting.words().map(|word| format!("`{}`", word.word)).collect();
        match setting.kind {
            Kind::Number => values.push("n".to_owned()),
            Kind::Span => values.push("ms".to_owned()),
            Kind::Name => values.push("queue".to_owned()),
            Kind::Rate => values.push("n/ms".to_owned()),
            Kind::Words(_) | Kind::WordsOrSpan(..) => {}
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
