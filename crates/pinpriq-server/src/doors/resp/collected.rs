//! The requests of a transaction that is open, as they came. What they mean is up to `transaction`.

use crate::session::kept::Share;

/// What each word counts in addition to its bytes.
pub(super) const WORD_OVERHEAD_BYTES: usize = 8;

/// A transaction that is open.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The words of all requests, one after the other.
    pub(super) words: Vec<u8>,
    /// The length of each word.
    pub(super) lengths: Vec<usize>,
    /// The number of words of each request.
    pub(super) requests: Vec<usize>,
    /// The first queue that was named.
    pub(super) queue: Option<Vec<u8>>,
    /// Whether a request was refused, so that EXEC carries out nothing.
    pub(super) is_spoilt: bool,
    /// What it counts among all that connections keep, from its first request on.
    pub(super) kept: Option<Share>,
}

impl Transaction {
    /// The number of bytes that it occupies.
    pub(super) const fn bytes(&self) -> usize {
        self.words.len() + self.lengths.len() * WORD_OVERHEAD_BYTES
    }

    pub(super) fn add(&mut self, request: &[&[u8]]) {
        for word in request {
            self.words.extend_from_slice(word);
            self.lengths.push(word.len());
        }
        self.requests.push(request.len());
    }

    /// Returns the words of each request.
    pub(super) fn requests(&self) -> impl Iterator<Item = Vec<&[u8]>> {
        let (mut rest, mut lengths) = (&self.words[..], self.lengths.iter());
        self.requests.iter().map(move |count| {
            let words = lengths.by_ref().take(*count).map(|length| {
                let (word, others) = rest.split_at(*length);
                rest = others;
                word
            });
            words.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Transaction, WORD_OVERHEAD_BYTES};

    #[test]
    fn requests_are_kept_word_by_word() {
        let requests: [&[&[u8]]; 3] = [&[b"PUT", b"", b"x"], &[b"UNWATCH"], &[b"KILL", b"q", b""]];
        let mut transaction = Transaction::default();
        for request in requests {
            transaction.add(request);
        }
        assert_eq!(transaction.bytes(), 20 + 7 * WORD_OVERHEAD_BYTES - 4);
        assert!(transaction.requests().eq(requests));
    }
}
