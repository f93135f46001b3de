//! JSON, as much of it as a report needs: written, never read.

use std::fmt;

use pinpriq_server::plain::is_deceptive;

/// A value in a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number. Some readers lose digits beyond 2^53.
    Number(u64),
    /// A whole number that may be negative. Some readers lose digits beyond 2^53.
    Integer(i64),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Self>),
    /// Named values, in the order given.
    Object(Vec<(&'static str, Self)>),
    /// The same with names that come from elsewhere.
    Map(Vec<(String, Self)>),
}

impl Json {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The member of an object with this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// A list of what `json` makes of each item.
    pub(crate) fn list<T>(items: impl IntoIterator<Item = T>, json: impl Fn(T) -> Self) -> Self {
        Self::List(items.into_iter().map(json).collect())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(text) => write_text(f, text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => write_members(f, members),
            Self::Map(members) => write_members(f, members),
        }
    }
}

fn write_members(f: &mut fmt::Formatter<'_>, members: &[(impl AsRef<str>, Json)]) -> fmt::Result {
    f.write_str("{")?;
    for (index, (name, value)) in members.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { "," })?;
        write_text(f, name.as_ref())?;
        write!(f, ":{value}")?;
    }
    f.write_str("}")
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            // A terminal must not obey what is only to be read.
            other if is_deceptive(other) => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    write!(f, "\\u{unit:04x}")?;
                }
            }
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn values_are_written_as_json() {
        let value = Json::Object(vec![
            ("nothing", Json::Null),
            ("list", Json::list([1, 2], Json::Number)),
            ("empty", Json::List(Vec::new())),
            ("text", Json::text("a\"b\\c\n\u{7f}ü\u{9b}\u{202e}")),
            ("flag", Json::Bool(true)),
            ("map", Json::Map(vec![("X-\"R".to_owned(), Json::Integer(i64::MIN))])),
        ]);
        let expected = concat!(
            r#"{"nothing":null,"list":[1,2],"empty":[],"text":"a\"b\\c\u000a\u007fü\u009b\u202e","#,
            r#""flag":true,"map":{"X-\"R":-9223372036854775808}}"#
        );
        assert_eq!(value.to_string(), expected);
    }
}
