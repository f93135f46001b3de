//! The words of one command over RESP, put together from what the command line says.
//!
//! Names, keys and payloads are any bytes; numbers and fixed words are written as text.

use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;

use pinpriq_wire::resp::put_command;

/// A command and what follows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Words(Vec<Vec<u8>>);

impl Words {
    /// Begins with the name of a command, which may be of several words.
    pub(crate) fn new(name: &str) -> Self {
        Self(name.split(' ').map(|word| word.as_bytes().to_vec()).collect())
    }

    /// Adds a word of any bytes.
    pub(crate) fn bytes(mut self, word: impl AsRef<[u8]>) -> Self {
        self.0.push(word.as_ref().to_vec());
        self
    }

    /// Adds a word as the system gave it.
    pub(crate) fn name(self, word: &OsStr) -> Self {
        self.bytes(word.as_bytes())
    }

    /// Adds several of them, with their number before, so that none is mistaken for an option.
    pub(crate) fn queues(self, names: &[impl AsRef<OsStr>]) -> Self {
        let counted = self.bytes("QUEUES").bytes(names.len().to_string());
        names.iter().fold(counted, |words, name| words.name(name.as_ref()))
    }

    /// Adds an option with a value of any bytes, if it was given.
    pub(crate) fn named(self, option: &str, value: Option<&(impl AsRef<OsStr> + ?Sized)>) -> Self {
        match value {
            Some(value) => self.bytes(option).name(value.as_ref()),
            None => self,
        }
    }

    /// Adds an option with a number or a fixed word, if it was given.
    pub(crate) fn option(self, option: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.bytes(option).bytes(value.to_string()),
            None => self,
        }
    }

    /// Adds an option without a value, if it was given.
    pub(crate) fn flag(self, option: &str, given: bool) -> Self {
        if given { self.bytes(option) } else { self }
    }

    /// Appends the bytes that are sent.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let words: Vec<&[u8]> = self.0.iter().map(Vec::as_slice).collect();
        put_command(out, &words);
    }

    /// The words, in order.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> String {
        let words = self.0.iter().map(|word| match word.escape_ascii().to_string() {
            plain if plain.is_empty() || plain.contains(' ') => format!("'{plain}'"),
            plain => plain,
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
