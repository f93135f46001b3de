//! Chooses what moves tasks to other queues, and what changes many tasks at once.

use pinpriq_proto::command::{Bulk, BulkChange, Command, Filter};
use pinpriq_proto::limits::MOVED_DEFAULT;
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::Span;

use super::{Chooser, Name};
use crate::sim::ask::Ask;

impl Chooser<'_> {
    pub(super) fn moving(&mut self) -> Ask {
        let count = (!self.once_in(4)).then(|| u32::try_from(1 + self.index(4)).unwrap_or(1));
        let count = count.unwrap_or(MOVED_DEFAULT);
        if self.once_in(3) {
            return self.bulk(count);
        }
        if self.once_in(2) {
            let queue = if self.once_in(3) { self.name() } else { Name::queue(self.dead().into()) };
            return Ask::of(&Command::Redrive { queue: queue.borrow(), count });
        }
        let state = self.once_in(2).then(|| StateKind::ALL[self.index(6)]);
        let (from, to) = (self.name(), self.queue());
        let state = state.unwrap_or(StateKind::Ready);
        Ask::of(&Command::Move { from: from.borrow(), to: &to, count, state })
    }

    /// The name of a queue for dead letters.
    pub(super) fn dead(&mut self) -> &'static [u8] {
        match (self.knobs.shards > 1, self.wants_tubes(), self.once_in(4)) {
            (false, _, false) => b"dead",
            (false, _, true) => b"a",
            (true, false, false) => b"dead{0}",
            (true, false, true) => b"a{0}",
            (true, true, false) => b"dead+",
            (true, true, true) => b"a/",
        }
    }

    fn bulk(&mut self, count: u32) -> Ask {
        let (name, to) = (self.name(), self.queue());
        let change = match self.dice.below(10) {
            0 => BulkChange::Kill,
            1 => BulkChange::Cancel,
            2 | 3 => BulkChange::Redrive,
            4 | 5 => BulkChange::Move(&to),
            6 => BulkChange::Restart,
            7 => BulkChange::Priority(if self.once_in(4) { None } else { Some(-1) }),
            _ => BulkChange::Delay(Span::from_ms(self.span())),
        };
        let filter = Filter {
            state: self.once_in(6).then(|| StateKind::ALL[self.index(6)]),
            priorities: self.once_in(6).then_some((-1, 1)),
            older: self.maybe_span(6),
            failures: self.once_in(6).then_some(1),
            reason: self.once_in(6).then_some(b"w*"),
            ..Filter::ALL
        };
        let dry = self.once_in(5);
        let bulk = Bulk { filter, count, dry, ..Bulk::new(name.borrow(), change) };
        Ask::of(&Command::Bulk(bulk))
    }
}
