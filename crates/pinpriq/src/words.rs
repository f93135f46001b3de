//! Words of commands over RESP that the command line says: as the system gave them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use pinpriq_proto::wire::resp::Words;

/// What a command may be put together from besides bytes and numbers.
pub(crate) trait OsWords {
    /// Adds a word as the system gave it.
    fn name(self, word: &OsStr) -> Self;

    /// Adds several of them, with their number before, so that none is mistaken for an option.
    fn queues(self, names: &[impl AsRef<OsStr>]) -> Self;

    /// Adds an option with a value of any bytes, if it was given.
    fn named(self, option: &str, value: Option<&(impl AsRef<OsStr> + ?Sized)>) -> Self;

    /// The words, in order.
    #[cfg(test)]
    fn shown(&self) -> String;
}

impl OsWords for Words {
    fn name(self, word: &OsStr) -> Self {
        self.bytes(word.as_bytes())
    }

    fn queues(self, names: &[impl AsRef<OsStr>]) -> Self {
        let counted = self.bytes("QUEUES").bytes(names.len().to_string());
        counted.all(names.iter().map(|name| name.as_ref().as_bytes()))
    }

    fn named(self, option: &str, value: Option<&(impl AsRef<OsStr> + ?Sized)>) -> Self {
        self.given(option, value.map(|value| value.as_ref().as_bytes()))
    }

    #[cfg(test)]
    fn shown(&self) -> String {
        let words = self.as_slice().iter().map(|word| match word.escape_ascii().to_string() {
            plain if plain.is_empty() || plain.contains(' ') => format!("'{plain}'"),
            plain => plain,
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
