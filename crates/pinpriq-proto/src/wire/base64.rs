//! Base64 as RFC 4648 has it, with padding: how bytes that are no text are put into JSON.

/// The digits, by their value.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Stands for a missing byte at the end.
const PADDING: u8 = b'=';

/// The text for `bytes`.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS.get((bits >> shift & 0x3F) as usize).copied();
            let digit = digit.filter(|_| place <= group.len()).unwrap_or(PADDING);
            text.push(char::from(digit));
        }
    }
    text
}

/// The bytes that a text stands for. `None` if it is not what [`encode`] makes of any bytes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (groups, []) = text.as_bytes().as_chunks::<4>() else { return None };
    let mut bytes = Vec::with_capacity(groups.len().saturating_mul(3));
    for group in groups {
        let missing = group.iter().rev().take_while(|digit| **digit == PADDING).count();
        let mut bits = 0;
        for digit in group.iter().take(4_usize.saturating_sub(missing)) {
            bits = bits << 6 | value(*digit)?;
        }
        let (kept, bits) = match missing {
            0 => (3, bits),
            1 => (2, bits << 6),
            2 => (1, bits << 12),
            _ => return None,
        };
        let [_, all @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(all.get(..kept)?);
    }
    // Padding in the middle, or digits that say more than there are bytes.
    (encode(&bytes) == text).then_some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    let from = |first: u8, value: u32| u32::from(digit.wrapping_sub(first)).wrapping_add(value);
    Some(match digit {
        b'A'..=b'Z' => from(b'A', 0),
        b'a'..=b'z' => from(b'a', 26),
        b'0'..=b'9' => from(b'0', 52),
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn the_examples_of_the_rfc_hold() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in table {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(encode(b"\xff\xfe\xfb\x00"), "//77AA==");
        assert_eq!(decode("//77AA==").as_deref(), Some(&b"\xff\xfe\xfb\x00"[..]));
    }

    #[test]
    fn only_what_was_encoded_is_decoded() {
        for wrong in ["Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "====", "Z===", "Zm9!", "Zm 9v"]
        {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
    }
}
