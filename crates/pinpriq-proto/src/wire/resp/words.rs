//! Builds a request from its words, one after the other.
//!
//! Words are any bytes. Numbers and fixed words are written as text. This module knows nothing
//! about their meaning.

use std::fmt::Display;

use super::writer::put_command;

/// A command and its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Words(Vec<Vec<u8>>);

impl Words {
    /// Creates the words of a line, which are separated by single spaces.
    #[must_use]
    pub fn new(line: &str) -> Self {
        Self(line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
    }

    /// Adds a word.
    #[must_use]
    pub fn bytes(mut self, word: impl AsRef<[u8]>) -> Self {
        self.0.push(word.as_ref().to_vec());
        self
    }

    /// Adds several words.
    #[must_use]
    pub fn all(self, words: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        words.into_iter().fold(self, Self::bytes)
    }

    /// Adds one queue by its name, or several by their number and names.
    #[must_use]
    pub fn queue_names(self, names: &[impl AsRef<[u8]>]) -> Self {
        match names {
            [name] => self.bytes(name),
            names => self.bytes("QUEUES").bytes(names.len().to_string()).all(names),
        }
    }

    /// Adds an option with a value of any bytes, if it was given.
    #[must_use]
    pub fn given(self, option: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.bytes(option).bytes(value),
            None => self,
        }
    }

    /// Adds an option with a number or a fixed word, if it was given.
    #[must_use]
    pub fn option(self, option: &str, value: Option<impl Display>) -> Self {
        self.given(option, value.map(|value| value.to_string()))
    }

    /// Adds an option without a value, if it was given.
    #[must_use]
    pub fn flag(self, option: &str, given: bool) -> Self {
        if given { self.bytes(option) } else { self }
    }

    /// Returns the words in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// Appends the encoded request.
    pub fn put(&self, out: &mut Vec<u8>) {
        let words: Vec<&[u8]> = self.0.iter().map(Vec::as_slice).collect();
        put_command(out, &words);
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for Words {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Self {
        Self(Vec::new()).all(words)
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn words_are_sent_in_the_order_in_which_they_were_added() {
        let words = Words::new("QUEUE SET").bytes(b"a b").given("KEY", None::<&str>);
        let words = words.given("IDS", Some("uuid")).option("TTL", Some(-5)).flag("NOT", false);
        let mut out = b"before".to_vec();
        words.flag("NOW", true).all(["x", ""]).put(&mut out);
        let expected = "before*10\r\n$5\r\nQUEUE\r\n$3\r\nSET\r\n$3\r\na b\r\n$3\r\nIDS\r\n\
                        $4\r\nuuid\r\n$3\r\nTTL\r\n$2\r\n-5\r\n$3\r\nNOW\r\n$1\r\nx\r\n$0\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
