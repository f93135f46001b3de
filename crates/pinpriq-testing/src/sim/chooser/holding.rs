//! Chooses what holders of leases do with their tasks.

use pinpriq_proto::command::{Ack, Bury, Command, Fail, Held, HeldBy, Release, Touch};
use pinpriq_proto::task::Receipt;

use super::Chooser;
use crate::sim::ask::Ask;

impl Chooser<'_> {
    pub(super) fn hold(&mut self) -> Ask {
        let (name, receipt, id) = self.receipt();
        let by = if self.once_in(10) { HeldBy::Id(&id) } else { HeldBy::Receipt(receipt) };
        let held = Held { queue: name.borrow(), by };
        let is_failure = self.once_in(4);
        let kind = self.dice.below(12);
        let changes_payload = self.once_in(if kind == 9 { 6 } else { 8 });
        let payload = changes_payload.then(|| self.payload());
        let (payload, reason) = (payload.as_deref(), self.reason());
        let cost = self.once_in(6).then(|| self.cost());
        let checkpoint = self.checkpoint();
        let checkpoint = checkpoint.as_deref();
        if is_failure {
            let fail = Fail { reason, delay: self.maybe_span(4), payload, ..Fail::new(held) };
            return Ask::of(&Command::Fail(Fail { cost, checkpoint, ..fail }));
        }
        Ask::of(&match kind {
            0..=4 => {
                let (zombie, result) = (self.maybe_span(8), self.result());
                let result = result.as_deref();
                let ack = Ack { payload, zombie, cost, result, ..Ack::new(held) };
                return Ask::of(&Command::Ack(ack));
            }
            5 => {
                let receipts: Vec<Receipt> = (0..2).map(|_| self.receipt().1).collect();
                return Ask::of(&Command::AckAll { queue: held.queue, receipts: &receipts });
            }
            6..=8 => {
                let change = self.change();
                let (delay, amendment) = (change.delay, change.amendment());
                let release = Release { delay, amendment, cost, ..Release::new(held) };
                let tail = self.once_in(4);
                return Ask::of(&Command::Release(Release { tail, checkpoint, ..release }));
            }
            9 => Command::Bury(Bury { payload, reason, cost, ..Bury::new(held) }),
            _ => {
                let by = self.maybe_span(2);
                let progress = self.once_in(2).then_some(&b"half of it"[..]);
                Command::Touch(Touch { by, progress, checkpoint, ..Touch::new(held) })
            }
        })
    }

    /// Waits for what a holder does.
    pub(super) fn wait_for(&mut self) -> Ask {
        let (queue, id) = self.known_id();
        let (wait, result) = (self.wait(), self.once_in(2));
        Ask::of(&Command::Await { queue: queue.borrow(), id: &id, wait, result })
    }

    /// What has come of the work, if the holder says that.
    pub(super) fn result(&mut self) -> Option<Vec<u8>> {
        let results: [&[u8]; 4] = [b"", b"42", b"\x00\r\n", &[b'r'; 3_000]];
        self.once_in(4).then(|| results[self.index(4)].to_vec())
    }

    /// How far the work has come, if the holder says that. Some are large, and some remove it.
    fn checkpoint(&mut self) -> Option<Vec<u8>> {
        let length = match self.dice.below(16) {
            0 => 0,
            1 => 5_000,
            2..=5 => self.dice.below(40),
            _ => return None,
        };
        Some(vec![b'c'; usize::try_from(length).unwrap_or(0)])
    }
}
