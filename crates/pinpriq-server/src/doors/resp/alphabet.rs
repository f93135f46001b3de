//! Words of commands and options as numbers, so that one is found by comparing numbers instead of
//! letter by letter. What the words mean is not known here.

/// The first eight bytes of a word as a number, in which capital and small letters are the same.
/// No two words of up to eight letters have one number.
#[inline]
pub(crate) const fn letters(word: &[u8]) -> u64 {
    /// Without the bit that makes a letter small.
    const CAPITALS: u64 = 0xDFDF_DFDF_DFDF_DFDF;
    let (first, last) = (word.first_chunk::<4>(), word.last_chunk::<4>());
    let number = match (word, word.first_chunk::<8>(), first, last) {
        (_, Some(eight), ..) => u64::from_le_bytes(*eight),
        (_, None, Some(first), Some(last)) => {
            // Where the two overlap, both say the same.
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
