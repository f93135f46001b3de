//! Gives shares of queues rules of their own, keeps them, and shows the shares of a queue.
//!
//! What the rules do is in `memory/turns.rs`.

use std::ops::Bound;

use crate::engine::{Answered, Engine};
use crate::memory::own_shares::OwnShare;
use crate::memory::queues::Queue;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::tallies::{Happened, Tallies};
use crate::operations::arguments::{bad, quoted};
use crate::operations::scan::check_looked;
use pinpriq_proto::change::{Change, Place};
use pinpriq_proto::command::QueueName;
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::limits::{LOOKED_BYTES_MAX, queue_bytes};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::shares::{
    COUNTED_PER_LOOK, OWN_SHARES_MAX, Own, ShareChange, ShareRecord, ShareRules, ShareShown,
    SharesLook, TOP_SHARES_MAX, check_share_name, own_share_bytes,
};
use pinpriq_proto::survey::QueueChange;
use pinpriq_proto::time::Timestamp;

/// Of how many queues the shares are followed at once.
const TALLIED_MAX: usize = 64;

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
        if is_new && self.own_shares.count_of(queue) >= OWN_SHARES_MAX {
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
            let holding = self.shares_holding(slot) - u64::from(former);
            self.check_own_rules(slot, holding + u64::from(rules.may_hold_back()) > 0)?;
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
        self.report.add(Change::detail(record.clone()));
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
        self.report.add(Change::DetailGone(DetailKind::Share, number));
        if let Some(slot) = self.queues.find(&record.queue) {
            self.set_share_rules(slot, &record.share, ShareRules::default());
        }
    }

    /// Forgets the rules of all shares of a queue that is dropped. Costs O(log n) for each.
    pub(super) fn forget_shares(&mut self, queue: &[u8]) {
        let shares = self.own_shares.of_queue(queue, Bound::Unbounded);
        for number in shares.map(|it| it.record.number).collect::<Vec<_>>() {
            self.forget_share(number);
        }
    }

    pub(crate) fn restore_share(&mut self, record: ShareRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        for former in self.own_shares.restore(OwnShare { record, place }) {
            self.report.give_up(former);
        }
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

    /// Returns the shares of a queue that have tasks or rules, by name or the longest wait first.
    /// As long as not all tasks are counted, each call counts some more and returns an empty page.
    pub(crate) fn show_shares(
        &mut self,
        queue: QueueName<'_>,
        count: u32,
        from: Option<&[u8]>,
        top: bool,
    ) -> Answered {
        check_looked(count)?;
        let from = from.unwrap_or_default();
        if top && !from.is_empty() {
            return Err(bad("TOP has one page: leave the cursor out".to_owned()));
        }
        // Consumers may wait for one that does not exist.
        let known = self.find_queue(queue)?.filter(|slot| self.queues[*slot].exists());
        let Some(slot) = known else {
            return Ok(Some(Reply::Shares { shares: Vec::new(), next: None }));
        };
        self.follow_shares(slot);
        let queue = &self.queues[slot];
        let Some(tallies) = queue.tallies.as_ref().filter(|tallies| tallies.counted().is_none())
        else {
            return Ok(Some(Reply::Shares { shares: Vec::new(), next: Some(from.into()) }));
        };
        let by_name = shares_from(queue, tallies, from, self.now);
        if top {
            let own = |shown: ShareShown| {
                let rules = queue.shares.as_ref().and_then(|shares| shares.get(&shown.share));
                ShareShown { rules: rules.copied().unwrap_or_default(), ..shown }
            };
            let others = by_name.filter(|shown| shown.oldest_ready.is_none());
            let longest = tallies.longest(self.now).map(own).chain(others);
            let shares = longest.take(count.min(TOP_SHARES_MAX) as usize).collect();
            return Ok(Some(Reply::Shares { shares, next: None }));
        }
        let (mut shares, mut bytes, mut next) = (Vec::new(), 0, None);
        for shown in by_name {
            if shares.len() == count as usize || bytes >= LOOKED_BYTES_MAX {
                next = Some(shown.share);
                break;
            }
            bytes += shown.share.len();
            shares.push(shown);
        }
        Ok(Some(Reply::Shares { shares, next }))
    }

    /// Looks for the shares of a queue with most tasks, as many as have metrics, on behalf of no
    /// client. Does what is due first. Each call counts some more tasks until all are counted.
    ///
    /// # Panics
    /// See [`Engine::apply`].
    pub fn look_at_shares(&mut self, now: Timestamp, queue: &[u8]) -> SharesLook {
        self.handle_timeout(now);
        let slot = self.queues.find(queue).filter(|slot| self.queues[*slot].exists());
        let most = slot.and_then(|slot| self.queues[slot].settings.share_metrics);
        let (Some(slot), Some(most)) = (slot, most) else { return SharesLook::Nothing };
        self.follow_shares(slot);
        self.conclude();
        let tallies = self.queues[slot].tallies.as_ref();
        match tallies.filter(|tallies| tallies.counted().is_none() && tallies.know_sizes()) {
            Some(tallies) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                SharesLook::Known(tallies.largest(self.now).take(most).collect())
            }
            None => SharesLook::Counting,
        }
    }

    /// Sees to it that the shares of a queue are followed, and counts some more of its tasks if not
    /// all are counted.
    fn follow_shares(&mut self, slot: QueueSlot) {
        let now = self.now;
        let by_size = self.queues[slot].settings.share_metrics.is_some();
        if self.queues[slot].tallies.as_ref().is_some_and(|tallies| tallies.are_over(now)) {
            self.end_tallies(slot);
        }
        if self.queues[slot].tallies.is_none() {
            self.make_room_for_tallies();
            self.queues[slot].tallies = Some(Box::new(Tallies::new(now, by_size)));
            self.tallied.insert(slot);
            self.set_followed(slot);
        }
        let queue = &mut self.queues[slot];
        let Some(tallies) = &mut queue.tallies else { return };
        tallies.note_look(now);
        if tallies.are_by_size() != by_size {
            self.former_tallies.extend(tallies.follow_sizes(by_size).map(Box::new));
        }
        let Some(counted) = tallies.counted() else {
            tallies.size_some(COUNTED_PER_LOOK);
            return;
        };
        let mut count = 0;
        for (_, slot) in queue.indexes.by_seq(counted, None).take(COUNTED_PER_LOOK) {
            tallies.count(slot, &self.tasks[slot]);
            count += 1;
        }
        if count < COUNTED_PER_LOOK {
            tallies.complete();
        }
    }

    /// Ends the tallies that were looked at longest ago, if there are too many.
    fn make_room_for_tallies(&mut self) {
        let queues = &self.queues;
        self.tallied.retain(|slot| queues.is_tallied(*slot));
        if self.tallied.len() < TALLIED_MAX {
            return;
        }
        let looked_at =
            |slot: &&QueueSlot| self.queues[**slot].tallies.as_ref().map(|it| it.looked_at());
        if let Some(oldest) = self.tallied.iter().min_by_key(looked_at).copied() {
            self.end_tallies(oldest);
        }
    }

    /// Follows the shares of a queue no longer.
    fn end_tallies(&mut self, slot: QueueSlot) {
        self.former_tallies.extend(self.queues[slot].tallies.take());
        self.tallied.remove(&slot);
        self.set_followed(slot);
    }

    /// Notes whether something follows what becomes of the tasks of a queue, and gives it a gate if
    /// that needs one.
    pub(super) fn set_followed(&mut self, slot: QueueSlot) {
        self.queues[slot].note_followers();
        self.set_gate(slot);
    }

    /// Forgets what is counted about the tasks of a queue that is emptied at once. Returns it.
    pub(super) fn empty_tallies(&mut self, slot: QueueSlot) -> Option<Box<Tallies>> {
        let tallies = self.queues[slot].tallies.as_mut()?;
        let emptied = Box::new(tallies.emptied());
        Some(std::mem::replace(tallies, emptied))
    }

    /// Notes what has happened to a task that is there, if its share is followed.
    #[inline]
    pub(crate) fn tally(&mut self, slot: Slot, note: impl FnOnce(&mut Happened)) {
        let queue = self.tasks[slot].queue;
        if self.queues[queue].tallies.is_some() {
            self.tally_followed(slot, queue, note);
        }
    }

    #[inline(never)]
    fn tally_followed(&mut self, slot: Slot, queue: QueueSlot, note: impl FnOnce(&mut Happened)) {
        // A transaction that is undone has not happened.
        self.note_queue(queue);
        let Some(tallies) = &mut self.queues[queue].tallies else { return };
        if tallies.are_over(self.now) {
            self.end_tallies(queue);
        } else {
            tallies.note(&self.tasks[slot], note);
        }
    }

    /// Checks that the tallies of shares agree with the tasks.
    pub(crate) fn check_tallies(&self) {
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            let Some(tallies) = &queue.tallies else { continue };
            assert!(self.tallied.contains(&slot), "it is known which shares are followed");
            assert!(queue.gate.is_some(), "a queue that is followed has a gate");
            let all = queue.indexes.by_seq(0, None);
            tallies.check(all.map(|(_, slot)| (slot, &self.tasks[slot])));
        }
    }
}

/// The shares of a queue with tasks or rules, whose names are not before this one, by name.
fn shares_from<'q>(
    queue: &'q Queue,
    tallies: &'q Tallies,
    from: &'q [u8],
    now: Timestamp,
) -> impl Iterator<Item = ShareShown> {
    let range = (Bound::Included(from), Bound::Unbounded);
    let mut own = queue.shares.iter().flat_map(move |it| it.range::<[u8], _>(range)).peekable();
    let mut present = tallies.from(from, now).peekable();
    std::iter::from_fn(move || {
        let is_own_first = match (own.peek(), present.peek()) {
            (Some((share, _)), Some(shown)) => **share <= shown.share,
            (own, _) => own.is_some(),
        };
        if !is_own_first {
            return present.next();
        }
        let (share, rules) = own.next()?;
        let known = present.next_if(|shown| shown.share == *share);
        let known = known.or_else(|| tallies.find(share, now));
        let shown =
            known.unwrap_or_else(|| ShareShown { share: share.clone(), ..Default::default() });
        Some(ShareShown { rules: *rules, ..shown })
    })
}
