//! Settings of queues as the words of a request. All of them come from the table of settings. The
//! engine checks the bounds.

use super::fault::{Fault, shown};
use super::parts::{Parts, no_value, number, span};
use super::reading::Room;
use super::writing::Writing;
use crate::settings::{Assignment, Rate, SETTINGS, Setting, SettingKind, Shown, Value};

/// Reads those that follow the name of a queue, which is one word.
pub(crate) fn read<'a>(
    parts: &Parts<'a>,
    room: &'a Room<'a>,
) -> Result<&'a [Assignment<'a>], Fault> {
    let words = parts.words.get(1..).unwrap_or_default();
    let changes = changes(words, &parts.spec().full_name())?;
    Ok(room.settings.get_or_init(|| changes))
}

/// Writes them.
pub(crate) fn write(changes: &[Assignment<'_>], to: &mut Writing) {
    for (setting, value) in changes {
        for (name, shown) in setting.shown(*value) {
            let text = match shown {
                Shown::None if setting.optional => b"none".to_vec(),
                Shown::None => continue,
                Shown::Number(number) => number.to_string().into(),
                Shown::Text(text) => text.into(),
                Shown::Rate(rate) => rate.to_string().into(),
            };
            to.all(&[name.as_bytes(), &text]);
        }
    }
}

/// Reads the pairs of a name and a value that follow the words of `command`.
pub fn changes<'a>(words: &[&'a [u8]], command: &str) -> Result<Vec<Assignment<'a>>, Fault> {
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
        SettingKind::Number => number(text).map(Value::Number).ok_or_else(|| {
            let or_none = if setting.optional { " or none" } else { "" };
            no_value(&format!("{name} is a number{or_none}"), text)
        }),
        SettingKind::Span => span(name, text).map(Value::Span),
        SettingKind::Name | SettingKind::Limits => Ok(Value::Bytes(text)),
        SettingKind::Rate => rate(name, text).map(Value::Rate),
        SettingKind::Words(words) | SettingKind::WordsOrSpan(words, _) => {
            let place = (0..).zip(*words).find(|(_, word)| is(text, word.word));
            place
                .map(|(place, _)| Value::Word(place))
                .ok_or_else(|| no_value(&format!("{name} is {}", alternatives(setting)), text))
        }
    }
}

fn rate(name: &str, text: &[u8]) -> Result<Rate, Fault> {
    let wrong = || no_value(&format!("{name} is n/ms, such as 100/1000, or none"), text);
    rate_of(text).ok_or_else(wrong)
}

/// Returns the rate that a text stands for: a number, a slash, and milliseconds.
#[must_use]
pub fn rate_of(text: &[u8]) -> Option<Rate> {
    let at = text.iter().position(|byte| *byte == b'/')?;
    let count = u32::try_from(number(&text[..at])?).ok()?;
    let per = span("", &text[at + 1..]).ok()?;
    Some(Rate { count, per })
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
