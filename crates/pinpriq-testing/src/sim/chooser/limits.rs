//! Chooses commands about limits that several queues use together.

use pinpriq_proto::limits::NAMES_DEFAULT;
use pinpriq_proto::named_limits::{LimitChange, LimitCommand, OrNone};
use pinpriq_proto::names::NamesPage;

use super::{Ask, Chooser, pick};

impl Chooser<'_> {
    pub(super) fn limit(&mut self) -> Ask {
        let names: [&[u8]; 2] = [b"l", b"m"];
        let name = pick(self.dice, &names, 2);
        let name = &*self.in_the_shard(name);
        let command = match self.dice.below(8) {
            0..=4 => {
                let max = self
                    .once_in(2)
                    .then(|| OrNone((!self.once_in(4)).then(|| 1 + self.dice.below(3))));
                let rate = self.once_in(3).then(|| OrNone((!self.once_in(3)).then(|| self.rate())));
                LimitCommand::Set { name, change: LimitChange { max, rate } }
            }
            5 => LimitCommand::Drop(name),
            6 if self.once_in(2) => {
                LimitCommand::List(NamesPage { prefix: b"", count: NAMES_DEFAULT, after: None })
            }
            _ => LimitCommand::Show(name),
        };
        Ask::of(&command.into())
    }
}
