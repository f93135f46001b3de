//! When this node gives shards up: because it drains, or because they belong elsewhere.
//!
//! A release is written into the record of the shard first, and the host serves on for as long as
//! the others may take to see that. Then the node that the shard belongs to looks more often, and
//! claims it as soon as it is free.

use super::local::{Host, Release};
use super::{Order, Ownership};
use crate::registry::{NodeRecord, ShardNumber};

/// A shard that has to stay again and again is moved less often, but the time between two attempts
/// doubles only so many times.
const DOUBLINGS_MAX: u32 = 6;

/// A shard that moves to another node.
pub(super) struct Moving {
    pub(super) shard: ShardNumber,
    since: u64,
}

impl Ownership {
    /// Decides which shards to give up.
    pub(super) fn begin_releases(&mut self) {
        let drains = self.node.draining && !self.all_drain();
        let gives_all = self.is_leaving || drains || self.is_halted();
        let (now, is_leaving) = (self.now, self.is_leaving);
        for host in self.locals.iter_mut().filter_map(|local| local.host.as_mut()) {
            match host.release {
                None if host.is_given_up => {}
                None if gives_all && (is_leaving || host.kept_until <= now) => {
                    host.release = Some(Release { since: now, ordered_at: None, is_move: false });
                }
                // The drain of this node was called off.
                Some(Release { ordered_at: None, is_move: false, .. }) if !gives_all => {
                    host.release = None;
                }
                _ => {}
            }
        }
        if !gives_all {
            self.begin_move();
        }
    }

    /// Lets one shard go that belongs to another node, if it is time for that.
    fn begin_move(&mut self) {
        let expired = self.moving_timeout().is_some_and(|at| at <= self.now);
        if expired {
            self.moving = None;
        }
        let is_moving = self.moving.is_some();
        if is_moving || self.calm_at().is_none_or(|at| at > self.now) {
            return;
        }
        let now = self.now;
        let due = |shard: &u16| self.move_at(*shard).is_some_and(|at| at <= now);
        let Some(shard) = (0..self.options.shards).find(due) else { return };
        if let Some(host) = self.host_mut(shard) {
            host.release = Some(Release { since: now, ordered_at: None, is_move: true });
            self.moving = Some(Moving { shard, since: now });
        }
    }

    /// When shards may move, if nothing changes until then.
    fn calm_at(&self) -> Option<u64> {
        // A view of long ago says nothing of the others.
        let viewed = self.session.viewed_at?;
        let is_fresh = self.now <= viewed.saturating_add(self.options.session_ttl_ms);
        let wait = self.options.calm_ms();
        (is_fresh && self.is_settled()).then(|| self.calm_since.saturating_add(wait))
    }

    /// When a shard may move to the node that it belongs to. None if it belongs here.
    fn move_at(&self, shard: ShardNumber) -> Option<u64> {
        let local = &self.locals[usize::from(shard)];
        let is_free = |host: &Host| host.release.is_none() && !host.is_given_up;
        let host = local.host.filter(|host| is_free(host) && local.rank > 0)?;
        let since = host.serving_since?;
        let is_written = self.record(shard) == host.record(self.node.instance);
        if !is_written || !local.is_settled() {
            return None;
        }
        let target = self.placement.target(shard)?;
        // A node that is about to end takes nothing, also if all others drain.
        let takes = |node: &NodeRecord| {
            let drains = node.draining && !self.view.drained.contains(&node.name);
            node.name == target && !drains && !node.suspended
        };
        let has_taker = self.view.nodes.iter().any(takes);
        has_taker
            .then(|| since.saturating_add(self.back_off_ms(local.returns)).max(host.kept_until))
    }

    /// How long a shard stays that has returned so many times.
    fn back_off_ms(&self, returns: u32) -> u64 {
        self.options.calm_ms().saturating_mul(1 << returns.min(DOUBLINGS_MAX))
    }

    /// When the move of a shard counts as over, whatever has become of it.
    pub(super) fn moving_timeout(&self) -> Option<u64> {
        let moving = self.moving.as_ref()?;
        let bound = self.options.calm_ms().saturating_add(self.options.hand_over_ms);
        Some(moving.since.saturating_add(bound))
    }

    /// How long others may take to see a record.
    fn notice_ms(&self) -> u64 {
        if self.members.len() > 1 { self.options.interval_ms() } else { 0 }
    }

    /// Tells the hosts to stop whose release was seen by the others, and to go on if that takes too
    /// long.
    pub(super) fn advance_releases(&mut self) {
        for shard in 0..self.options.shards {
            let local = &self.locals[usize::from(shard)];
            let Some(mut host) = local.host else { continue };
            let Some(mut release) = host.release else { continue };
            if self.release_due(&release) > self.now {
                continue;
            }
            let is_written =
                local.is_settled() && self.record(shard) == host.record(self.node.instance);
            if release.ordered_at.is_none() && (is_written || self.is_leaving) {
                release.ordered_at = Some(self.now);
                host.release = Some(release);
                self.orders.push(Order::Release(shard));
            } else if self.is_too_late(&release) {
                self.give_up_release(shard, &mut host, &release);
            }
            self.locals[usize::from(shard)].host = Some(host);
        }
    }

    /// When a release goes on or is given up.
    fn release_due(&self, release: &Release) -> u64 {
        match release.ordered_at {
            None => release.since.saturating_add(self.notice_ms()),
            Some(_) => self.release_bound(release),
        }
    }

    /// When a release is given up.
    fn release_bound(&self, release: &Release) -> u64 {
        let begin =
            release.ordered_at.unwrap_or_else(|| release.since.saturating_add(self.notice_ms()));
        begin.saturating_add(self.options.hand_over_ms)
    }

    fn is_too_late(&self, release: &Release) -> bool {
        let may_give_up = !self.is_leaving;
        may_give_up && self.release_bound(release) <= self.now
    }

    /// Keeps a shard whose release takes too long.
    fn give_up_release(&mut self, shard: ShardNumber, host: &mut Host, release: &Release) {
        let local = &mut self.locals[usize::from(shard)];
        local.returns += u32::from(release.is_move);
        let returns = local.returns;
        host.release = None;
        host.kept_until = self.now.saturating_add(self.back_off_ms(returns));
        self.counters.moves_given_up += 1;
        if release.ordered_at.is_some() {
            self.orders.push(Order::Resume(shard));
        }
        if release.is_move {
            self.moving = None;
            self.calm_since = self.now;
        }
    }

    /// When there is something to do about a release of a shard.
    pub(super) fn release_timeout(&self, shard: ShardNumber) -> Option<u64> {
        let local = &self.locals[usize::from(shard)];
        let host = local.host?;
        if host.is_given_up {
            return None;
        }
        if let Some(release) = host.release {
            let due = self.release_due(&release);
            // A record that could not be written is waited for until it is too late.
            return Some(if due <= self.now { self.release_bound(&release) } else { due });
        }
        let drains = self.node.draining && !self.all_drain();
        if drains || self.is_halted() {
            return Some(host.kept_until);
        }
        let move_at = self.move_at(shard)?;
        Some(self.calm_at()?.max(move_at))
    }
}
