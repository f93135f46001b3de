//! What a request gives besides its path: the parameters of the query and the members of an object.
//!
//! Each is used once. What is left at the end is unknown, and refused.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::super::problem::Problem;
use super::names::{decode, decode_text};
use crate::doors::json::{bytes_of_item, headers_of};
use pinpriq_proto::batches::encode_names;
use pinpriq_proto::request::options::{HEADERS_FORM, LIMIT_OR_NONE, OWN_LIMIT, Opt, OptionKind};
use pinpriq_proto::task::headers;

/// One value.
#[derive(Clone, PartialEq, Debug)]
enum Given {
    /// Of the query.
    Text(Vec<u8>),
    /// Of an object.
    Json(Value),
}

/// All values, each under its name.
#[derive(Debug, Default)]
pub(crate) struct Values {
    all: Vec<(String, Given)>,
}

/// The end of the names of members that are bytes in base64.
const BASE64: &str = "_base64";

/// The parameters that a query may have several times.
const REPEATED: [&str; 1] = ["after"];

impl Values {
    /// Reads the parameters of a query.
    pub(crate) fn of_query(query: Option<&str>) -> Result<Self, Problem> {
        let mut values = Self::default();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode_text(name)?, Given::Text(decode(value)?));
            if REPEATED.contains(&&*name) {
                values.all.push((name, value));
            } else {
                values.add(name, value)?;
            }
        }
        Ok(values)
    }

    /// Adds the members of an object.
    pub(crate) fn add_object(&mut self, body: &[u8]) -> Result<(), Problem> {
        let members: Pairs<Value> =
            serde_json::from_slice(body).map_err(|wrong| no_json(&wrong))?;
        self.add_members(members)
    }

    /// Adds the members of an object in which there are only names, in base64.
    pub(crate) fn add_names(&mut self, body: &[u8]) -> Result<(), Problem> {
        let members: Pairs<Value> =
            serde_json::from_slice(body).map_err(|wrong| no_json(&wrong))?;
        if members.0.iter().any(|(name, _)| !name.ends_with(BASE64)) {
            return Err(Problem::bad("this request has no body, but for names in base64"));
        }
        self.add_members(members)
    }

    /// Returns the members of an object within an array of this name.
    pub(crate) fn of_value(name: &str, value: Value) -> Result<Self, Problem> {
        let Value::Object(members) = value else {
            return Err(Problem::bad(format!("{name} holds objects")));
        };
        let all = members.into_iter().map(|(name, value)| (name, Given::Json(value)));
        Ok(Self { all: all.collect() })
    }

    /// Adds the members of an object that was read.
    fn add_members(&mut self, members: Pairs<Value>) -> Result<(), Problem> {
        members.0.into_iter().try_for_each(|(name, value)| self.add(name, Given::Json(value)))
    }

    fn add(&mut self, name: String, value: Given) -> Result<(), Problem> {
        if self.all.iter().any(|(known, _)| *known == name) {
            return Err(Problem::bad(format!("{} was given twice", shown(&name))));
        }
        self.all.push((name, value));
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<Given> {
        let at = self.all.iter().position(|(known, _)| known == name)?;
        Some(self.all.remove(at).1)
    }

    /// Whether there is such a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|(known, _)| known == name)
    }

    /// Takes bytes: as text, or in base64 under a name that says so.
    pub(crate) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let coded_name = format!("{name}{BASE64}");
        let (plain, coded) = (self.take(name), self.take(&coded_name));
        match (plain, coded) {
            (Some(_), Some(_)) => {
                Err(Problem::bad(format!("{name} and {coded_name} exclude each other")))
            }
            (None, None) => Ok(None),
            (Some(Given::Text(text)), None) => Ok(Some(text)),
            (Some(Given::Json(Value::String(text))), None) => Ok(Some(text.into_bytes())),
            (Some(Given::Json(_)), None) => Err(Problem::bad(format!("{name} is a string"))),
            (None, Some(coded)) => {
                let text = match coded {
                    Given::Text(text) => text,
                    Given::Json(Value::String(text)) => text.into_bytes(),
                    Given::Json(_) => Vec::from(b"-"),
                };
                let bytes = STANDARD.decode(text);
                bytes.map(Some).map_err(|_| Problem::bad(format!("{coded_name} is not base64")))
            }
        }
    }

    /// Takes an array of bytes.
    pub(crate) fn array(&mut self, name: &str) -> Result<Option<Vec<Vec<u8>>>, Problem> {
        let items = match self.take(name) {
            None => return Ok(None),
            Some(Given::Json(Value::Array(items))) => items,
            Some(_) => return Err(Problem::bad(format!("{name} is an array, in a JSON body"))),
        };
        let items: Option<Vec<_>> = items.into_iter().map(bytes_of_item).collect();
        let rule = format!("{name} holds strings, or {{\"base64\": \"…\"}} for other bytes");
        items.map(Some).ok_or_else(|| Problem::bad(rule))
    }

    /// Takes names, as [`encode_names`] writes them: parameters, or an array.
    fn names(&mut self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let texts = self.texts(name);
        let names = if texts.is_empty() { self.array(name)? } else { Some(texts) };
        Ok(names.map(|names| encode_names(names.iter().map(Vec::as_slice))))
    }

    /// Takes all parameters of this name.
    fn texts(&mut self, name: &str) -> Vec<Vec<u8>> {
        let mut texts = Vec::new();
        self.all.retain_mut(|(known, given)| match given {
            Given::Text(text) if *known == name => {
                texts.push(std::mem::take(text));
                false
            }
            _ => true,
        });
        texts
    }

    /// Takes an array of values.
    pub(crate) fn values(&mut self, name: &str) -> Result<Option<Vec<Value>>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Given::Json(Value::Array(items))) => Ok(Some(items)),
            Some(_) => Err(Problem::bad(format!("{name} is an array, in a JSON body"))),
        }
    }

    /// Takes a word without a value: whether it was given.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.take(name) {
            None => Ok(false),
            Some(Given::Json(Value::Bool(truth))) => Ok(truth),
            Some(Given::Text(text)) if text == b"true" => Ok(true),
            Some(Given::Text(text)) if text == b"false" => Ok(false),
            Some(_) => Err(Problem::bad(format!("{name} is true or false"))),
        }
    }

    /// Takes the value of an option, as the command understands it.
    pub(crate) fn option(&mut self, option: Opt) -> Result<Option<Vec<u8>>, Problem> {
        let name = option.word.to_ascii_lowercase();
        let Some(kind) = option.value else {
            return Ok(self.flag(&name)?.then(Vec::new));
        };
        if is_bytes(kind) {
            return self.bytes(&name);
        }
        if option.kind() == OptionKind::Names {
            return self.names(&name);
        }
        let Some(given) = self.take(&name) else { return Ok(None) };
        if kind == HEADERS_FORM {
            let headers = if let Given::Json(value) = given { headers_of(value) } else { None };
            let rule = format!(
                "{name} is an object of strings, or {{\"base64\": \"…\"}} for other bytes, in a \
                 JSON body"
            );
            return headers.map(Some).ok_or_else(|| Problem::bad(rule));
        }
        if let OptionKind::Two(_) = option.kind() {
            let two = if let Given::Json(value) = given { two_of(value) } else { None };
            let [first, second] =
                two.ok_or_else(|| Problem::bad(format!("{name} is an array of two: {kind}")))?;
            return Ok(Some(headers::encode([(&*first, &*second)])));
        }
        if kind == "unix-ms" {
            return moment(&name, &given).map(Some);
        }
        match given {
            Given::Text(text) => Ok(Some(text)),
            Given::Json(Value::Null) if kind.ends_with("|NONE") => Ok(Some(b"NONE".to_vec())),
            Given::Json(Value::Null) if kind.ends_with("|none") => Ok(Some(b"none".to_vec())),
            Given::Json(Value::Number(number))
                if (is_number(kind) || [OWN_LIMIT, LIMIT_OR_NONE].contains(&kind))
                    && !number.is_f64() =>
            {
                Ok(Some(number.to_string().into_bytes()))
            }
            Given::Json(Value::String(text)) if !is_number(kind) => Ok(Some(text.into_bytes())),
            Given::Json(_) if is_number(kind) => {
                Err(Problem::bad(format!("{name} is a whole number")))
            }
            Given::Json(_) => Err(Problem::bad(format!("{name} is a string: {kind}"))),
        }
    }

    /// Takes all values as settings of a queue.
    pub(crate) fn settings(&mut self) -> Result<Vec<Vec<u8>>, Problem> {
        let mut words = Vec::new();
        for (name, given) in std::mem::take(&mut self.all) {
            let (name, value) = match given {
                Given::Text(text) => (name, text),
                Given::Json(Value::Null) => (name, b"none".to_vec()),
                Given::Json(Value::Number(number)) if !number.is_f64() => {
                    (name, number.to_string().into_bytes())
                }
                Given::Json(Value::String(text)) => match name.strip_suffix(BASE64) {
                    None => (name, text.into_bytes()),
                    Some(plain) => {
                        let bytes = STANDARD.decode(text);
                        let wrong = |_| Problem::bad(format!("{} is not base64", shown(&name)));
                        (plain.to_owned(), bytes.map_err(wrong)?)
                    }
                },
                Given::Json(_) => {
                    let rule = "is a whole number, a string or null";
                    return Err(Problem::bad(format!("{} {rule}", shown(&name))));
                }
            };
            if name != name.to_ascii_lowercase() {
                return Err(Problem::bad(format!("there is no setting {}", shown(&name))));
            }
            words.extend([name.into_bytes(), value]);
        }
        Ok(words)
    }

    /// Refuses what was not used.
    pub(crate) fn end(self, of: &str) -> Result<(), Problem> {
        match self.all.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::bad(format!("{of} knows no option {}", shown(name)))),
        }
    }
}

/// Returns two values as the words that stand for them.
fn two_of(value: Value) -> Option<[Vec<u8>; 2]> {
    let Value::Array(items) = value else { return None };
    let words = items.into_iter().map(|item| match item {
        Value::Number(number) if !number.is_f64() => Some(number.to_string().into_bytes()),
        other => bytes_of_item(other),
    });
    words.collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// Whether a value of this kind is bytes.
pub(crate) fn is_bytes(kind: &str) -> bool {
    const OF_BYTES: [&str; 12] = [
        "key", "id", "payload", "text", "receipt", "member", "prefix", "name", "share", "bytes",
        "pattern", "batch",
    ];
    OF_BYTES.contains(&kind)
}

/// Whether a value of this kind is a number.
pub(crate) fn is_number(kind: &str) -> bool {
    matches!(kind, "ms" | "n" | "ms|NONE" | "n|NONE")
}

/// Returns a moment in Unix milliseconds, given like that or by RFC 3339.
fn moment(name: &str, given: &Given) -> Result<Vec<u8>, Problem> {
    let text = match given {
        Given::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Given::Json(Value::String(text)) => text.clone(),
        Given::Json(Value::Number(number)) => number.to_string(),
        Given::Json(_) => String::new(),
    };
    let is_ms = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_ms && !matches!(given, Given::Json(Value::String(_))) {
        return Ok(text.into_bytes());
    }
    let at: Option<jiff::Timestamp> = text.parse().ok();
    let ms = at.map(jiff::Timestamp::as_millisecond).filter(|ms| *ms >= 0);
    ms.map(|ms| ms.to_string().into_bytes()).ok_or_else(|| {
        let rule = "is a moment by RFC 3339 since 1970, or in Unix milliseconds";
        Problem::bad(format!("{name} {rule}, not {}", shown(&text)))
    })
}

fn no_json(wrong: &serde_json::Error) -> Problem {
    Problem::bad(format!("the body is not a JSON object as it is wanted here: {wrong}"))
}

/// Returns a client's word as part of a sentence.
pub(crate) fn shown(word: &str) -> String {
    pinpriq_proto::request::fault::shown(word.as_bytes())
}

/// Reads the commands of a transaction: the name of each, and what it gives.
pub(crate) fn commands(body: &[u8]) -> Result<Vec<(String, Values)>, Problem> {
    let whole: Pairs<Vec<Pairs<Pairs<Value>>>> =
        serde_json::from_slice(body).map_err(|wrong| no_json(&wrong))?;
    let mut members = whole.0.into_iter();
    let (Some((name, all)), None) = (members.next(), members.next()) else {
        return Err(Problem::bad("the body is {\"commands\": [{\"put\": {…}}, …]}"));
    };
    if name != "commands" {
        return Err(Problem::bad(format!("multi knows no option {}", shown(&name))));
    }
    let read = |command: Pairs<Pairs<Value>>| {
        let mut members = command.0.into_iter();
        let (Some((name, given)), None) = (members.next(), members.next()) else {
            return Err(Problem::bad("each command is an object with one member: its name"));
        };
        let mut values = Values::default();
        values.add_members(given)?;
        Ok((name, values))
    };
    all.into_iter().map(read).collect()
}

/// The members of an object, in order, also those that come twice.
struct Pairs<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
    type Value = Pairs<V>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Pairs(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinpriq_proto::request::options;

    fn of(query: &str, body: &str) -> Values {
        let mut values = Values::of_query(Some(query)).unwrap();
        if !body.is_empty() {
            values.add_object(body.as_bytes()).unwrap();
        }
        values
    }

    #[test]
    fn options_are_read_from_both_places() {
        let mut values = of("delay=5&key=a%20b", r#"{"priority":null,"ttl":7,"tail":true}"#);
        let mut option = |option| values.option(option).unwrap();
        assert_eq!(option(options::DELAY).as_deref(), Some(&b"5"[..]));
        assert_eq!(option(options::KEY).as_deref(), Some(&b"a b"[..]));
        assert_eq!(option(options::PRIORITY).as_deref(), Some(&b"NONE"[..]));
        assert_eq!(option(options::TTL).as_deref(), Some(&b"7"[..]));
        assert_eq!(option(options::TAIL).as_deref(), Some(&b""[..]));
        assert_eq!(option(options::WAIT), None);
        assert!(values.end("PUT").is_ok());
    }

    #[test]
    fn names_are_parameters_or_an_array() {
        let names = |query, body| of(query, body).option(options::AFTER);
        let encoded = |names: &[&[u8]]| Some(encode_names(names.iter().copied()));
        assert_eq!(names("after=b&x=1&after=%ff", "").unwrap(), encoded(&[b"b", b"\xff"]));
        let body = r#"{"after":["b",{"base64":"/w=="}]}"#;
        assert_eq!(names("", body).unwrap(), encoded(&[b"b", b"\xff"]));
        assert_eq!(names("", r#"{"after":[]}"#).unwrap(), encoded(&[]));
        assert_eq!(names("", "").unwrap(), None);
        assert!(names("", r#"{"after":"b"}"#).is_err());
        assert!(names("", r#"{"after":[1]}"#).is_err());
        let mut both = Values::of_query(Some("after=b")).unwrap();
        assert!(both.add_object(br#"{"after":["b"]}"#).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(Values::of_query(Some("a=1&a=2")).is_err());
        assert!(Values::of_query(Some("a=%zz")).is_err());
        let mut values = Values::default();
        for body in [r#"{"a":1,"a":2}"#, "[]", "1", "", "{", r#"{"a":1} x"#] {
            assert!(values.add_object(body.as_bytes()).is_err(), "{body}");
            values = Values::default();
        }
        for body in [r#"{"ttl":"7"}"#, r#"{"ttl":1.5}"#, r#"{"ttl":null}"#, r#"{"ttl":[]}"#] {
            assert!(of("", body).option(options::TTL).is_err(), "{body}");
        }
        assert!(of("", r#"{"key":"a","key_base64":"YQ=="}"#).bytes("key").is_err());
        assert!(of("", r#"{"key_base64":"a"}"#).bytes("key").is_err());
        assert!(of("x=1", "").end("PUT").is_err());
    }

    #[test]
    fn moments_are_dates_or_milliseconds() {
        for (query, body) in [
            ("at=2026-01-02T03:04:05.678Z", ""),
            ("at=2026-01-02T04:04:05.678%2B01:00", ""),
            ("at=1767323045678", ""),
            ("", r#"{"at":1767323045678}"#),
            ("", r#"{"at":"2026-01-02T03:04:05.678Z"}"#),
        ] {
            let at = of(query, body).option(options::AT).unwrap();
            assert_eq!(at.as_deref(), Some(&b"1767323045678"[..]), "{query}{body}");
        }
        for query in ["at=", "at=soon", "at=1969-01-01T00:00:00Z", "at=-1"] {
            assert!(of(query, "").option(options::AT).is_err(), "{query}");
        }
    }
}
