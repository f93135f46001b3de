//! What a node does when the logs of its shards do not answer, although the registry does: others
//! may reach them. So it gives these shards up, and says that other nodes should not count on it.

use super::{Order, Ownership};
use crate::registry::ShardNumber;

/// The time for which others should not count on a node doubles with each silence, but only so
/// often.
const DOUBLINGS_MAX: u32 = 5;

/// What a node knows of the silence of its logs.
#[derive(Default)]
pub(super) struct Silence {
    /// Until when others should not count on this node.
    until: u64,
    /// How often that has come without an answer in between. At least once while the node is
    /// suspended.
    times: u32,
}

impl Silence {
    /// A log was loaded. If the node counts as suspended, it still does for the same time.
    pub(super) const fn note_loaded(&mut self, is_suspended: bool) {
        self.times = is_suspended as u32;
    }
}

impl Ownership {
    /// Reports whether the host of a shard says nothing at the moment, because its log has not
    /// answered for its window.
    pub fn note_suspended(&mut self, shard: ShardNumber, is_suspended: bool) {
        let now = self.now;
        if let Some(host) = self.host_mut(shard) {
            let since = host.suspended_since.unwrap_or(now);
            host.suspended_since = is_suspended.then_some(since);
        }
    }

    /// Gives up the shards whose logs have been silent for too long, if another node may take them.
    pub(super) fn check_silence(&mut self) {
        let is_held = |local: &super::Local| {
            local.host.is_some_and(|host| host.suspended_since.is_some() || host.is_given_up)
        };
        let is_over = self.silence.until <= self.now && !self.locals.iter().any(is_held);
        if self.node.suspended && is_over {
            self.node.suspended = false;
            self.count_members();
        }
        if !self.others_may_take() {
            return;
        }
        for shard in 0..self.options.shards {
            let due = self.given_up_at(shard).is_some_and(|at| at <= self.now);
            if due && let Some(host) = self.host_mut(shard) {
                host.is_given_up = true;
                host.release = None;
                self.orders.push(Order::Release(shard));
                self.suspend();
            }
        }
    }

    /// Notes that others should not count on this node for a while.
    pub(super) fn suspend(&mut self) {
        if !self.node.suspended {
            self.silence.times = (self.silence.times + 1).min(DOUBLINGS_MAX);
            self.node.suspended = true;
            self.count_members();
        }
        let wait = self.options.calm_ms().saturating_mul(1 << (self.silence.times - 1));
        self.silence.until = self.now.saturating_add(wait);
    }

    /// Whether the registry answers, and shows a node that others may count on.
    fn others_may_take(&self) -> bool {
        let is_other = |name: &String| *name != self.node.name;
        self.registry_silent_for(self.now) <= self.options.interval_ms()
            && self.members.iter().any(|it| is_other(&it.name) && !it.is_draining)
    }

    /// When a shard is given up whose log stays silent.
    fn given_up_at(&self, shard: ShardNumber) -> Option<u64> {
        let host = self.locals[usize::from(shard)].host?;
        let since = host.suspended_since.filter(|_| !host.is_given_up)?;
        // The window, after which it is suspended, is seven tenths of the time to live.
        Some(since.saturating_add(self.options.session_ttl_ms / 10 * 3))
    }

    /// When there is something to do about the silence of logs.
    pub(super) fn silence_timeout(&self) -> Option<u64> {
        let end = self.node.suspended.then_some(self.silence.until);
        let shards = (0..self.options.shards).filter_map(|shard| self.given_up_at(shard));
        shards.chain(end).min()
    }
}
