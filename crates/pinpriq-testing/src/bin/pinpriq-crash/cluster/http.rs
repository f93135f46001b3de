//! The few requests that are made of a member of etcd over HTTP, and the texts in their answers.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::fault::Fallible;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The digits of base 64.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Asks for a path, and returns the whole answer.
pub(crate) fn ask(address: SocketAddr, path: &str) -> Fallible<String> {
    send(address, &format!("GET {path} HTTP/1.0\r\n\r\n"))
}

/// Posts a body, and returns the whole answer.
pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> Fallible<String> {
    let length = body.len();
    send(address, &format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"))
}

fn send(address: SocketAddr, request: &str) -> Fallible<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Bytes as text of base 64.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = (0..3)
            .fold(0, |number, at| number << 8 | usize::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = char::from(DIGITS[number >> (18 - 6 * at) & 63]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}

/// The bytes of a text of base 64, or none if it is none.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut number, mut bits) = (0_u32, 0);
    for char in text.trim_end_matches('=').bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == char)?;
        number = (number << 6 | u32::try_from(digit).ok()?) & 0xFFFF;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(number >> bits & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded};

    #[test]
    fn base_64_keeps_bytes() {
        for (bytes, text) in [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v")] {
            assert_eq!(encoded(bytes), text);
            assert_eq!(decoded(text).as_deref(), Some(bytes));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), Some(all));
        assert_eq!(decoded("a b"), None);
    }
}
