//! Documents: the answers to `stats` and `list-tubes` and their like, in the part of YAML that
//! beanstalkd writes.
//!
//! Which figures a document has, and in which order, is up to the caller.

use std::time::Duration;

use super::tube::is_of_names;
use crate::wire::resp::{put_signed, put_unsigned};

/// The lines of a document, to which its caller adds.
#[derive(Debug)]
pub struct Document<'a> {
    out: &'a mut Vec<u8>,
}

/// Appends a document: a line with its length, its lines, CR LF.
///
/// Costs one copy of the document more than its lines do, since the length comes first.
pub fn put_document(out: &mut Vec<u8>, write: impl FnOnce(&mut Document<'_>)) {
    let start = out.len();
    out.extend_from_slice(b"---\n");
    write(&mut Document { out });
    let bytes = out.len().saturating_sub(start);
    let mut header = b"OK ".to_vec();
    put_unsigned(&mut header, u64::try_from(bytes).unwrap_or(u64::MAX));
    header.extend_from_slice(b"\r\n");
    out.splice(start..start, header);
    out.extend_from_slice(b"\r\n");
}

/// Appends the next piece of a list of names, at most about `room` bytes. `progress` is 0 at first,
/// and then counts the pieces written. Returns whether the list is complete.
///
/// Costs a second look at all names, since the length comes first, and no copy of the list.
pub fn put_list(
    names: &[impl AsRef<[u8]>],
    progress: &mut usize,
    out: &mut Vec<u8>,
    room: usize,
) -> bool {
    const BEGIN: &[u8] = b"---\n";
    let most = out.len().saturating_add(room);
    if *progress == 0 {
        let mut line = Vec::new();
        let lengths = names.iter().map(|name| {
            line.clear();
            Document { out: &mut line }.item(name.as_ref());
            line.len()
        });
        let bytes = lengths.fold(BEGIN.len(), usize::saturating_add);
        out.extend_from_slice(b"OK ");
        put_unsigned(out, u64::try_from(bytes).unwrap_or(u64::MAX));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(BEGIN);
        *progress = 1;
    }
    for name in names.get(progress.saturating_sub(1)..).unwrap_or_default() {
        if out.len() >= most {
            return false;
        }
        Document { out }.item(name.as_ref());
        *progress = progress.saturating_add(1);
    }
    out.extend_from_slice(b"\r\n");
    true
}

impl Document<'_> {
    /// Adds `key: number`.
    pub fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        put_unsigned(self.out, number);
        self.end_line();
    }

    /// Adds `key: number`, where the number may be negative.
    pub fn signed(&mut self, key: &str, number: i64) {
        self.key(key);
        put_signed(self.out, number);
        self.end_line();
    }

    /// Adds `key: seconds`, with six decimal places.
    pub fn seconds(&mut self, key: &str, duration: Duration) {
        self.key(key);
        let text = format!("{}.{:06}", duration.as_secs(), duration.subsec_micros());
        self.out.extend_from_slice(text.as_bytes());
        self.end_line();
    }

    /// Adds `key: word`. The word must need no quotes, such as `true` or `reserved`.
    pub fn word(&mut self, key: &str, word: &str) {
        self.key(key);
        self.out.extend_from_slice(word.as_bytes());
        self.end_line();
    }

    /// Adds `key: "text"`.
    ///
    /// beanstalkd writes the text as it is. Here quotes and backslashes in it are escaped, and
    /// control characters are replaced by spaces, so that no text can end its line.
    pub fn quoted(&mut self, key: &str, text: &[u8]) {
        self.key(key);
        self.quote(text);
        self.end_line();
    }

    /// Adds `- name`, an element of a list.
    ///
    /// A name that no tube of beanstalkd can have, since it has other bytes, is quoted.
    pub fn item(&mut self, name: &[u8]) {
        self.out.extend_from_slice(b"- ");
        if !name.is_empty() && name.iter().all(|byte| is_of_names(*byte)) {
            self.out.extend_from_slice(name);
        } else {
            self.quote(name);
        }
        self.end_line();
    }

    fn key(&mut self, key: &str) {
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b": ");
    }

    fn quote(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', *byte]),
                byte if byte.is_ascii_control() => self.out.push(b' '),
                byte => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
    }

    fn end_line(&mut self) {
        self.out.push(b'\n');
    }
}
