//! The records of the shards: what this node hosts is written, what it does not is removed, and
//! shards without an owner are claimed.

use super::local::Writing;
use super::session::Phase;
use super::{OWN_CALLS_MAX, Ownership};
use crate::registry::{OwnRecord, OwnState, RegistryCall, ShardNumber};

impl Ownership {
    /// Whether this node has a session, knows who else is there, and no other node has its name.
    pub(super) fn is_settled(&self) -> bool {
        self.session.phase == Phase::Live
            && self.session.viewed_at.is_some()
            && self.session.rival_since.is_none()
    }

    /// Whether this node may have more shards.
    pub(super) fn may_claim(&self) -> bool {
        let gives = self.node.draining || self.node.suspended;
        let drains = gives && !self.all_drain();
        let is_barred = self.is_leaving || self.is_clock_off || self.is_halted();
        self.is_settled() && !is_barred && !drains
    }

    /// Makes the records of this node say what is true.
    pub(super) fn keep_records(&mut self) {
        if !self.is_settled() {
            return;
        }
        for shard in 0..self.options.shards {
            let local = &self.locals[usize::from(shard)];
            let record = self.record(shard);
            let wanted = local.host.and_then(|host| host.record(self.node.instance));
            let is_own = record.is_some_and(|record| self.is_own(record.instance));
            // A record without a host was left behind by a call of which nothing was known.
            let may_write = match (record, local.host) {
                (None, None) => false,
                (None, Some(_)) => wanted.is_some(),
                // The log decides between this host and the one of another node.
                (Some(_), _) => is_own,
            };
            if may_write && record != wanted && local.is_settled() {
                let call = RegistryCall::Own { shard, record: wanted, instead_of: record };
                self.change_owner(shard, Writing::Change, call);
            }
        }
    }

    /// Claims the shards that have no owner and whose turn has come.
    pub(super) fn claim(&mut self) {
        if !self.may_claim() {
            return;
        }
        for shard in 0..self.options.shards {
            if self.claim_at(shard).is_none_or(|at| at > self.now) {
                continue;
            }
            let instance = self.node.instance;
            let record = OwnRecord { instance, term: 0, state: OwnState::Loading };
            let meta = self.view.meta.clone();
            let call = RegistryCall::Claim { shard, record, meta };
            self.change_owner(shard, Writing::Claim, call);
        }
    }

    /// When a shard may be claimed. None if it has an owner, or that is unknown.
    fn claim_at(&self, shard: ShardNumber) -> Option<u64> {
        let local = &self.locals[usize::from(shard)];
        let is_free = local.host.is_none() && local.is_settled();
        let since = local.vacant_since.filter(|_| is_free)?;
        let wait = local.rank.saturating_mul(self.options.claim_step_ms);
        Some(since.saturating_add(wait).max(local.not_before))
    }

    /// When there is a shard to claim.
    pub(super) fn claim_timeout(&self, shard: ShardNumber) -> Option<u64> {
        if self.may_claim() { self.claim_at(shard) } else { None }
    }

    /// Asks to change the record of a shard. False if too many calls are under way.
    fn change_owner(&mut self, shard: ShardNumber, writing: Writing, call: RegistryCall) -> bool {
        if self.own_calls >= OWN_CALLS_MAX {
            return false;
        }
        self.locals[usize::from(shard)].writing = writing;
        self.ask(call);
        true
    }
}
