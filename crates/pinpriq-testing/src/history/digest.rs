//! A short name for a payload, so that a history need not repeat the bytes.
//!
//! It distinguishes payloads that differ by accident. It does not protect against someone who makes
//! two payloads with the same digest on purpose.

/// Returns the digest of a payload: FNV-1a of 128 bits, in hexadecimal.
#[must_use]
pub fn digest(payload: &[u8]) -> String {
    let mut sum: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in payload {
        sum ^= u128::from(*byte);
        sum = sum.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
    }
    format!("{sum:032x}")
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn the_published_values_of_fnv_come_out() {
        assert_eq!(digest(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(digest(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
