//! What the answers of the registry mean.

use super::local::{Host, Writing};
use super::session::Phase;
use super::{Order, Ownership, PendingCall, changes_owner};
use crate::registry::{OwnRecord, OwnState, RegistryAnswer, RegistryCall, ShardNumber, View};

impl Ownership {
    /// Takes the answer to the call that is longest under way.
    pub(super) fn take_answer(&mut self, answer: RegistryAnswer) {
        let Some(asked) = self.under_way.pop_front() else { return };
        self.own_calls -= usize::from(changes_owner(&asked.call));
        if !matches!(answer, RegistryAnswer::Unreachable(_)) {
            self.session.silent_since = self.under_way.front().map(|next| next.sent_at);
        }
        // An answer to a session that was lost since does not count.
        if asked.instance != self.node.instance {
            return;
        }
        if matches!(self.session.phase, Phase::Ending | Phase::Over) {
            if asked.call == RegistryCall::End(asked.instance) {
                self.session.phase = Phase::Over;
            }
            return;
        }
        if answer == RegistryAnswer::SessionEnded {
            self.lose_session();
            return;
        }
        self.answered(asked, answer);
    }

    fn answered(&mut self, asked: PendingCall, answer: RegistryAnswer) {
        let is_done = answer == RegistryAnswer::Done;
        match asked.call {
            RegistryCall::Look | RegistryCall::Renew => {
                self.session.is_looking = false;
                if let RegistryAnswer::View(view) = answer {
                    self.take_view(view, asked.sent_at);
                    // Whether the session still lives, only a renewal tells.
                    if asked.call == RegistryCall::Look && self.session.phase == Phase::Live {
                        self.look_soon();
                    }
                }
            }
            RegistryCall::Announce(record) if is_done => self.announced(&record),
            RegistryCall::Announce(_) => self.session.is_announcing = false,
            RegistryCall::Claim { shard, record, .. } => self.owned(shard, Some(record), &answer),
            RegistryCall::Own { shard, record, .. } => self.owned(shard, record, &answer),
            // The records of that session are gone.
            RegistryCall::End(_) if is_done => self.look_soon(),
            RegistryCall::End(_)
            | RegistryCall::Found(_)
            | RegistryCall::Find
            | RegistryCall::Amend { .. }
            | RegistryCall::Drain { .. }
            | RegistryCall::Target { .. } => {}
        }
    }

    /// The record of a shard was changed, or not, or that is unknown.
    fn owned(&mut self, shard: ShardNumber, record: Option<OwnRecord>, answer: &RegistryAnswer) {
        let Some(local) = self.local_mut(shard) else { return };
        let is_claim = local.writing == Writing::Claim;
        local.writing = Writing::Known;
        if *answer == RegistryAnswer::Done {
            let is_orphan = local.is_orphan;
            self.set_record(shard, record);
            self.orders.push(Order::Refresh);
            if is_claim {
                self.begin_host(shard, is_orphan);
            }
            return;
        }
        local.writing = Writing::Unknown;
        if *answer == RegistryAnswer::Changed {
            self.counters.claims_lost += u64::from(is_claim);
            self.look_soon();
        }
    }

    /// A claim is done.
    fn begin_host(&mut self, shard: ShardNumber, is_orphan: bool) {
        // Without a host the record goes again.
        if !self.may_claim() {
            return;
        }
        self.counters.take_overs += u64::from(is_orphan);
        let is_back = self.moving.as_ref().is_some_and(|moving| moving.shard == shard);
        if is_back {
            // No other node wanted it.
            self.moving = None;
            self.calm_since = self.now;
        }
        if let Some(local) = self.local_mut(shard) {
            local.returns += u32::from(is_back);
            local.host = Some(Host::default());
            self.orders.push(Order::Host(shard));
        }
    }

    /// Takes a view that was asked for at this time.
    fn take_view(&mut self, mut view: View, sent_at: u64) {
        view.owners.resize(usize::from(self.options.shards), None);
        let owners = std::mem::take(&mut view.owners);
        let known = std::mem::take(&mut self.view.owners);
        let is_news = view != self.view;
        self.view = view;
        self.view.owners = known;
        let mut has_moved = false;
        for (shard, record) in (0..self.options.shards).zip(owners) {
            let local = &mut self.locals[usize::from(shard)];
            // The call that is under way was sent after this view, so its answer is newer.
            if !local.is_asked() {
                local.writing = Writing::Known;
                has_moved |= self.set_record(shard, record);
            }
        }
        if is_news || has_moved {
            self.orders.push(Order::Refresh);
        }
        let is_told = self.view.drained.contains(&self.node.name);
        self.node.draining = self.is_leaving || is_told;
        self.count_members();
        let is_clear = self.face_namesakes();
        match self.session.phase {
            Phase::Looking if is_clear => self.session.phase = Phase::Announcing,
            Phase::Live => {
                self.session.viewed_at = Some(sent_at);
                self.hurry();
            }
            _ => {}
        }
    }

    /// Notes the record of a shard. True if it has changed.
    fn set_record(&mut self, shard: ShardNumber, record: Option<OwnRecord>) -> bool {
        let before = self.record(shard);
        let is_foreign = |record: &OwnRecord| !self.is_own(record.instance);
        let is_handed = record.is_some_and(|it| is_foreign(&it) && it.state == OwnState::Releasing);
        let has_arrived = record.is_some_and(|it| is_foreign(&it) && it.state == OwnState::Serving);
        let is_orphan = before.is_some_and(|it| is_foreign(&it) && it.state != OwnState::Releasing);
        let now = self.now;
        let Some(local) = self.locals.get_mut(usize::from(shard)) else { return false };
        if record.is_none() {
            if local.vacant_since.is_none() {
                local.vacant_since = Some(now);
                local.is_orphan = is_orphan;
            }
        } else {
            local.vacant_since = None;
        }
        local.handed_since = is_handed.then(|| local.handed_since.unwrap_or(now));
        let is_gone = local.host.is_none();
        if self.moving.as_ref().is_some_and(|moving| moving.shard == shard)
            && is_gone
            && has_arrived
        {
            self.moving = None;
        }
        self.view.owners[usize::from(shard)] = record;
        before != record
    }
}
