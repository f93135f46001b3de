//! The words of a request of a RESP client, put together one after the other.

use std::fmt::Write as _;

use pinpriq_engine::command::Sides;
use pinpriq_engine::settings::{AfterAck, Ids};
use pinpriq_engine::task::Receipt;

use super::{By, Change, Name, Settings, Text, Wish};

/// The words of one request.
#[derive(Default)]
pub(super) struct Words(pub(super) Vec<Text>);

impl Words {
    pub(super) fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    pub(super) fn text(mut self, text: &[u8]) -> Self {
        self.0.push(text.to_vec());
        self
    }

    pub(super) fn word(self, word: &str) -> Self {
        self.text(word.as_bytes())
    }

    pub(super) fn number(self, number: &impl ToString) -> Self {
        self.text(number.to_string().as_bytes())
    }

    pub(super) fn option(self, word: &str, value: Option<&[u8]>) -> Self {
        match value {
            Some(value) => self.word(word).text(value),
            None => self,
        }
    }

    pub(super) fn span(self, word: &str, value: Option<impl ToString>) -> Self {
        self.option(word, value.map(|value| value.to_string()).as_deref().map(str::as_bytes))
    }

    #[expect(clippy::option_option, reason = "not given, none, or a value")]
    pub(super) fn or_none(self, word: &str, value: Option<Option<impl ToString>>) -> Self {
        match value {
            None => self,
            Some(None) => self.word(word).word("NONE"),
            Some(Some(value)) => self.word(word).number(&value),
        }
    }

    pub(super) fn flag(self, word: &str, given: bool) -> Self {
        if given { self.word(word) } else { self }
    }

    pub(super) fn name(self, name: &Name) -> Self {
        self.text(&name.queue)
    }

    pub(super) fn member(self, name: &Name) -> Self {
        self.option("MEMBER", name.member.as_deref())
    }

    pub(super) fn by(self, by: &By) -> Self {
        match by {
            By::Receipt(receipt) => self.word(&receipt_text(*receipt)),
            By::Id(id) => self.word("ID").text(id),
        }
    }

    pub(super) fn change(self, change: &Change) -> Self {
        let delay = (change.delay > 0).then_some(change.delay);
        self.span("DELAY", delay)
            .or_none("TTL", change.ttl)
            .or_none("PRIORITY", change.priority)
            .option("PAYLOAD", change.payload.as_deref())
    }

    pub(super) fn wish(self, wish: Wish) -> Self {
        let order = wish.oldest.map(|oldest| if oldest { "OLDEST" } else { "NEWEST" });
        self.flag("FROM", wish.from_max)
            .flag("MAX", wish.from_max)
            .option("ORDER", order.map(str::as_bytes))
            .flag("GROUP", wish.group)
            .flag("WITHMETA", wish.meta)
    }

    pub(super) fn sides(self, sides: Sides) -> Self {
        match sides {
            Sides::Both => self,
            Sides::Input => self.word("IN"),
            Sides::Output => self.word("OUT"),
        }
    }

    pub(super) fn settings(self, settings: &Settings) -> Self {
        let ids = settings.ids.map(|ids| match ids {
            Ids::Sequence => "sequence",
            Ids::Time64 => "time64",
            Ids::Uuid => "uuid",
            Ids::Given => "given",
        });
        let words = self
            .option("IDS", ids.map(str::as_bytes))
            .or_none("TTL", settings.ttl)
            .or_none("TTR", settings.ttr)
            .or_none("CAPACITY", settings.capacity);
        match settings.after_ack {
            None => words,
            Some(AfterAck::Delete) => words.word("AFTERACK").word("delete"),
            Some(AfterAck::Keep) => words.word("AFTERACK").word("keep"),
            Some(AfterAck::Zombie(stay)) => {
                words.word("AFTERACK").word("zombie").word("ZOMBIE").number(&stay.ms())
            }
        }
    }
}

/// The text of a receipt.
pub(crate) fn receipt_text(receipt: Receipt) -> String {
    let mut text = receipt.number.to_string();
    let _ = write!(text, "-{}-{}", receipt.grant.incarnation, receipt.grant.serial);
    text
}
