//! Letters: bytes to a command or an output, and back.
//!
//! The bytes are read as both. Every command and every output has exactly one encoding, so encoding
//! what was read must give the same bytes, or fewer where it passed over what may be ignored.

use pinpriq_proto::letters::{decode_command, decode_output, encode_command, encode_output};

/// Reads any bytes as a command, and as an output.
///
/// # Panics
/// If what was read is encoded differently, or differs when it is read again.
pub fn letters(bytes: &[u8]) {
    let mut written = Vec::new();
    let is_command = decode_command(bytes, |command| {
        encode_command(command, &mut written);
        let is_same = decode_command(&written, |again| again == command);
        assert_eq!(is_same, Ok(true), "a command comes back");
    });
    if is_command.is_ok() {
        is_the_same(&written, bytes);
    }
    if let Ok(output) = decode_output(bytes) {
        written.clear();
        encode_output(&output, &mut written);
        is_the_same(&written, bytes);
        assert_eq!(decode_output(&written), Ok(output), "an output comes back");
    }
}

fn is_the_same(written: &[u8], bytes: &[u8]) {
    assert!(written == bytes || written.len() < bytes.len(), "it is written again as it was");
}
