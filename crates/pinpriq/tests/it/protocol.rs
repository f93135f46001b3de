//! The worked examples of `docs/protocol/pinpriq.md` against the real process.

use std::net::Shutdown;

use crate::serving::Serving;

/// What is sent, and what comes back for it, in hexadecimal digits.
const CONVERSATION: [(&str, &str); 8] = [
    ("50 00 00", "00 00"),
    ("50 00 04 6A 6F 62 73", "00 00"),
    ("70 00 04 FF FF 00 00 00 00 00 6A 6F 62 73 50 00 04 6A 6F 62 73", "00 00"),
    (
        "70 00 04 FF FF 01 00 02 00 05 6B 31 68 65 6C 6C 6F 6A 6F 62 73 50 00 04 6A 6F 62 73",
        "00 01 00 02 00 05 6B 31 68 65 6C 6C 6F",
    ),
    (
        "70 00 04 FF FF 03 00 02 00 00 6B 31 6A 6F 62 73 \
         70 00 04 FF FF 01 00 02 00 05 6B 31 68 65 6C 6C 6F 6A 6F 62 73 \
         70 00 04 FF FF 02 00 02 00 01 6B 31 62 6A 6F 62 73 50 00 04 6A 6F 62 73",
        "00 03 00 02 00 05 6B 31 68 65 6C 6C 6F 00 02 00 01 6B 31 62 00 02 00 00 6B 31",
    ),
    (
        "73 00 04 6A 6F 62 73 70 00 04 FF FF 01 00 02 00 05 6B 31 68 65 6C 6C 6F 6A 6F 62 73 41",
        "00 01 00 02 00 05 6B 31 68 65 6C 6C 6F",
    ),
    (
        "41 70 00 04 FF FF 01 00 02 00 05 6B 31 68 65 6C 6C 6F 6A 6F 62 73",
        "00 01 00 02 00 05 6B 31 68 65 6C 6C 6F",
    ),
    (
        "75 00 04 6A 6F 62 73 41 70 00 04 FF FF 01 00 02 00 05 6B 31 68 65 6C 6C 6F 6A 6F 62 73 \
         50 00 04 6A 6F 62 73",
        "00 01 00 02 00 05 6B 31 68 65 6C 6C 6F",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_examples_get_their_bytes_at_every_level() {
    for level in ["sync", "interval", "memory"] {
        let data = tempfile::tempdir().unwrap();
        let server = Serving::start(data.path(), &["--durability", level]);
        let mut whole = server.connect();
        for (request, answer) in CONVERSATION {
            whole.send(&bytes(request));
            assert_eq!(whole.bytes(bytes(answer).len()).unwrap(), bytes(answer), "{level}");
        }
        whole.fenced(&[]);
        let mut dripping = server.connect();
        for (request, answer) in CONVERSATION {
            for byte in bytes(request) {
                dripping.send(&[byte]);
            }
            assert_eq!(dripping.bytes(bytes(answer).len()).unwrap(), bytes(answer), "{level}");
        }
        let mut at_once = server.connect();
        let all = |side: fn(&(&str, &str)) -> Vec<u8>| CONVERSATION.iter().flat_map(side).collect();
        let (requests, answers): (Vec<u8>, Vec<u8>) =
            (all(|(request, _)| bytes(request)), all(|(_, answer)| bytes(answer)));
        at_once.send(&requests.repeat(100));
        assert!(at_once.bytes(answers.len() * 100).unwrap() == answers.repeat(100), "{level}");
        server.stop();
    }
}

#[test]
fn a_one_shot_client_is_answered_after_its_half_close() {
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &[]);
    let mut client = server.connect();
    client.send(b"P\0\x04jobs");
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.bytes(2).unwrap(), [0, 0]);
    assert_eq!(client.ended(), 0);
    server.stop();
}
