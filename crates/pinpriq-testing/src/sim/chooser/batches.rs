//! Chooses commands about batches, and what puts say about them.

use pinpriq_proto::batches::{OnlyIf, encode_names};
use pinpriq_proto::command::{BatchCommand, Wait};
use pinpriq_proto::limits::NAMES_DEFAULT;
use pinpriq_proto::names::NamesPage;

use super::{Ask, Chooser, Text, pick};

/// The batch that a task is in, and the names of those that it waits for, as a put has them.
pub(super) type Ties = (Option<Text>, Option<Vec<u8>>, OnlyIf);

const BATCHES: [&[u8]; 3] = [b"p", b"q", b"r"];

impl Chooser<'_> {
    pub(super) fn batch(&mut self) -> Ask {
        let name = self.batch_name();
        let name = &*name;
        let command = match self.dice.below(12) {
            0..=3 => BatchCommand::Close(name),
            4 => BatchCommand::Open { name, ttl: self.maybe_span(2) },
            5 => {
                let (reason, grace) = (self.reason(), self.maybe_span(3));
                return Ask::of(&BatchCommand::Cancel { name, reason, grace }.into());
            }
            6 => BatchCommand::Drop(name),
            7 if self.once_in(2) => {
                BatchCommand::List(NamesPage { prefix: b"", count: NAMES_DEFAULT, after: None })
            }
            8..=9 => {
                let waits = self.knobs.waits > 0 && self.once_in(2);
                let wait = if waits { self.wait() } else { Wait::No };
                BatchCommand::Await { name, wait }
            }
            _ => BatchCommand::Show(name),
        };
        Ask::of(&command.into())
    }

    pub(super) fn batch_name(&mut self) -> Text {
        let name = pick(self.dice, &BATCHES, 3);
        self.in_the_shard(name)
    }

    /// What a put says about batches: usually nothing.
    pub(super) fn ties(&mut self) -> Ties {
        if !self.once_in(5) {
            return (None, None, OnlyIf::Done);
        }
        let batch = (!self.once_in(4)).then(|| self.batch_name());
        let waits = batch.is_none() || self.once_in(3);
        let after = waits.then(|| {
            let first = self.batch_name();
            let second = self.batch_name();
            let names = [Some(first.clone()), Some(second).filter(|it| *it != first)];
            // Now and then a task waits for the batch that it is in, which is refused.
            let is_wrong = self.once_in(20);
            let names = names.into_iter().flatten();
            let names: Vec<Text> =
                names.filter(|name| is_wrong || Some(name) != batch.as_ref()).collect();
            encode_names(names.iter().map(Vec::as_slice))
        });
        // Without a name it waits for nothing.
        let after = after.filter(|names| !names.is_empty());
        let only_if = OnlyIf::ALL[self.index(OnlyIf::ALL.len())];
        let only_if = if after.is_some() { only_if } else { OnlyIf::Done };
        (batch, after, only_if)
    }
}
