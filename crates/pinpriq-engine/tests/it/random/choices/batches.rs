//! Chooses commands on batches, and what puts and imports say about them. There are few names, so
//! that tasks of one batch wait for another.

use pinpriq_proto::batches::{After, Bonds, OnlyIf, encode_names};
use pinpriq_proto::command::{BatchCommand, Delay, Put, TimeToLive};
use pinpriq_proto::task::Bytes;

use super::Chooser;

/// The names of nearly all batches.
pub(crate) const BATCHES: [&[u8]; 3] = [b"a", b"b", b"c"];

static LONG: [u8; 256] = [b'b'; 256];

impl Chooser<'_> {
    pub(super) fn batch(&mut self) -> BatchCommand<'static> {
        let kind = self.kind(BatchCommand::KINDS, |kind| match kind {
            "Close" => 10,
            "Await" => 6,
            "Open" | "Cancel" => 4,
            "List" => 1,
            _ => 2,
        });
        self.about.is_batch = true;
        let command = BatchCommand::of_kind(kind, self);
        self.about.is_batch = false;
        command
    }

    pub(super) fn batch_name(&mut self) -> &'static [u8] {
        match self.dice.below(60) {
            0 => self.dice.pick(&[b"".as_slice(), &LONG, &LONG[1..], b"not there"]),
            _ => self.dice.pick(&BATCHES),
        }
    }

    /// Which tasks a command is about.
    pub(super) fn batch_meant(&mut self) -> Option<&'static [u8]> {
        self.dice.once_in(5).then(|| self.batch_name())
    }

    /// Adds to a put what it says about batches.
    pub(super) fn with_bonds(&mut self, put: Put<'static>) -> Put<'static> {
        let names_batches = self.dice.once_in(if self.memory.follows_batches { 2 } else { 20 });
        if !names_batches {
            return put;
        }
        let batch = (!self.dice.once_in(4)).then(|| self.batch_name());
        let waits = batch.is_none() || self.dice.once_in(3);
        if !waits {
            return Put { bonds: Bonds { batch, after: None }, ..put };
        }
        let after: Option<&[u8]> = Some(Vec::leak(encode_names(self.names_after(batch))));
        let only_if = self.dice.pick(&OnlyIf::ALL);
        let put = Put { bonds: Bonds { batch, after }, only_if, ..put };
        if self.dice.once_in(12) {
            return put;
        }
        // Usually what makes sense for a task that waits for others.
        let delay = match put.delay {
            Delay::For(span) => Delay::For(span),
            Delay::Until(_) | Delay::Held => Delay::NONE,
        };
        let is_instant = put.ttl == TimeToLive::Instant;
        let ttl = if is_instant { TimeToLive::Default } else { put.ttl };
        Put { delay, ttl, ..put }
    }

    /// The same put, whose task waits for no batch.
    pub(super) fn without_after(put: Put<'static>) -> Put<'static> {
        let bonds = Bonds { after: None, ..put.bonds };
        Put { bonds, only_if: OnlyIf::Done, ..put }
    }

    /// Some batches to wait for. Most of them are there, and few are named where they must not be.
    fn names_after(&mut self, own: Option<&'static [u8]>) -> Vec<&'static [u8]> {
        let known = self.model.batches.values().map(|batch| batch.record.name.to_vec());
        let known: Vec<Vec<u8>> = known.filter(|name| own != Some(&**name)).collect();
        let mut names: Vec<&'static [u8]> = Vec::new();
        for name in known {
            if self.dice.once_in(2) {
                names.push(Vec::leak(name));
            }
        }
        if names.is_empty() || self.dice.once_in(30) {
            names.push(self.batch_name());
        }
        names
    }

    /// What an imported task in W waits for.
    pub(super) fn imported_after(&mut self, own: Option<&'static [u8]>) -> Option<After> {
        let names = self.names_after(own).into_iter().map(Bytes::from).collect();
        let only_if = self.dice.pick(&OnlyIf::ALL);
        self.dice.once_in(2).then(|| After { names, only_if, any_failed: self.dice.once_in(3) })
    }
}
