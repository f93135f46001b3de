//! Commands as the words of requests, which are read as the same commands.
//!
//! `pinpriq-derive` writes what declarations describe, and [`super::by_hand`] the others.

use super::options::{self, Opt};
use super::reading::Value;
use super::spec::{Spec, Word};
use crate::batches::{AFTER_MAX, decode_names};
use crate::command::{Command, Done};
use crate::limits::HEADERS_MAX;
use crate::task::headers;
use crate::wire::resp::Words;

/// A request that is being written.
#[derive(Default, Debug)]
pub(crate) struct Writing {
    words: Vec<Vec<u8>>,
    options: Vec<Vec<u8>>,
    /// Whether no request says this.
    pub(super) is_unsayable: bool,
}

impl Command<'_> {
    /// Returns the words of the request for this, or none if no request says it. The words do not
    /// say how the reply is to be written.
    #[must_use]
    pub fn words(&self) -> Option<Words> {
        let mut writing = Writing::default();
        self.write(&mut writing);
        let Writing { words, options, is_unsayable } = writing;
        (!is_unsayable).then(|| words.into_iter().chain(options).collect())
    }
}

impl Writing {
    /// Writes the name of a command.
    pub(crate) fn begin(&mut self, spec: &Spec) {
        [Some(spec.name), spec.sub]
            .into_iter()
            .flatten()
            .for_each(|word| self.word(word.as_bytes()));
    }

    /// Writes a word before the options.
    pub(crate) fn word(&mut self, word: &[u8]) {
        self.words.push(word.to_vec());
    }

    /// Writes several words before the options.
    pub(crate) fn all(&mut self, words: &[&[u8]]) {
        self.words.extend(words.iter().map(|word| word.to_vec()));
    }

    /// Writes a word unless it is left out.
    pub(crate) fn maybe<'a>(&mut self, value: Option<impl Value<'a>>) {
        self.words.extend(value.map(|value| value.text()));
    }

    /// Writes all words of a kind.
    pub(crate) fn list(&mut self, kind: Word, words: &[&[u8]]) {
        let are_queues = matches!(kind, Word::Queues | Word::AnyQueues);
        if are_queues && words.len() > 1 {
            self.all(&[b"QUEUES", words.len().to_string().as_bytes()]);
        }
        self.all(words);
        self.is_unsayable |= kind == Word::Queues && words.is_empty();
    }

    /// Writes an option unless it is left out.
    pub(crate) fn option<'a>(&mut self, option: Opt, value: Option<impl Value<'a>>) {
        self.options
            .extend(value.map(|value| [option.word.into(), value.text()]).into_iter().flatten());
    }

    /// Writes an option without a value, if it is given.
    pub(crate) fn flag(&mut self, option: Opt, is_given: bool) {
        self.options.extend(is_given.then(|| option.word.into()));
    }

    /// Writes headers, if they are given.
    pub(crate) fn headers(&mut self, headers: Option<&[u8]>) {
        let Some(headers) = headers else { return };
        let words = headers::decode(headers).flat_map(|(name, value)| [name.into(), value.into()]);
        let words: Vec<Vec<u8>> = words.collect();
        let count = words.len() / 2;
        self.is_unsayable |= count > HEADERS_MAX || headers::check_form(headers).is_err();
        let count = count.to_string();
        self.options.extend([options::HEADERS.word.into(), count.into()]);
        self.options.extend(words);
    }

    /// Writes the names of batches to wait for, if they are given.
    pub(super) fn after(&mut self, names: Option<&[u8]>) {
        let Some(names) = names else { return };
        let words: Vec<Vec<u8>> = decode_names(names).map(<[u8]>::to_vec).collect();
        self.is_unsayable |= words.len() > AFTER_MAX;
        let count = words.len().to_string();
        self.options.extend([options::AFTER.word.into(), count.into()]);
        self.options.extend(words);
    }

    /// Writes an option with two values, if it is given.
    pub(super) fn two(&mut self, option: Opt, values: Option<[Vec<u8>; 2]>) {
        let words = values.map(|[first, second]| [option.word.into(), first, second]);
        self.options.extend(words.into_iter().flatten());
    }

    /// Writes a task that is done.
    pub(super) fn done(&mut self, done: &Done<'_>) {
        self.options.extend([b"DONE".to_vec(), done.queue.to_vec(), done.receipt.text()]);
        self.option(options::RESULT, done.result);
    }
}
