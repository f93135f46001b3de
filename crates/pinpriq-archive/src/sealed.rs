//! Small objects of text: JSON, a line end, and a last line with its checksum.
//!
//! What the JSON says is the business of those who seal it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ArchiveError;

/// The format of everything that is sealed, and the highest that is read.
pub(crate) const FORMAT: u32 = 1;

/// What the last line begins with.
const SUM: &str = "xxh3 ";

/// The bytes of the last line: its word, 16 digits, and its end.
const SUM_BYTES: usize = SUM.len() + 16 + 1;

/// What every version of these objects says.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Writes the value with its checksum.
pub(crate) fn seal(value: &impl Serialize) -> Vec<u8> {
    // Maps with text as keys and plain values always become JSON.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    let sum = format!("{SUM}{:016x}\n", xxh3_64(&bytes));
    bytes.extend_from_slice(sum.as_bytes());
    bytes
}

/// Reads a value that was sealed as the object of this name. Accepts any bytes.
pub(crate) fn unseal<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ArchiveError> {
    let content =
        content(bytes).ok_or_else(|| ArchiveError::damaged(name, "its checksum is bad"))?;
    let fail = |error: serde_json::Error| ArchiveError::damaged(name, error.to_string());
    // A newer format may say something else, but says that it is newer.
    let Format { format } = serde_json::from_slice(content).map_err(fail)?;
    if format > FORMAT {
        return Err(ArchiveError::newer(name, format, FORMAT));
    }
    serde_json::from_slice(content).map_err(fail)
}

/// The bytes before the last line, if that has their checksum.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (content, last) = bytes.split_at_checked(bytes.len().checked_sub(SUM_BYTES)?)?;
    let stated = last.strip_prefix(SUM.as_bytes())?.strip_suffix(b"\n")?;
    let actual = format!("{:016x}", xxh3_64(content));
    (content.ends_with(b"\n") && stated == actual.as_bytes()).then_some(content)
}

/// Numbers of 64 bits that are no quantities, as 16 hexadecimal digits.
pub(crate) mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::names::LineId;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
    pub(crate) fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{number:016x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let number: LineId = text.parse().map_err(|_| D::Error::custom("no 16 digits"))?;
        Ok(number.0)
    }
}
