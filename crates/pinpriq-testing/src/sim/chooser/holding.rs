//! Chooses what holders of leases do with their tasks.

use pinpriq_proto::command::{Ack, Bury, Command, Fail, Held, HeldBy, Release};
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
        if is_failure {
            let fail = Fail { reason, delay: self.maybe_span(4), payload, ..Fail::new(held) };
            return Ask::of(&Command::Fail(Fail { cost, ..fail }));
        }
        Ask::of(&match kind {
            0..=4 => {
                Command::Ack(Ack { payload, zombie: self.maybe_span(8), cost, ..Ack::new(held) })
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
                return Ask::of(&Command::Release(Release { tail, ..release }));
            }
            9 => Command::Bury(Bury { payload, reason, cost, ..Bury::new(held) }),
            _ => Command::Touch { held, by: self.maybe_span(2) },
        })
    }
}
