//! Small texts that notice when they were damaged: JSON, a line end, and a last line with its
//! checksum. Objects of archives are such texts, and the file `following`.
//!
//! What the JSON says is the business of those who seal it. Opens no file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// What the last line begins with.
const SUM: &str = "xxh3 ";

/// The bytes of the last line: its word, 16 digits, and its end.
const SUM_BYTES: usize = SUM.len() + 16 + 1;

/// Why a text is no value.
#[derive(Debug)]
pub enum Unsealed {
    /// It is not as it was sealed. Says how that is known.
    Damaged(String),
    /// It has this format, which is newer than the highest that is known.
    Newer(u32),
}

/// What every version of these texts says.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Writes a value with its checksum. It has a member `format`.
#[must_use]
pub fn seal(value: &impl Serialize) -> Vec<u8> {
    // Maps with text as keys and plain values always become JSON.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    let sum = last_line(&bytes);
    bytes.extend_from_slice(sum.as_bytes());
    bytes
}

/// Reads a value that was sealed, of a format up to `known`. Accepts any bytes.
pub fn unseal<T: DeserializeOwned>(bytes: &[u8], known: u32) -> Result<T, Unsealed> {
    let content =
        content(bytes).ok_or_else(|| Unsealed::Damaged("its checksum is bad".to_owned()))?;
    let fail = |error: serde_json::Error| Unsealed::Damaged(error.to_string());
    // A newer format may say something else, but says that it is newer.
    let Format { format } = serde_json::from_slice(content).map_err(fail)?;
    if format > known {
        return Err(Unsealed::Newer(format));
    }
    serde_json::from_slice(content).map_err(fail)
}

/// The bytes before the last line, if that has their checksum.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (content, last) = bytes.split_at_checked(bytes.len().checked_sub(SUM_BYTES)?)?;
    (content.ends_with(b"\n") && last == last_line(content).as_bytes()).then_some(content)
}

fn last_line(content: &[u8]) -> String {
    format!("{SUM}{:016x}\n", xxh3_64(content))
}

/// A number of 64 bits by its 16 hexadecimal digits, small or large.
#[must_use]
pub fn parse_hex(text: &str) -> Option<u64> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

/// Numbers of 64 bits that are no quantities, as 16 hexadecimal digits.
pub mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::parse_hex;

    /// Writes the digits.
    pub fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{number:016x}"))
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        parse_hex(&text).ok_or_else(|| D::Error::custom("no 16 digits"))
    }
}
