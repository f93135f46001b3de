//! Why a ready task may not go, for those who ask.

use super::openings::{Timed, Whose};
use super::{Roster, Turns};
use crate::memory::slots::Slot;
use pinpriq_proto::shares::Own;
use pinpriq_proto::time::Timestamp;

/// What holds a ready task back. Its key and share are those of the task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeldBack {
    /// As many tasks of its key are taken as may be.
    KeyLimit { taken: u64, most: u64 },
    /// The bucket of its key opens at this moment.
    KeyRate { opens_at: Timestamp },
    /// Another task of its key has failed and goes first.
    KeyHeld { by: Slot },
    /// As many tasks of its share are taken as may be.
    ShareLimit { taken: u64, most: u64 },
    /// The bucket of its share opens at this moment.
    ShareRate { opens_at: Timestamp },
}

impl Turns {
    /// Returns everything that holds a ready task back now, besides the turns of others.
    pub(crate) fn what_holds(&self, slot: Slot, roster: &impl Roster) -> Vec<HeldBack> {
        let task = roster.entrant(slot);
        let mut found = Vec::new();
        if !self.rules.is_by_key {
            return found;
        }
        let key = task.key.and_then(|name| self.keys.find(name, roster.hash(name)));
        if let Some(key) = key.map(|id| &self.keys[id]) {
            let taken = u64::from(key.taken);
            let reached = self.rules.key_limit.filter(|most| taken >= *most);
            found.extend(reached.map(|most| HeldBack::KeyLimit { taken, most }));
            let bucket = key.bucket.as_ref().or(self.common.keys.as_ref());
            let opens_at = bucket.and_then(|timed| timed.opens_at());
            found.extend(opens_at.map(|opens_at| HeldBack::KeyRate { opens_at }));
            let holder = key.holders.as_ref().and_then(|holders| holders.first());
            let holder = holder.filter(|(_, by)| self.rules.key_hold && *by != slot);
            found.extend(holder.map(|(_, by)| HeldBack::KeyHeld { by }));
        }
        let share = match task.share() {
            Some(name) => self.shares.find(name, roster.hash(name)),
            None => Some(self.nameless),
        };
        // None of the tasks of one that is not there may go. It has what a take-over left, but not
        // with a rate of its own.
        let has_own = || roster.own_rules(task.share()?).map(|own| own.rate != Own::Default);
        let is_common = share.is_some() || !has_own().unwrap_or(false);
        let mut bucket = self.common(Whose::EveryShare).filter(|_| is_common);
        if let Some((id, share)) = share.map(|id| (id, &self.shares[id])) {
            let taken = u64::from(share.taken);
            let limit = share.own().limit.or(self.rules.share_limit);
            let reached = limit.filter(|most| taken >= *most);
            found.extend(reached.map(|most| HeldBack::ShareLimit { taken, most }));
            let own = share.besides.as_ref().and_then(|besides| besides.bucket.as_deref());
            bucket = own.or_else(|| self.common(Whose::Share(id)));
        }
        let opens_at = bucket.and_then(Timed::opens_at);
        found.extend(opens_at.map(|opens_at| HeldBack::ShareRate { opens_at }));
        found
    }
}
