//! Words of commands and options as numbers, which are faster to compare than letters. This module
//! does not know what the words mean.

/// Returns the first eight bytes of a word as a number that ignores case. Different words of up to
/// eight letters have different numbers.
#[inline]
pub(super) const fn letters(word: &[u8]) -> u64 {
    /// Clears the bit that makes a letter lower case.
    const CAPITALS: u64 = 0xDFDF_DFDF_DFDF_DFDF;
    let (first, last) = (word.first_chunk::<4>(), word.last_chunk::<4>());
    let number = match (word, word.first_chunk::<8>(), first, last) {
        (_, Some(eight), ..) => u64::from_le_bytes(*eight),
        (_, None, Some(first), Some(last)) => {
            // The two may overlap. Both have the same bytes there.
            let last = (u32::from_le_bytes(*last) as u64) << (8 * (word.len() - 4));
            u32::from_le_bytes(*first) as u64 | last
        }
        ([a, b, c], ..) => u32::from_le_bytes([*a, *b, *c, 0]) as u64,
        ([a, b], ..) => u32::from_le_bytes([*a, *b, 0, 0]) as u64,
        ([a], ..) => *a as u64,
        _ => 0,
    };
    number & CAPITALS
}
