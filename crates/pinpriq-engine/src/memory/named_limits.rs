//! Limits that several queues use together: what each allows, how much of that its queues have, and
//! which of them hold back a task because of it.
//!
//! Nothing here knows tasks. Queues say how many of theirs are taken.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::memory::bucket::Bucket;
use crate::memory::details::{Kept, Records, start_of};
use crate::memory::gate::Seen;
use crate::memory::slots::QueueSlot;
use pinpriq_proto::change::Place;
use pinpriq_proto::looking::Reason;
use pinpriq_proto::named_limits::{LimitRecord, LimitRules, LimitShown, USED_MAX, used};
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::{Span, Timestamp};

/// The numbers of the limits that a queue uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Uses([u64; USED_MAX]);

/// One limit.
#[derive(Debug)]
pub(crate) struct NamedLimit {
    pub(crate) record: LimitRecord,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
    pub(crate) bucket: Option<Bucket>,
    /// How many tasks of its queues are taken.
    taken: u64,
    /// For how long it has been closed up to this moment, since the start or since it was made.
    closed: Span,
    counted_at: Timestamp,
    /// The queues that use it.
    pub(crate) queues: BTreeSet<QueueSlot>,
    /// Those of them that have held back a task for which a consumer waits, since it was last open.
    pub(crate) starved: BTreeSet<QueueSlot>,
}

/// See the start of this file.
pub(crate) type NamedLimits = Records<NamedLimit>;

/// They are of no queue alone.
const NO_QUEUE: &[u8] = b"";

impl Uses {
    /// Whether there are none.
    pub(crate) const fn are_none(self) -> bool {
        self.0[0] == 0
    }

    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> {
        self.0.into_iter().take_while(|number| *number != 0)
    }
}

impl NamedLimit {
    /// How many tasks of its queues are taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Notes that so many tasks of a queue are taken, and no longer so many.
    pub(crate) fn recount(&mut self, former: u64, taken: u64, now: Timestamp) {
        self.count_closed(now);
        self.taken = self.taken + taken - former;
    }

    /// For how long it allowed no task to be handed out, because of its number or its rate.
    pub(crate) fn closed(&self, now: Timestamp) -> Span {
        let until = match &self.bucket {
            _ if !self.has_room() => now,
            Some(bucket) => bucket.opens_at().min(now),
            None => self.counted_at,
        };
        Span::from_ms(self.closed.ms().saturating_add(until.since(self.counted_at).ms()))
    }

    /// Counts for how long it was closed, before anything changes about that.
    fn count_closed(&mut self, now: Timestamp) {
        (self.closed, self.counted_at) = (self.closed(now), now);
    }

    /// What is shown of it.
    pub(crate) fn shown(&self, now: Timestamp) -> LimitShown {
        let bucket = self.bucket.as_ref();
        let opens_at = bucket.map(Bucket::opens_at).filter(|at| *at > now);
        LimitShown {
            name: self.record.name.clone(),
            rules: self.record.rules,
            taken: self.taken,
            tokens: bucket.map(|bucket| bucket.tokens(now)),
            open_at: opens_at.filter(|_| self.has_room()),
            queues: self.queues.len() as u64,
            closed: self.closed(now),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.record.rules.max.is_none_or(|max| self.taken < max)
    }

    /// Why it allows no other task to be handed out, if it does not.
    pub(crate) fn why_shut(&self, now: Timestamp) -> Option<Reason> {
        let name = self.record.name.clone();
        let reached = self.record.rules.max.map(|max| (self.taken, max));
        let open_at = self.bucket.as_ref().map(Bucket::opens_at).filter(|at| *at > now);
        match reached.filter(|_| !self.has_room()) {
            Some(reached) => {
                Some(Reason::NamedLimit { name, reached: Some(reached), open_at: None })
            }
            None => open_at.map(|at| Reason::NamedLimit { name, reached: None, open_at: Some(at) }),
        }
    }

    /// Whether it allows another task to be handed out.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.has_room() && self.bucket.as_ref().is_none_or(|bucket| bucket.opens_at() <= now)
    }
}

impl NamedLimits {
    /// Adds a limit, or replaces the record of the one of its number. No other may have its name.
    /// Returns the place of the former record.
    pub(crate) fn set(
        &mut self,
        record: LimitRecord,
        place: Option<Place>,
        now: Timestamp,
    ) -> Option<Place> {
        if let Some(known) = self.one_mut(record.number) {
            known.set_rules(record.rules, now);
            return std::mem::replace(&mut known.place, place);
        }
        let rules = record.rules;
        let mut limit = NamedLimit {
            record,
            place,
            bucket: None,
            taken: 0,
            closed: Span::ZERO,
            counted_at: now,
            queues: BTreeSet::new(),
            starved: BTreeSet::new(),
        };
        limit.set_rules(rules, now);
        self.insert(limit).and_then(|former| former.place)
    }

    pub(crate) fn called(&self, name: &[u8]) -> Option<&NamedLimit> {
        self.find(NO_QUEUE, name)
    }

    /// What a limit with a rate has left of it.
    pub(crate) fn bucket_mut(&mut self, number: u64, now: Timestamp) -> Option<&mut Bucket> {
        let limit = self.one_mut(number)?;
        limit.count_closed(now);
        limit.bucket.as_mut()
    }

    /// The limits of a setting. Names that are not known, which only damage leaves behind, are left
    /// out.
    pub(crate) fn used(&self, uses: Option<&Bytes>) -> Uses {
        let mut found = Uses::default();
        let limits = uses.into_iter().flat_map(|uses| used(uses)).filter_map(|it| self.called(it));
        for (place, limit) in found.0.iter_mut().zip(limits) {
            *place = limit.record.number;
        }
        found
    }

    /// What these limits leave to a queue that has so many taken tasks.
    pub(crate) fn seen(&self, uses: Uses, taken: u64) -> Seen {
        let limits = uses.numbers().filter_map(|number| self.one(number));
        limits.fold(Seen::alone(taken), |seen, limit| Seen {
            has_room: seen.has_room && limit.has_room(),
            opens_at: seen.opens_at.max(limit.bucket.as_ref().map(Bucket::opens_at)),
            ..seen
        })
    }

    /// All limits of these names, in order.
    pub(crate) fn names_after<'s>(
        &'s self,
        prefix: &'s [u8],
        after: Option<&'s [u8]>,
    ) -> impl Iterator<Item = &'s Bytes> {
        let limits = self.of_queue(NO_QUEUE, start_of(prefix, after));
        let names = limits.map(|limit| &limit.record.name);
        names.take_while(move |name| name.starts_with(prefix))
    }

    /// The first limits by name, after this one.
    pub(crate) fn after<'s>(&'s self, name: &'s [u8]) -> impl Iterator<Item = &'s NamedLimit> {
        self.of_queue(NO_QUEUE, Bound::Excluded(name))
    }

    /// Lets all buckets begin, full or empty.
    pub(crate) fn begin(&mut self, are_empty: bool, now: Timestamp) {
        for limit in self.iter_mut() {
            let begin = |rate| {
                if are_empty { Bucket::empty(rate, now) } else { Bucket::of(rate, None, now) }
            };
            limit.bucket = limit.record.rules.rate.map(begin);
            (limit.closed, limit.counted_at) = (Span::ZERO, now);
        }
    }
}

impl NamedLimit {
    /// Changes what it allows. Its tokens stay as far as they fit.
    fn set_rules(&mut self, rules: LimitRules, now: Timestamp) {
        self.count_closed(now);
        self.record.rules = rules;
        self.bucket = rules.rate.map(|rate| Bucket::of(rate, self.bucket.as_ref(), now));
    }
}

impl Kept for NamedLimit {
    type Record = LimitRecord;

    fn names(&self) -> (u64, Bytes, Bytes) {
        (self.record.number, NO_QUEUE.into(), self.record.name.clone())
    }

    fn record(&self) -> &LimitRecord {
        &self.record
    }

    fn place(&mut self) -> &mut Option<Place> {
        &mut self.place
    }

    fn counts(&self) -> bool {
        false
    }
}
