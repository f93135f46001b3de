//! The configuration of the server: the text of a file, and flags.
//!
//! The text comes first, then each flag, with a NUL byte between them. Environment variables go
//! through the same parsers as flags, and cannot be set here without changing the whole process.
//! Nothing is read from a disk, and no name is resolved.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use toml::{Table, Value};

/// How every message about one place of the file begins.
const ABOUT_THE_FILE: &str = "the configuration file";

/// Turns any bytes into a configuration or a message.
///
/// # Panics
/// If a message is empty, or does not name the setting that caused it.
pub fn configuration(bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let flags: Vec<OsString> = parts.map(|flag| OsString::from_vec(flag.to_vec())).collect();
    let accepted = outcome(&[], &text).is_ok();
    if let Ok(table) = text.parse::<Table>() {
        for (key, value) in table {
            let is_refused = refused_alone(&key, value);
            assert!(!(accepted && is_refused), "{key:?} is accepted with others and not alone");
        }
    }
    if !flags.is_empty() && outcome(&flags, &text).is_err() {
        for flag in &flags {
            refused_by_name(flag);
        }
    }
}

/// Returns the configuration as text, or the message.
fn outcome(flags: &[OsString], text: &str) -> Result<String, String> {
    let outcome = pinpriq::configuration(flags.iter().cloned(), text);
    if let Err(message) = &outcome {
        assert!(!message.trim().is_empty(), "a refusal says what was wrong");
    }
    outcome
}

/// Whether a file with only this setting is refused because of it, and then by its name.
fn refused_alone(key: &str, value: Value) -> bool {
    let alone = Table::from_iter([(key.to_owned(), value)]).to_string();
    let Err(message) = outcome(&[], &alone) else { return false };
    assert!(message.contains(key), "{message:?} does not name {key:?} in {alone:?}");
    // Other messages are about settings that conflict with the defaults.
    message.starts_with(ABOUT_THE_FILE)
}

/// If this flag alone is refused, then by its name.
fn refused_by_name(flag: &OsString) {
    // Of bytes that are not UTF-8, clap only says that there are some.
    let name = flag.to_str().and_then(|text| text.strip_prefix("--")?.split('=').next());
    let Some(name) = name else { return };
    // Asking for help is not an error, and control characters are not shown.
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain || name == "help" {
        return;
    }
    if let Err(message) = outcome(std::slice::from_ref(flag), "") {
        assert!(message.contains(name), "{message:?} does not name {name:?}");
    }
}
