//! The bytes of letters, written out by hand.
//!
//! A line describes the expected bytes of a value: hexadecimal bytes, flags as bits after a `b`
//! with the lowest bit last, and texts in quotes.

mod carrying;
mod commands;
mod malformed;
mod outputs;

/// Returns the bytes that a line describes.
fn bytes(line: &str) -> Vec<u8> {
    line.split_whitespace().flat_map(word).collect()
}

fn word(word: &str) -> Vec<u8> {
    if let Some(text) = word.strip_prefix('"') {
        text.strip_suffix('"').unwrap().as_bytes().to_vec()
    } else if let Some(bits) = word.strip_prefix('b').filter(|bits| bits.len() == 8) {
        vec![u8::from_str_radix(bits, 2).unwrap()]
    } else {
        assert_eq!(word.len(), 2, "{word} is no byte");
        vec![u8::from_str_radix(word, 16).unwrap()]
    }
}
