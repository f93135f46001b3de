//! Keys, as a terminal sends them: bytes in, keys out.
//!
//! It knows the few that this program has a use for; other sequences are passed over. Whether an
//! escape is the key or begins a sequence is a matter of time, which the reader of the bytes knows.

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// A character that can be seen.
    Char(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// Control and C.
    Interrupt,
    /// Control and L.
    Redraw,
}

/// The longest sequence that is waited for.
const SEQUENCE_MAX: usize = 32;

/// Bytes that were read and are not keys yet.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
}

/// What is at the front of the bytes.
enum Front {
    /// So many bytes, and the key that they are, if it is one of ours.
    Key(usize, Option<Key>),
    /// The beginning of something.
    Begun,
}

impl Decoder {
    /// Adds bytes, and returns the keys that are complete.
    pub(super) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while !self.bytes.is_empty() {
            let Front::Key(length, key) = front(&self.bytes) else { break };
            self.bytes.drain(..length.clamp(1, self.bytes.len()));
            keys.extend(key);
        }
        keys
    }

    /// Whether there are bytes that may become a key when more of them arrive.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Nothing more has come for a while: an escape was the key. What else is there is dropped.
    pub(super) fn give_up(&mut self) -> Option<Key> {
        let key = (self.bytes == b"\x1b").then_some(Key::Escape);
        self.bytes.clear();
        key
    }
}

fn front(bytes: &[u8]) -> Front {
    let key = |key| Front::Key(1, Some(key));
    match bytes {
        [] => Front::Begun,
        [0x1b, rest @ ..] => sequence(rest),
        [b'\r' | b'\n', ..] => key(Key::Enter),
        [b'\t', ..] => key(Key::Tab),
        [0x7f | 0x08, ..] => key(Key::Backspace),
        [0x03, ..] => key(Key::Interrupt),
        [0x0c, ..] => key(Key::Redraw),
        [0..0x20, ..] => Front::Key(1, None),
        _ => character(bytes),
    }
}

/// What comes after an escape.
fn sequence(rest: &[u8]) -> Front {
    match rest {
        [] | [b'O'] => Front::Begun,
        // Two escapes in a row: the first was the key.
        [0x1b, ..] => Front::Key(1, Some(Key::Escape)),
        [b'O', last, ..] => Front::Key(3, by_letter(*last)),
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
                let is_long = rest.len() > SEQUENCE_MAX;
                return if is_long { Front::Key(rest.len() + 2, None) } else { Front::Begun };
            };
            let (parameters, last) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            let key = match (parameters, last.first()) {
                (b"1" | b"7", Some(b'~')) => Some(Key::Home),
                (b"4" | b"8", Some(b'~')) => Some(Key::End),
                (b"5", Some(b'~')) => Some(Key::PageUp),
                (b"6", Some(b'~')) => Some(Key::PageDown),
                (b"", Some(letter)) => by_letter(*letter),
                _ => None,
            };
            Front::Key(end + 3, key)
        }
        // Alt and a key.
        _ => match character(rest) {
            Front::Key(length, _) => Front::Key(length + 1, None),
            begun @ Front::Begun => begun,
        },
    }
}

const fn by_letter(letter: u8) -> Option<Key> {
    match letter {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        b'Z' => Some(Key::BackTab),
        b'M' => Some(Key::Enter),
        _ => None,
    }
}

/// A character in UTF-8.
fn character(bytes: &[u8]) -> Front {
    let Some(chunk) = bytes.utf8_chunks().next() else { return Front::Begun };
    match chunk.valid().chars().next() {
        Some(found) => {
            let key = (!found.is_control()).then_some(Key::Char(found));
            Front::Key(found.len_utf8(), key)
        }
        // The beginning of a character may still be completed.
        None if chunk.invalid().len() == bytes.len() && is_begun(bytes) => Front::Begun,
        None => Front::Key(chunk.invalid().len(), None),
    }
}

fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::{Decoder, Key};

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Decoder::default().keys(bytes)
    }

    #[test]
    fn keys_are_read_as_terminals_send_them() {
        let table: [(&[u8], &[Key]); 12] = [
            (b"q", &[Key::Char('q')]),
            (b"\x1b[A\x1bOB", &[Key::Up, Key::Down]),
            (b"\x1b[5~\x1b[6~", &[Key::PageUp, Key::PageDown]),
            (b"\x1b[H\x1b[4~", &[Key::Home, Key::End]),
            (b"\r\t\x7f\x1b[Z", &[Key::Enter, Key::Tab, Key::Backspace, Key::BackTab]),
            (b"\x03\x0c", &[Key::Interrupt, Key::Redraw]),
            ("ü".as_bytes(), &[Key::Char('ü')]),
            // Shift and F5, a report of a mouse, Alt and q: of no use here.
            (b"\x1b[15;2~\x1b[<0;1;1M\x1bqx", &[Key::Char('x')]),
            (b"\x1a\x00x", &[Key::Char('x')]),
            (b"\xff\xfex", &[Key::Char('x')]),
            (b"\x1b\x1b[A", &[Key::Escape, Key::Up]),
            (b"", &[]),
        ];
        for (bytes, expected) in table {
            assert_eq!(keys(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn keys_are_the_same_when_they_come_byte_by_byte() {
        let bytes = "a\x1b[Aü\x1b[5~€\x1bOD".as_bytes();
        let mut decoder = Decoder::default();
        let single: Vec<Key> = bytes.iter().flat_map(|byte| decoder.keys(&[*byte])).collect();
        assert_eq!(single, keys(bytes));
        assert!(!decoder.is_waiting());
    }

    #[test]
    fn an_escape_is_the_key_when_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.keys(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.give_up(), Some(Key::Escape));
        assert!(!decoder.is_waiting());
        assert_eq!(decoder.keys(b"\x1b["), []);
        assert_eq!(decoder.give_up(), None);
    }

    #[test]
    fn a_sequence_without_end_is_passed_over() {
        let mut decoder = Decoder::default();
        for _ in 0..10_000 {
            decoder.keys(b"\x1b[1111111");
            assert!(decoder.bytes.len() < 100);
        }
    }
}
