//! What survives the end of a server, and what a new one makes of it.
//!
//! The model trusts everything that the store kept. Whether the store kept the right things is
//! checked by its own tests.

use std::collections::BTreeMap;

use pinpriq_proto::batches::BatchRecord;
use pinpriq_proto::change::{LaneRecord, MemberRecord, QueueRecord, ScheduleRecord};
use pinpriq_proto::named_limits::LimitRecord;
use pinpriq_proto::shares::ShareRecord;
use pinpriq_proto::task::{LaneName, State, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;

use super::gate::Bucket;
use super::limits::NamedLimit;
use super::recall::is_unstarted;
use super::tasks::{Exit, Tally, is_kept};
use super::{Home, Lane, Member, Model, Place, time};

/// What a store keeps of a server, in the words of the engine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survivors {
    /// Every registered member, by incarnation.
    pub members: Vec<MemberRecord>,
    /// Every queue that has settings or a pause, by name.
    pub queues: Vec<QueueRecord>,
    /// Every schedule, by number.
    pub schedules: Vec<ScheduleRecord>,
    /// The windows of unique tasks.
    pub windows: Vec<WindowRecord>,
    /// The rules of their own that shares have.
    pub own_shares: Vec<ShareRecord>,
    /// The limits that several queues use together.
    pub named_limits: Vec<LimitRecord>,
    /// Every batch, by number.
    pub batches: Vec<BatchRecord>,
    /// Every lane, by number.
    pub lanes: Vec<LaneRecord>,
    /// Every task by its number. No lease has a holder.
    pub tasks: BTreeMap<u64, TaskRecord>,
    /// The bytes of each publication that copies share, by the number of its first copy.
    pub publications: BTreeMap<u64, u64>,
    /// The publication of each copy that has no payload of its own.
    pub shares: BTreeMap<u64, u64>,
}

impl Model {
    /// What a store that has kept everything would report to the next server.
    #[must_use]
    pub fn survivors(&self) -> Survivors {
        let windows = self.windows.values().cloned().collect();
        let schedules = self.kept_schedules();
        let own_shares = self.own_shares.values().cloned().collect();
        let named_limits = self.named_limits.values().map(|limit| limit.record.clone()).collect();
        let batches = self.batches.values().map(|batch| batch.record.clone()).collect();
        let known = Survivors { schedules, windows, own_shares, batches, ..Survivors::default() };
        let mut kept = Survivors { named_limits, ..known };
        for (incarnation, member) in &self.members {
            let (incarnation, name) = (*incarnation, member.name.clone());
            let (lease, ended) = (member.lease, member.ended);
            kept.members.push(MemberRecord { incarnation, name, lease, ended });
        }
        for home in self.homes.values() {
            let (settings, paused) = (home.settings.clone(), home.paused);
            if let Some(lane) = &home.lane {
                let (number, topic, member) =
                    (lane.name.number, home.name.clone(), lane.incarnation);
                kept.lanes.push(LaneRecord { number, topic, member, settings, paused });
            } else if home.created || home.paused.any() {
                let (name, created) = (home.name.clone(), home.created);
                kept.queues.push(QueueRecord { name, created, settings, paused });
            }
        }
        for task in self.tasks() {
            let mut task = task.clone();
            if is_unstarted(&task) {
                task.progress.state = State::Ready;
                task.progress.attempts -= 1;
            }
            task.progress = task.progress.to_keep();
            if let Some(first) = self.kept.shares.get(&task.number) {
                kept.shares.insert(task.number, *first);
                kept.publications.insert(*first, self.kept.publications[first]);
            }
            kept.tasks.insert(task.number, task);
        }
        kept
    }

    /// Starts a server with what a store kept. Ids of tasks with a higher number than `last_number`
    /// may be used again.
    pub fn start(&mut self, kept: Survivors, now: Timestamp, incarnation: u64, last_number: u64) {
        let happened = std::mem::take(&mut self.happened);
        let mut bindings = std::mem::take(&mut self.bindings);
        bindings.forget_after(last_number);
        let (calendars, clients) = (std::sync::Arc::clone(&self.calendars), self.clients.clone());
        let grace = self.grace;
        let former = self.is_handed_over.then(|| self.clone());
        *self = Self { calendars, clients, ..Self::new(self.limits) };
        (self.bindings, self.happened) = (bindings, happened);
        (self.now, self.incarnation, self.last_number) = (now, incarnation, last_number);
        self.started_at = now;
        (self.kept.publications, self.kept.shares) = (kept.publications, kept.shares);
        for MemberRecord { incarnation, name, lease, ended } in kept.members {
            let (lease_until, put_off) = (now.after(lease), Vec::new());
            self.members.insert(incarnation, Member { name, lease, lease_until, put_off, ended });
        }
        for QueueRecord { name, created, settings, paused } in kept.queues {
            let place = Place::Queue(name.clone());
            self.homes.insert(place, Home { name, created, settings, paused, ..Home::default() });
        }
        for LaneRecord { number, topic: name, member, settings, paused } in kept.lanes {
            let lane = LaneName { number, member: self.members[&member].name.clone() };
            let lane = Some(Lane { name: lane, incarnation: member, missed: 0 });
            let home = Home { name, lane, created: true, settings, paused, ..Home::default() };
            self.homes.insert(Place::Lane(number), home);
        }
        for (number, task) in kept.tasks {
            let place = Place::of(&task);
            self.places.insert(number, place.clone());
            if let State::Buried(burial) = task.progress.state {
                self.last_burial = self.last_burial.max(burial);
            }
            self.home(&place).tasks.insert(number, task);
        }
        for window in kept.windows {
            self.windows.insert(window.number, window);
        }
        for own in kept.own_shares {
            self.own_shares.insert(own.number, own);
        }
        self.revive_limits(kept.named_limits, grace.is_some());
        for place in self.homes.keys().cloned().collect::<Vec<_>>() {
            self.obey(&place);
        }
        if grace.is_some() {
            self.homes.values_mut().for_each(|home| home.begin_empty(now));
        } else if let Some(former) = former {
            self.go_on_with_tokens(&former);
        }
        for home in self.homes.values_mut() {
            let put = home.tasks.values().filter(|task| !is_kept(task.progress.state.kind()));
            home.tally = Tally { put: put.count() as u64, ..Tally::default() };
        }
        let put = self.homes.values().map(|home| home.tally.put).sum();
        self.totals = Tally { put, ..Tally::default() };
        self.drop_what_is_over();
        self.forget_endings();
        self.revive_batches(kept.batches);
        if let Some(grace) = grace {
            self.put_off_ends(grace);
        }
        self.end_leases(|_, lease| lease.deadline.is_none(), false, (false, false));
        self.fire_due();
        // A queue of which nothing is left has no figures.
        self.lingering.clear();
        self.revive_schedules(kept.schedules);
        self.conclude();
    }

    /// The limits of another server begin without a token, if it was taken over.
    fn revive_limits(&mut self, kept: Vec<LimitRecord>, is_taken_over: bool) {
        for record in kept {
            let now = self.now;
            let begun = |rate| {
                if is_taken_over { Bucket::empty(rate, now) } else { Bucket::of(rate, None, now) }
            };
            let bucket = record.rules.rate.map(begun);
            let limit = NamedLimit { record, bucket, closed: Span::ZERO };
            self.named_limits.insert(limit.record.number, limit);
        }
    }

    /// Takes over all tokens, and debts, of another server.
    fn go_on_with_tokens(&mut self, former: &Self) {
        for (place, home) in &mut self.homes {
            if let Some(former) = former.homes.get(place) {
                home.go_on_with_tokens(former);
                home.settle(self.now);
            }
        }
        for (number, limit) in &mut self.named_limits {
            limit.bucket = former.named_limits[number].bucket;
        }
    }

    /// No lease that has a deadline ends before its TTR or the grace has passed.
    fn put_off_ends(&mut self, grace: Span) {
        let now = self.now;
        for task in self.homes.values_mut().flat_map(|home| home.tasks.values_mut()) {
            if let State::Taken(lease) = &mut task.progress.state
                && let Some(deadline) = &mut lease.deadline
            {
                let least = now.after(lease.ttr.unwrap_or(grace).min(grace));
                *deadline = least.max(*deadline);
                let cancelled = task.progress.trace.as_mut().and_then(|it| it.cancelled.as_mut());
                if let Some(own) = cancelled.and_then(|it| it.deadline.as_mut()) {
                    *own = least.max(*own);
                }
            }
        }
    }

    /// Removes everything that is over, even where no client can see it.
    fn drop_what_is_over(&mut self) {
        for number in self.places.keys().copied().collect::<Vec<_>>() {
            let task = self.task(number);
            match task.progress.state.kind() {
                // Dead letters leave later, when all queues are there.
                StateKind::Ready | StateKind::Waiting
                    if self.is_over(task)
                        && self.settings(&self.places[&number]).gets_expired().is_none() =>
                {
                    self.leave(number, Exit::Expired);
                }
                StateKind::Zombie if time::due(task).is_some_and(|at| at <= self.now) => {
                    self.leave(number, Exit::Acked);
                }
                _ => {}
            }
        }
    }
}
