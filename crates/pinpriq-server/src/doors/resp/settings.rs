//! Settings of queues as words: read from a request, written into a reply, and printed for the page
//! on the protocol.
//!
//! All of them come from the engine's table. The engine checks the bounds.

use std::fmt::Write as _;

use pinpriq_proto::settings::{
    Assignment, Kind, Paused, Rate, SETTINGS, Setting, Settings, Shown, Value,
};
use pinpriq_proto::wire::resp::Writer;

use super::values::whole;
use crate::figures::stats;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::parts::{no_value, number, span};

/// Reads the pairs of a name and a value that follow the words of `command`.
pub(super) fn changes<'a>(words: &[&'a [u8]], command: &str) -> Result<Vec<Assignment<'a>>, Fault> {
    let (pairs, []) = words.as_chunks() else { return Err(Fault::arity(command)) };
    for (index, [word, _]) in pairs.iter().enumerate() {
        if !SETTINGS.into_iter().flat_map(Setting::names).any(|name| is(word, name)) {
            return Err(Fault::bad(format!("there is no setting {}", shown(word))));
        }
        if pairs[..index].iter().any(|[earlier, _]| earlier.eq_ignore_ascii_case(word)) {
            return Err(Fault::bad(format!("{} was given twice", shown(word))));
        }
    }
    let mut changes = Vec::with_capacity(pairs.len());
    for setting in SETTINGS {
        changes.extend(new_value(setting, pairs)?.map(|value| (setting, value)));
    }
    Ok(changes)
}

/// Returns the value that the pairs give to a setting, if any.
fn new_value<'a>(setting: &Setting, pairs: &[[&'a [u8]; 2]]) -> Result<Option<Value<'a>>, Fault> {
    let given = |name| pairs.iter().find(|[word, _]| is(word, name)).map(|[_, text]| *text);
    let (name, text) = (setting.name, given(setting.name));
    let Some(length) = setting.length() else {
        return text.map(|text| value(setting, text)).transpose();
    };
    let stay = given(length.name).map(|text| span(length.name, text)).transpose()?;
    let (word, length) = (length.word.word, length.name);
    match (text, stay) {
        (None, stay) => Ok(stay.map(Value::Span)),
        (Some(text), Some(stay)) if is(text, word) => Ok(Some(Value::Span(stay))),
        (Some(text), None) if is(text, word) => {
            Err(Fault::bad(format!("{name} {word} needs {length} ms as well")))
        }
        (Some(text), None) => value(setting, text).map(Some),
        (Some(text), Some(_)) => value(setting, text)
            .and_then(|_| Err(Fault::bad(format!("{length} goes with {name} {word}")))),
    }
}

/// Returns the value that a text stands for.
fn value<'a>(setting: &Setting, text: &'a [u8]) -> Result<Value<'a>, Fault> {
    let name = setting.name;
    if setting.optional && is(text, "none") {
        return Ok(Value::None);
    }
    match &setting.kind {
        Kind::Number => number(text).map(Value::Number).ok_or_else(|| {
            let or_none = if setting.optional { " or none" } else { "" };
            no_value(&format!("{name} is a number{or_none}"), text)
        }),
        Kind::Span => span(name, text).map(Value::Span),
        Kind::Name => Ok(Value::Bytes(text)),
        Kind::Rate => rate(name, text).map(Value::Rate),
        Kind::Words(words) | Kind::WordsOrSpan(words, _) => {
            let place = (0..).zip(*words).find(|(_, word)| is(text, word.word));
            place
                .map(|(place, _)| Value::Word(place))
                .ok_or_else(|| no_value(&format!("{name} is {}", alternatives(setting)), text))
        }
    }
}

/// Returns the rate that a text stands for: a number, a slash, and milliseconds.
fn rate(name: &str, text: &[u8]) -> Result<Rate, Fault> {
    let slash = text.iter().position(|byte| *byte == b'/');
    let parsed = slash.and_then(|at| {
        let count = u32::try_from(number(&text[..at])?).ok()?;
        let per = span(name, &text[at + 1..]).ok()?;
        Some(Rate { count, per })
    });
    parsed.ok_or_else(|| no_value(&format!("{name} is n/ms, such as 100/1000, or none"), text))
}

/// Returns the words of a setting as part of a sentence.
fn alternatives(setting: &Setting) -> String {
    let mut words: Vec<&str> = setting.words().map(|word| word.word).collect();
    let last = words.pop().unwrap_or_default();
    format!("{} or {last}", words.join(", "))
}

fn is(text: &[u8], word: &str) -> bool {
    text.eq_ignore_ascii_case(word.as_bytes())
}

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
