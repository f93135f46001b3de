//! The environment variables of a command that works on a task.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::told::{HEADER, TRACE};

/// A variable, which is removed if it has no value.
pub(super) type Variable = (String, Option<OsString>);

/// Returns the variables for the headers of a task: one for each, and those by which a program
/// finds the trace that it belongs to.
///
/// A name is in capitals, with `_` for what no variable has. Headers whose names meet so have none,
/// nor has one with a byte 0. What the worker itself has of them (`names`) is removed.
pub(super) fn of_headers(
    headers: &[(&[u8], &[u8])],
    names: impl Iterator<Item = OsString>,
) -> Vec<Variable> {
    let is_one = |name: &OsString| name.as_bytes().starts_with(HEADER.as_bytes());
    let own = names.filter(is_one).filter_map(|name| name.into_string().ok());
    let mut variables: BTreeMap<String, Option<OsString>> = own.map(|name| (name, None)).collect();
    let text = |value: &[u8]| OsStr::from_bytes(value).to_owned();
    let mut met = BTreeSet::new();
    for (name, value) in headers {
        let name = variable(name);
        let is_first = met.insert(name.clone());
        variables.insert(name, is_first.then(|| text(value)));
    }
    for (header, name) in TRACE {
        let value = headers.iter().find(|(known, _)| *known == header.as_bytes());
        variables.insert(name.to_owned(), value.map(|(_, value)| text(value)));
    }
    variables.into_iter().collect()
}

fn variable(name: &[u8]) -> String {
    let letter = |byte: &u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' => char::from(byte.to_ascii_uppercase()),
        _ => '_',
    };
    HEADER.chars().chain(name.iter().map(letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::of_headers;

    fn told(headers: &[(&str, &str)], own: &[&str]) -> Vec<(String, Option<String>)> {
        let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let told = of_headers(&headers.collect::<Vec<_>>(), own.iter().map(Into::into));
        let text = |(name, value): (String, Option<std::ffi::OsString>)| {
            (name, value.map(|value| value.into_string().unwrap()))
        };
        told.into_iter().map(text).collect()
    }

    fn expected(pairs: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
        pairs.iter().map(|(name, value)| ((*name).into(), value.map(Into::into))).collect()
    }

    #[test]
    fn a_header_is_a_variable_in_capitals() {
        let headers = [("tenant-id.9", "acme"), ("traceparent", "00-ab")];
        assert_eq!(
            told(&headers, &["PATH"]),
            expected(&[
                ("PINPRIQ_HEADER_TENANT_ID_9", Some("acme")),
                ("PINPRIQ_HEADER_TRACEPARENT", Some("00-ab")),
                ("TRACEPARENT", Some("00-ab")),
                ("TRACESTATE", None),
            ])
        );
    }

    #[test]
    fn headers_that_meet_have_no_variable() {
        assert_eq!(
            told(&[("a-b", "1"), ("a.b", "2"), ("c", "3")], &[])[..2],
            expected(&[("PINPRIQ_HEADER_A_B", None), ("PINPRIQ_HEADER_C", Some("3"))])
        );
    }

    #[test]
    fn what_the_worker_has_itself_is_removed() {
        assert_eq!(
            told(&[("b", "")], &["PINPRIQ_HEADER_A", "PINPRIQ_HEADER_B", "PINPRIQ_ID"])[..2],
            expected(&[("PINPRIQ_HEADER_A", None), ("PINPRIQ_HEADER_B", Some(""))])
        );
    }
}
