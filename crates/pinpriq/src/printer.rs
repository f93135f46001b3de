//! Replies over RESP on stdout: fields on a line for people, one JSON object in each line for
//! programs.
//!
//! Programs get bytes that are not text in Base64. The name of the member then ends with `_base64`.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::wire::resp::Value;

use crate::connection::Wanted;
use crate::exit::Failure;
use crate::json::Json;
use crate::output::{escaped, wanted};

/// A part of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    name: &'a str,
    value: &'a Value,
    /// Whether people see it too.
    for_people: bool,
}

/// A part that everybody sees.
pub(crate) const fn shown<'a>(name: &'a str, value: &'a Value) -> Field<'a> {
    Field { name, value, for_people: true }
}

/// A part for programs alone.
pub(crate) const fn hidden<'a>(name: &'a str, value: &'a Value) -> Field<'a> {
    Field { name, value, for_people: false }
}

/// Where answers are printed.
#[derive(Debug)]
pub(crate) struct Printer<W> {
    out: W,
    json: bool,
    /// Whether what cannot be printed is shown as an escape.
    escapes: bool,
}

/// What most commands print with.
pub(crate) type StdoutPrinter = Printer<BufWriter<StdoutLock<'static>>>;

impl StdoutPrinter {
    /// Prints to stdout.
    pub(crate) fn to_stdout(json: bool) -> Self {
        let stdout = io::stdout().lock();
        let escapes = stdout.is_terminal();
        Self { out: BufWriter::new(stdout), json, escapes }
    }
}

impl<W: Write> Printer<W> {
    /// Prints an answer of a few parts: on a line, with tabs between, or as an object. A line
    /// without any part is left out.
    pub(crate) fn fields(&mut self, fields: &[Field<'_>]) -> Result<Wanted, Failure> {
        let line = if self.json {
            let members = fields.iter().map(|field| member(field.name, field.value));
            format!("{}\n", Json::Map(members.collect())).into_bytes()
        } else {
            let seen: Vec<Vec<u8>> = fields
                .iter()
                .filter(|field| field.for_people)
                .map(|field| self.text(field.value))
                .collect();
            if seen.is_empty() {
                return Ok(Wanted::More);
            }
            [seen.join(&b'\t'), b"\n".to_vec()].concat()
        };
        wanted(self.out.write_all(&line))
    }

    /// Prints a map: each of its members on a line, after its name, or all as one object.
    pub(crate) fn map(&mut self, value: &Value) -> Result<Wanted, Failure> {
        let text = if self.json {
            format!("{}\n", json(value))
        } else {
            let mut text = String::new();
            lines("", value, &mut text);
            text
        };
        wanted(self.out.write_all(text.as_bytes()))
    }

    /// Flushes what was printed.
    pub(crate) fn flush(&mut self) -> Result<Wanted, Failure> {
        wanted(self.out.flush())
    }

    fn text(&self, value: &Value) -> Vec<u8> {
        match value.as_bytes() {
            Some(bytes) if !self.escapes => bytes.to_vec(),
            _ => in_words(value).into_bytes(),
        }
    }
}

/// A value for people, with escapes for what cannot be printed.
pub(crate) fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Error(sentence) => sentence.clone(),
        Value::Array(values) | Value::Set(values) | Value::Push(values) => {
            values.iter().map(in_words).collect::<Vec<_>>().join(" ")
        }
        other => escaped(other.as_bytes().unwrap_or_default()),
    }
}

/// A line for each member of a map, and for each of those within it.
fn lines(prefix: &str, value: &Value, text: &mut String) {
    let Value::Map(members) = value else {
        let _ = writeln!(text, "{prefix}: {}", in_words(value));
        return;
    };
    for (name, value) in members {
        let dot = if prefix.is_empty() { "" } else { "." };
        lines(&format!("{prefix}{dot}{}", in_words(name)), value, text);
    }
}

/// A member of an object.
fn member(name: &str, value: &Value) -> (String, Json) {
    match value.as_bytes().map(std::str::from_utf8) {
        Some(Err(_)) => {
            let bytes = value.as_bytes().unwrap_or_default();
            (format!("{name}_base64"), Json::Text(STANDARD.encode(bytes)))
        }
        _ => (name.to_owned(), json(value)),
    }
}

/// Returns a value for programs. Bytes that are not text become a separate object.
fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => Json::Integer(*number),
        Value::Boolean(truth) => Json::Bool(*truth),
        Value::Array(values) | Value::Set(values) | Value::Push(values) => {
            Json::List(values.iter().map(json).collect())
        }
        Value::Map(members) => {
            Json::Map(members.iter().map(|(name, value)| member(&in_words(name), value)).collect())
        }
        other => match other.as_bytes().map(std::str::from_utf8) {
            Some(Ok(text)) => Json::text(text),
            Some(Err(_)) => Json::Map(vec![member("bytes", other)]),
            None => Json::Text(in_words(other)),
        },
    }
}

/// A text as a value.
pub(crate) fn text(text: impl AsRef<[u8]>) -> Value {
    Value::Bulk(text.as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::Value;

    use super::{Printer, hidden, shown, text};

    fn printer(json: bool, escapes: bool) -> Printer<Vec<u8>> {
        Printer { out: Vec::new(), json, escapes }
    }

    #[track_caller]
    fn check(mut printer: Printer<Vec<u8>>, expected: &str) {
        let (id, payload, null) = (text("7"), text(b"\x1b\"\xff"), Value::Null);
        let fields = [hidden("id", &id), shown("receipt", &null), shown("payload", &payload)];
        printer.fields(&fields).unwrap();
        printer.fields(&[hidden("id", &id)]).unwrap();
        assert_eq!(String::from_utf8_lossy(&printer.out), expected);
    }

    #[test]
    fn people_see_a_line_and_programs_an_object() {
        check(printer(false, false), "-\t\u{1b}\"\u{fffd}\n");
        check(printer(false, true), "-\t\\u{1b}\"\\xff\n");
        let objects =
            "{\"id\":\"7\",\"receipt\":null,\"payload_base64\":\"GyL/\"}\n{\"id\":\"7\"}\n";
        check(printer(true, false), objects);
        check(printer(true, true), objects);
    }

    #[test]
    fn maps_are_printed_with_what_is_in_them() {
        let value = |number| Value::Integer(number);
        let counts = Value::Map(vec![(text("R"), value(2)), (text("X-R"), value(-1))]);
        let members = vec![
            (text("counts"), counts),
            (text("queue"), text(b"a\n\xff")),
            (text("key"), text("k\u{1}ü")),
            (text("ttl"), Value::Null),
            (text("names"), Value::Array(vec![text("a"), text(b"\xff"), Value::Boolean(true)])),
        ];
        let map = Value::Map(members);
        let mut people = printer(false, false);
        people.map(&map).unwrap();
        let expected = "counts.R: 2\ncounts.X-R: -1\nqueue: a\\n\\xff\nkey: k\\u{1}ü\nttl: -\n\
                        names: a \\xff true\n";
        assert_eq!(String::from_utf8(people.out).unwrap(), expected);
        let mut programs = printer(true, false);
        programs.map(&map).unwrap();
        let expected = concat!(
            r#"{"counts":{"R":2,"X-R":-1},"queue_base64":"YQr/","key":"k\u0001ü","ttl":null,"#,
            r#""names":["a",{"bytes_base64":"/w=="},true]}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(programs.out).unwrap(), expected);
    }
}
