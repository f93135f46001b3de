//! The words that several requests of a RESP client share.

use std::fmt::{Display, Write as _};

use pinpriq_proto::command::Sides;
use pinpriq_proto::settings::{Assignment, Shown};
use pinpriq_proto::task::Receipt;
use pinpriq_proto::wire::resp::Words;

use super::{By, Change, Name, Wish};

/// Parts that requests of a RESP client share beyond single words.
pub(super) trait Phrases {
    #[expect(clippy::option_option, reason = "not given, none, or a value")]
    fn or_none(self, word: &str, value: Option<Option<impl Display>>) -> Self;
    fn name(self, name: &Name) -> Self;
    fn member(self, name: &Name) -> Self;
    fn by(self, by: &By) -> Self;
    fn change(self, change: &Change) -> Self;
    fn wish(self, wish: Wish) -> Self;
    fn sides(self, sides: Sides) -> Self;
    fn settings(self, changes: &[Assignment<'_>]) -> Self;
}

impl Phrases for Words {
    fn or_none(self, word: &str, value: Option<Option<impl Display>>) -> Self {
        match value {
            None => self,
            Some(None) => self.bytes(word).bytes("NONE"),
            Some(Some(value)) => self.bytes(word).bytes(value.to_string()),
        }
    }

    fn name(self, name: &Name) -> Self {
        self.bytes(&name.queue)
    }

    fn member(self, name: &Name) -> Self {
        self.given("MEMBER", name.member.as_deref())
    }

    fn by(self, by: &By) -> Self {
        match by {
            By::Receipt(receipt) => self.bytes(receipt_text(*receipt)),
            By::Id(id) => self.bytes("ID").bytes(id),
        }
    }

    fn change(self, change: &Change) -> Self {
        let delay = (change.delay > 0).then_some(change.delay);
        self.option("DELAY", delay)
            .or_none("TTL", change.ttl)
            .or_none("PRIORITY", change.priority)
            .given("PAYLOAD", change.payload.as_deref())
    }

    fn wish(self, wish: Wish) -> Self {
        let order = wish.oldest.map(|oldest| if oldest { "OLDEST" } else { "NEWEST" });
        self.flag("FROM", wish.from_max)
            .flag("MAX", wish.from_max)
            .given("ORDER", order)
            .flag("GROUP", wish.group)
            .flag("WITHMETA", wish.meta)
    }

    fn sides(self, sides: Sides) -> Self {
        match sides {
            Sides::Both => self,
            Sides::Input => self.bytes("IN"),
            Sides::Output => self.bytes("OUT"),
        }
    }

    fn settings(self, changes: &[Assignment<'_>]) -> Self {
        changes.iter().fold(self, |words, (setting, value)| {
            setting.shown(*value).fold(words, |words, (name, shown)| match shown {
                Shown::None if setting.optional => words.bytes(name).bytes("NONE"),
                Shown::None => words,
                Shown::Number(number) => words.bytes(name).bytes(number.to_string()),
                Shown::Text(text) => words.bytes(name).bytes(text),
                Shown::Rate(rate) => words.bytes(name).bytes(rate.to_string()),
            })
        })
    }
}

/// The text of a receipt.
pub(crate) fn receipt_text(receipt: Receipt) -> String {
    let mut text = receipt.number.to_string();
    let _ = write!(text, "-{}-{}", receipt.grant.incarnation, receipt.grant.serial);
    text
}
