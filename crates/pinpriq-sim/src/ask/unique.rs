//! What makes a task unique, as a client says it: its words, and the part of the command.

use pinpriq_proto::time::Span;
use pinpriq_proto::unique::{OnDuplicate, Unique};
use pinpriq_proto::wire::resp::Words;

use super::Text;

/// The options about uniqueness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Uniqueness {
    pub(crate) key: Text,
    pub(crate) window: Option<u64>,
    pub(crate) on_duplicate: Option<OnDuplicate>,
}

impl Uniqueness {
    pub(super) fn words(&self, words: Words) -> Words {
        let is_meant = |(known, _): &&(OnDuplicate, _)| Some(*known) == self.on_duplicate;
        let word = OnDuplicate::ALL.iter().find(is_meant).map(|(_, word)| *word);
        let words = words.given("UNIQUE", Some(&self.key));
        words.option("WINDOW", self.window).option("ONDUP", word)
    }

    pub(super) fn command(&self) -> Unique<'_> {
        Unique {
            key: &self.key,
            window: self.window.map(Span::from_ms),
            on_duplicate: self.on_duplicate.unwrap_or_default(),
        }
    }
}
