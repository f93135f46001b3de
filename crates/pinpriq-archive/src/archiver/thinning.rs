//! Which marks of a server are not needed any more: there is one each second, and a later one often
//! has all that an earlier one has.
//!
//! Only decides. A mark may go when a later one begins with the same segments in every shard, since
//! then the later one has every moment of it. Young ones stay: somebody may be reading them, and
//! their numbers keep a server that was stopped for a while from going on unnoticed.

use std::collections::BTreeMap;

use pinpriq_proto::time::{Span, Timestamp};

use crate::mark::{Mark, ShardMark};

/// How much older than the newest mark those are that go. Longer than a stopped server goes on
/// without looking.
const STAYS: Span = Span::from_ms(600_000);

/// The most marks that go at a time.
pub(super) const REMOVALS_MAX: usize = 16;

/// The most marks that are remembered: two hours of ten a second. Others stay.
const MARKS_MAX: usize = 72_000;

/// The marks that were created and may go one day.
#[derive(Default)]
pub(super) struct Thinning {
    /// By their numbers.
    marks: BTreeMap<u64, Created>,
    is_over: bool,
}

struct Created {
    at: Timestamp,
    since: Timestamp,
    /// The first segment of each shard.
    firsts: Vec<u32>,
}

impl Thinning {
    /// Notes a mark that was created, or that an earlier process of the same server has left.
    pub(super) fn note(&mut self, mark: &Mark) {
        if self.is_over {
            return;
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_first();
        }
        let created = Created {
            at: mark.at(),
            since: mark.since(),
            firsts: mark.shards.iter().map(ShardMark::first).collect(),
        };
        self.marks.insert(mark.number, created);
    }

    /// The numbers of marks to remove now. They are forgotten.
    pub(super) fn due(&mut self) -> Vec<u64> {
        let newest = self.marks.last_key_value().map(|(_, newest)| newest.at);
        let Some(newest) = newest else { return Vec::new() };
        let is_old = |it: (&u64, &Created)| it.1.at.after(STAYS) < newest;
        let mut due = Vec::new();
        while due.len() < REMOVALS_MAX
            && self.marks.first_key_value().is_some_and(is_old)
            && let Some((number, oldest)) = self.marks.pop_first()
        {
            let next = self.marks.first_key_value();
            if next.is_some_and(|(_, next)| next.has_all_of(&oldest)) {
                due.push(number);
            }
        }
        due
    }

    /// Forgets all marks: they are gone.
    pub(super) fn forget(&mut self) {
        self.marks.clear();
    }

    /// Removes nothing any more: it is not allowed.
    pub(super) fn end(&mut self) {
        self.marks.clear();
        self.is_over = true;
    }

    /// Whether marks may be removed, as far as is known.
    pub(super) const fn may_remove(&self) -> bool {
        !self.is_over
    }
}

impl Created {
    /// Whether this mark has every moment of an earlier one.
    fn has_all_of(&self, earlier: &Self) -> bool {
        self.firsts == earlier.firsts && self.since <= earlier.since && earlier.at <= self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::{By, Part};
    use crate::names::LineId;
    use crate::sealed::FORMAT;

    fn mark(number: u64, first: u32, (since_ms, at_ms): (u64, u64)) -> Mark {
        let mut shard = ShardMark::begun(1);
        let objects = Vec::new();
        shard.parts.push(Part { number: first, incarnation: 1, bytes: 8_192, head: 0, objects });
        Mark {
            format: FORMAT,
            number,
            line: LineId(1),
            by: By::Serve,
            at_ms,
            since_ms,
            shards: vec![shard],
            highest: Vec::new(),
            latest_ms: at_ms,
        }
    }

    #[test]
    fn marks_go_that_a_later_one_has_all_of() {
        let mut thinning = Thinning::default();
        for (number, first, reach) in [
            (1, 1, (0, 10)),
            (2, 1, (0, 20)),
            (3, 2, (15, 30)),
            // It begins like the one before, but reaches less far back.
            (4, 2, (25, 40)),
            (5, 2, (25, 50)),
        ] {
            thinning.note(&mark(number, first, reach));
        }
        assert!(thinning.due().is_empty());
        thinning.note(&mark(6, 2, (25, 600_040)));
        assert_eq!(thinning.due(), [1], "those of ten minutes stay");
        thinning.note(&mark(7, 2, (25, 2_000_000)));
        assert_eq!(thinning.due(), [4, 5, 6]);
        assert!(thinning.due().is_empty());
        thinning.note(&mark(8, 2, (25, 4_000_000)));
        thinning.end();
        thinning.note(&mark(9, 2, (25, 8_000_000)));
        assert!(thinning.due().is_empty() && !thinning.may_remove());
    }
}
