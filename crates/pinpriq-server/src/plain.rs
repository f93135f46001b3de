//! JSON that may be shown on a terminal.
//!
//! JSON escapes few characters itself. Names and payloads may hold others that a terminal obeys, or
//! that change the order of what is read. What the JSON says stays the same.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal may obey this character instead of showing it, or it changes the order in
/// which others are shown.
#[must_use]
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns this JSON with an escape for each character that is [deceptive](is_deceptive). Line
/// breaks and tabs between its parts stay.
#[must_use]
pub fn plain(json: &str) -> Cow<'_, str> {
    let must_go =
        |character: char| is_deceptive(character) && !matches!(character, '\n' | '\t' | '\r');
    if json.is_ascii() && !json.contains('\u{7f}') || !json.contains(must_go) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if must_go(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_what_deceives_is_escaped_and_what_is_said_stays() {
        for text in
            ["plain", "größer 日本 🦀", "a\u{9b}2J", "\u{202e}gpj.exe", "\u{7f}", "\u{e0041}x"]
        {
            let json = Value::from(text).to_string();
            let shown = plain(&json);
            assert!(!shown.contains(is_deceptive), "{shown:?}");
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), text, "{shown}");
        }
        assert_eq!(plain("{\n  \"größe\": \"🦀\"\n}"), "{\n  \"größe\": \"🦀\"\n}");
        assert_eq!(plain("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
    }
}
