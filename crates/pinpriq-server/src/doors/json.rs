//! Writes JSON piece by piece, without a tree of values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::task::{TaskId, headers};
use pinpriq_proto::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// Writes the members of one object.
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    /// Begins an object.
    pub(crate) fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Ends the object.
    pub(crate) fn end(self) {
        self.out.push(b'}');
    }

    /// Writes the name of a member, whose value `write` must append.
    pub(crate) fn member(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        put(self.out, name);
        self.out.push(b':');
        write(self.out);
        self
    }

    /// Writes a value. `None` and `()` are null.
    pub(crate) fn set(&mut self, name: &str, value: impl Serialize) -> &mut Self {
        self.member(name, |out| put(out, value))
    }

    /// Writes a number with at most three digits behind the point, or null.
    pub(crate) fn ratio(&mut self, name: &str, ratio: Option<f64>) -> &mut Self {
        self.set(name, rounded(ratio))
    }

    /// Writes a moment by RFC 3339, with milliseconds, or null.
    pub(crate) fn moment(&mut self, name: &str, at: impl Into<Option<Timestamp>>) -> &mut Self {
        self.set(name, at.into().map(moment_text))
    }

    /// Writes bytes: as text where they are UTF-8, else in base64 under a name that says so.
    pub(crate) fn bytes(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.set(name, text),
            Err(_) => self.set(&format!("{name}_base64"), STANDARD.encode(bytes)),
        }
    }

    /// Writes the id of a task.
    pub(crate) fn id(&mut self, name: &str, id: &TaskId) -> &mut Self {
        match id {
            TaskId::Given(bytes) => self.bytes(name, bytes),
            id => self.set(name, id.to_string()),
        }
    }

    /// Writes the headers of a task as an object: text where they are UTF-8, else as [`item`] does.
    pub(crate) fn headers(&mut self, name: &str, headers: &[u8]) -> &mut Self {
        self.object(name, |it| {
            for (name, value) in headers::decode(headers) {
                it.member(&String::from_utf8_lossy(name), |out| item(out, value));
            }
        })
    }

    /// Writes an object.
    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.member(name, |out| object(out, write))
    }

    /// Writes an array of objects.
    pub(crate) fn array<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Vec<u8>, T),
    ) -> &mut Self {
        self.member(name, |out| array(out, items, write))
    }
}

/// Appends an object.
pub(crate) fn object(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    let mut object = Object::begin(out);
    write(&mut object);
    object.end();
}

/// Appends an array.
pub(crate) fn array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Appends a value.
pub(crate) fn put(out: &mut Vec<u8>, value: impl Serialize) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

/// Appends bytes that have no name: text where they are UTF-8, else an object that says base64.
pub(crate) fn item(out: &mut Vec<u8>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => put(out, text),
        Err(_) => object(out, |it| {
            it.set("base64", STANDARD.encode(bytes));
        }),
    }
}

/// Returns the bytes that [`item`] writes, if it is that.
pub(crate) fn bytes_of_item(item: Value) -> Option<Vec<u8>> {
    match item {
        Value::String(text) => Some(text.into_bytes()),
        Value::Object(mut members) if members.len() == 1 => match members.remove("base64") {
            Some(Value::String(text)) => STANDARD.decode(text).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the headers that [`Object::headers`] writes, as [`headers::encode`] writes them.
pub(crate) fn headers_of(value: Value) -> Option<Vec<u8>> {
    let Value::Object(members) = value else { return None };
    let pairs = members.into_iter().map(|(name, value)| Some((name, bytes_of_item(value)?)));
    let pairs: Vec<_> = pairs.collect::<Option<_>>()?;
    Some(headers::encode(pairs.iter().map(|(name, value)| (name.as_bytes(), &**value))))
}

/// Returns a number with at most three digits behind the point.
pub(crate) fn rounded(ratio: Option<f64>) -> Option<f64> {
    ratio.map(|ratio| (ratio * 1_000.0).round() / 1_000.0)
}

/// Returns a moment by RFC 3339, with milliseconds.
pub(crate) fn moment_text(at: Timestamp) -> String {
    let ms = i64::try_from(at.ms()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |at| format!("{at:.3}"))
}
