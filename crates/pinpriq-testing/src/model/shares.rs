//! The rules of their own that shares of a queue have, and what is shown of shares.

use std::collections::BTreeMap;

use pinpriq_proto::command::QueueName;
use pinpriq_proto::limits::{LOOKED_BYTES_MAX, SHARE_BYTES_MAX, queue_bytes};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::Rate;
use pinpriq_proto::shares::{
    OWN_SHARES_MAX, Own, ShareChange, ShareRecord, ShareRules, ShareShown, TOP_SHARES_MAX,
    WEIGHT_MAX,
};
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::Span;

use super::looking::page_fits;
use super::tasks::Happened;
use super::turns::share_of;
use super::{Answer, Model, Place, fits};

/// For how long shares are followed after a look at them.
const FOLLOWED: Span = Span::from_ms(15 * 60 * 1_000);

impl Model {
    pub(super) fn set_share(&mut self, queue: &[u8], share: &[u8], change: ShareChange) -> Answer {
        fits(share.len() <= SHARE_BYTES_MAX && change != ShareChange::default())?;
        let weight = change.weight.map_or(Ok(None), |it| u16::try_from(it).map(Some));
        let weight = weight.map_err(|_| RefusalKind::BadArgument)?;
        let mut rules = self.rules_of(queue, share).unwrap_or_default();
        rules.weight = weight.unwrap_or(rules.weight);
        rules.limit = change.limit.unwrap_or(rules.limit);
        rules.rate = change.rate.unwrap_or(rules.rate);
        self.give_rules(queue, share, rules)
    }

    fn rules_of(&self, queue: &[u8], share: &[u8]) -> Option<ShareRules> {
        self.record_of(queue, share).map(|record| record.rules)
    }

    fn record_of(&self, queue: &[u8], share: &[u8]) -> Option<&ShareRecord> {
        let mut all = self.own_shares.values();
        all.find(|own| *own.queue == *queue && *own.share == *share)
    }

    /// The rules of their own that shares of a place have. Those of lanes have none.
    pub(super) fn own_rules(&self, place: &Place) -> BTreeMap<Bytes, ShareRules> {
        let of_place = |own: &&ShareRecord| *place == Place::Queue(own.queue.clone());
        let rules = self.own_shares.values().filter(of_place);
        rules.map(|own| (own.share.clone(), own.rules)).collect()
    }

    /// Gives a share these rules.
    pub(super) fn give_rules(&mut self, queue: &[u8], share: &[u8], rules: ShareRules) -> Answer {
        fits(share.len() <= SHARE_BYTES_MAX && (1..=WEIGHT_MAX).contains(&rules.weight))?;
        if let Own::Is(Some(limit)) = rules.limit {
            fits(limit > 0 && limit < 1 << 63)?;
        }
        if let Own::Is(Some(Rate { count, per })) = rules.rate {
            fits(count > 0)?;
            self.span_fits(Some(per), false)?;
        }
        let known = self.record_of(queue, share).cloned();
        let is_new = known.is_none() && rules != ShareRules::default();
        let of_queue = self.own_shares.values().filter(|own| *own.queue == *queue);
        if is_new && of_queue.count() >= OWN_SHARES_MAX {
            return Err(RefusalKind::Busy);
        }
        let place = Place::Queue(queue.into());
        let (queue, share) = (queue.into(), share.into());
        let mut record = ShareRecord { number: 0, queue, share, rules };
        let room_of_rules = if is_new { record.bytes() } else { 0 };
        let of_queue =
            if self.homes.contains_key(&place) { 0 } else { queue_bytes(record.queue.len()) };
        if of_queue + room_of_rules > 0 {
            self.has_room(of_queue + room_of_rules)?;
        }
        self.turns_may_change_by(&place, (&record.share, rules))?;
        self.home(&place).created = true;
        if let Some(known) = known {
            record.number = known.number;
            self.own_shares.remove(&known.number);
        } else if is_new {
            self.last_number += 1;
            record.number = self.last_number;
        }
        if rules != ShareRules::default() {
            self.own_shares.insert(record.number, record);
        }
        self.obey(&place);
        Ok(Some(Reply::Done))
    }

    pub(super) fn shares_of(
        &mut self,
        queue: QueueName<'_>,
        count: u32,
        from: Option<&[u8]>,
        top: bool,
    ) -> Answer {
        page_fits(count)?;
        let from = from.unwrap_or_default();
        fits(!top || from.is_empty())?;
        let place = self.place_of(queue)?;
        let now = self.now;
        let mut all: BTreeMap<Bytes, ShareShown> = BTreeMap::new();
        for (share, rules) in self.own_rules(&place) {
            all.entry(share).or_default().rules = rules;
        }
        let Some(home) = self.homes.get_mut(&place) else {
            return Ok(Some(Reply::Shares { shares: Vec::new(), next: None }));
        };
        let (looked_at, happened) = home.tally.looked.get_or_insert_default();
        if now.since(*looked_at) > FOLLOWED {
            happened.clear();
        }
        *looked_at = now;
        for task in home.tasks.values() {
            let shown = all.entry(share_of(&task.terms)).or_default();
            let kind = task.progress.state.kind();
            shown.ready += u64::from(kind == StateKind::Ready);
            shown.taken += u64::from(kind == StateKind::Taken);
            if kind == StateKind::Ready && task.progress.priority.is_some() {
                shown.oldest_ready = shown.oldest_ready.max(Some(now.since(task.put_at)));
            }
        }
        for (share, shown) in &mut all {
            let Happened { acked, failed, waited } =
                happened.get(share).copied().unwrap_or_default();
            *shown = ShareShown { share: share.clone(), acked, failed, waited, ..shown.clone() };
        }
        let mut shares: Vec<ShareShown> =
            all.into_values().filter(|shown| *shown.share >= *from).collect();
        shares.sort_by_key(|shown| (std::cmp::Reverse(shown.oldest_ready), shown.share.clone()));
        if top {
            shares.truncate(count.min(TOP_SHARES_MAX) as usize);
            return Ok(Some(Reply::Shares { shares, next: None }));
        }
        shares.sort_by_key(|shown| shown.share.clone());
        let mut bytes = 0;
        let mut fitting = 0;
        while fitting < shares.len().min(count as usize) && bytes < LOOKED_BYTES_MAX {
            bytes += shares[fitting].share.len();
            fitting += 1;
        }
        let next = shares.get(fitting).map(|shown| shown.share.clone());
        shares.truncate(fitting);
        Ok(Some(Reply::Shares { shares, next }))
    }
}
