//! Gives shares of queues rules of their own, keeps them, and shows the shares of a queue.
//!
//! What the rules do is in `memory/turns.rs`.

use std::collections::BTreeMap;

use crate::engine::{Answered, Engine};
use crate::memory::own_shares::OwnShare;
use crate::memory::slots::QueueSlot;
use crate::operations::arguments::{bad, quoted};
use crate::operations::scan::check_looked;
use pinpriq_proto::change::{Change, Place};
use pinpriq_proto::command::QueueName;
use pinpriq_proto::limits::{LOOKED_BYTES_MAX, queue_bytes};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::shares::{
    OWN_SHARES_MAX, Own, ShareChange, ShareRecord, ShareRules, ShareShown, TOP_SHARES_MAX,
    check_share_name, own_share_bytes,
};
use pinpriq_proto::survey::QueueChange;
use pinpriq_proto::task::{Bytes, StateKind};

impl Engine {
    /// Changes the rules of a share. Without any that differ from the usual ones, they are
    /// forgotten.
    pub(crate) fn set_share(
        &mut self,
        queue: &[u8],
        share: &[u8],
        change: ShareChange,
    ) -> Answered {
        check_share_name(share)?;
        if change.is_empty() {
            return Err(bad("nothing about the share changes: give WEIGHT, LIMIT or RATE".into()));
        }
        let known = self.own_shares.find(queue, share).map(|own| own.record.rules);
        let rules = change.applied_to(known.unwrap_or_default());
        self.replace_share(queue, share, rules)?;
        if let Some(slot) = self.queues.find(queue) {
            self.queues.tell(slot, QueueChange::Set);
        }
        Ok(Some(Reply::Done))
    }

    /// Gives a share these rules, of a queue that exists from then on.
    pub(super) fn replace_share(
        &mut self,
        queue: &[u8],
        share: &[u8],
        rules: ShareRules,
    ) -> Result<(), Refusal> {
        rules.check()?;
        if let Own::Is(Some(rate)) = rules.rate {
            self.moment("RATE", rate.per)?;
        }
        let known = self.own_shares.find(queue, share).map(|own| own.record.clone());
        let is_new = known.is_none() && rules != ShareRules::default();
        if is_new && self.own_shares.count(queue) >= OWN_SHARES_MAX {
            let name = quoted(queue);
            let sentence =
                format!("{OWN_SHARES_MAX} shares of the queue {name} have rules of their own");
            return Err(Refusal::new(RefusalKind::Busy, sentence));
        }
        let existing = self.queues.find(queue);
        let is_counted = existing.is_some_and(|slot| self.queues[slot].counted);
        let of_queue = if is_counted { 0 } else { queue_bytes(queue.len()) };
        let of_rules = if is_new { own_share_bytes(queue.len(), share.len()) } else { 0 };
        if of_queue + of_rules > 0 {
            self.check_room(of_queue + of_rules)?;
        }
        if let Some(slot) = existing {
            let former = known.as_ref().is_some_and(|known| known.rules.may_hold_back());
            let holding = self.shares_holding(slot) - usize::from(former);
            self.check_own_rules(slot, holding + usize::from(rules.may_hold_back()) > 0)?;
        }
        let slot = self.queues.find_or_make(queue);
        self.count_queue(slot);
        if !self.queues[slot].created {
            self.queues[slot].created = true;
            self.report_queue(slot);
        }
        let held_back = self.shares_holding(slot) > 0;
        self.keep_share(slot, share, rules, known);
        if held_back != (self.shares_holding(slot) > 0) {
            self.apply_settings(slot);
        }
        Ok(())
    }

    /// Keeps the rules of a share in place of those that are known.
    fn keep_share(
        &mut self,
        slot: QueueSlot,
        share: &[u8],
        rules: ShareRules,
        known: Option<ShareRecord>,
    ) {
        if known.as_ref().map(|known| known.rules).unwrap_or_default() == rules {
            return;
        }
        if rules == ShareRules::default() {
            if let Some(known) = known {
                self.forget_share(known.number);
            }
            return;
        }
        let record = if let Some(known) = known {
            ShareRecord { rules, ..known }
        } else {
            let (queue, share) = (self.queues[slot].name.clone(), share.into());
            ShareRecord { number: self.issued.next(), queue, share, rules }
        };
        self.report.add(Change::Share(Box::new(record.clone())));
        self.bytes += record.bytes();
        let share = record.share.clone();
        let former = self.own_shares.insert(OwnShare { record, place: None });
        if let Some(former) = former {
            self.bytes -= former.record.bytes();
            self.report.give_up(former.place);
        }
        self.set_share_rules(slot, &share, rules);
    }

    /// Forgets the rules of a share.
    fn forget_share(&mut self, number: u64) {
        let Some(OwnShare { record, place }) = self.own_shares.remove(number) else { return };
        self.bytes -= record.bytes();
        self.report.give_up(place);
        self.report.add(Change::ShareGone(number));
        if let Some(slot) = self.queues.find(&record.queue) {
            self.set_share_rules(slot, &record.share, ShareRules::default());
        }
    }

    /// Forgets the rules of all shares of a queue that is dropped. Costs O(log n) for each.
    pub(super) fn forget_shares(&mut self, queue: &[u8]) {
        let numbers: Vec<u64> =
            self.own_shares.of_queue_after(queue, None).map(|it| it.number).collect();
        for number in numbers {
            self.forget_share(number);
        }
    }

    pub(crate) fn restore_share(&mut self, record: ShareRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        // After damage the store may have kept two of one share. The later one counts.
        let other = self.own_shares.find(&record.queue, &record.share);
        let other = other.map(|it| it.record.number).filter(|it| *it != record.number);
        let other = other.and_then(|other| self.own_shares.remove(other));
        self.report.give_up(other.and_then(|other| other.place));
        let former = self.own_shares.insert(OwnShare { record, place });
        self.report.give_up(former.and_then(|former| former.place));
    }

    pub(crate) fn restore_share_gone(&mut self, number: u64) {
        let gone = self.own_shares.remove(number);
        self.report.give_up(gone.and_then(|gone| gone.place));
    }

    /// Gives restored rules to the shares of their queues. Rules of a queue that was not kept,
    /// which only damage leaves behind, are forgotten.
    pub(crate) fn revive_shares(&mut self) {
        let all: Vec<ShareRecord> = self.own_shares.iter().map(|own| own.record.clone()).collect();
        for record in all {
            self.bytes += record.bytes();
            match self.queues.find(&record.queue).filter(|slot| self.queues[*slot].created) {
                Some(slot) => self.set_share_rules(slot, &record.share, record.rules),
                None => self.forget_share(record.number),
            }
        }
    }

    /// Reports the rules of a share again if their record is still at `place`.
    pub(crate) fn rewrite_share(&mut self, number: u64, place: Place) {
        if let Some(own) = self.own_shares.get(number).filter(|it| it.place == Some(place)) {
            self.report.add(Change::Share(Box::new(own.record.clone())));
        }
    }

    /// Returns the shares of a queue that have tasks or rules, by name or the longest wait first.
    /// Costs a step for each task of the queue.
    pub(crate) fn show_shares(
        &mut self,
        queue: QueueName<'_>,
        count: u32,
        after: Option<&[u8]>,
        top: bool,
    ) -> Answered {
        check_looked(count)?;
        if top && after.is_some() {
            return Err(bad("TOP has one page: leave the cursor out".to_owned()));
        }
        let count = if top { count.min(TOP_SHARES_MAX) } else { count } as usize;
        let Some(slot) = self.find_queue(queue)? else {
            return Ok(Some(Reply::Shares { shares: Vec::new(), next: None }));
        };
        let mut all = self.shares_shown(slot);
        if top {
            // Of equal ones, the first by name.
            all.sort_by_key(|it| std::cmp::Reverse(it.oldest_ready));
            all.truncate(count);
            return Ok(Some(Reply::Shares { shares: all, next: None }));
        }
        all.retain(|it| after.is_none_or(|after| *it.share > *after));
        let mut bytes = 0;
        let fitting = all.iter().take(count).take_while(|it| {
            let is_full = bytes >= LOOKED_BYTES_MAX;
            bytes += it.share.len();
            !is_full
        });
        let fitting = fitting.count();
        let has_more = fitting < all.len();
        all.truncate(fitting);
        let next: Option<Bytes> = all.last().filter(|_| has_more).map(|it| it.share.clone());
        Ok(Some(Reply::Shares { shares: all, next }))
    }

    /// The shares of a queue, by name. Costs a step for each of its tasks.
    fn shares_shown(&self, slot: QueueSlot) -> Vec<ShareShown> {
        let queue = &self.queues[slot];
        let mut all: BTreeMap<Bytes, ShareShown> = BTreeMap::new();
        for (share, rules) in queue.shares.iter().flat_map(|shares| shares.iter()) {
            all.entry(share.clone()).or_default().rules = *rules;
        }
        let tasks = queue.indexes.by_seq(0, None).filter(|(_, slot)| !self.looks_gone(*slot));
        for task in tasks.map(|(_, slot)| &self.tasks[slot]) {
            let name = task.share().or_else(|| task.key()).cloned().unwrap_or_default();
            let shown = all.entry(name).or_default();
            match task.kind() {
                StateKind::Ready => {
                    shown.ready += 1;
                    let waits = Some(self.now.since(task.put_at()));
                    if task.priority().is_some() {
                        shown.oldest_ready = shown.oldest_ready.max(waits);
                    }
                }
                StateKind::Taken => shown.taken += 1,
                _ => {}
            }
        }
        let named = all.into_iter().map(|(share, shown)| ShareShown { share, ..shown });
        named.collect()
    }
}
