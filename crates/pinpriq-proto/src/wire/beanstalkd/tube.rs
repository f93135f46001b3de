//! Which names a tube may have. Which tubes there are is not known here.

/// The longest name of a tube, in bytes.
pub const TUBE_BYTES_MAX: usize = 200;

/// Whether a byte may be part of the name of a tube.
pub(super) const fn is_of_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'+' | b'/' | b';' | b'.' | b'$' | b'_' | b'(' | b')')
}

/// Whether this is the name of a tube: 1 to [`TUBE_BYTES_MAX`] of its bytes, of which the first is
/// no hyphen.
#[must_use]
pub fn is_tube_name(name: &[u8]) -> bool {
    (1..=TUBE_BYTES_MAX).contains(&name.len())
        && name.first() != Some(&b'-')
        && name.iter().all(|byte| is_of_names(*byte))
}
