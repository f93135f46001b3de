//! In which order tasks go, and what holds one back, for those who ask.

use pinpriq_proto::limits::BEHIND_MAX;
use pinpriq_proto::looking::{Eta, Reason};
use pinpriq_proto::shares::{Own, ShareRules};
use pinpriq_proto::task::TaskRecord;
use pinpriq_proto::time::{Span, Timestamp};

use super::super::Home;
use super::{holds, is_fair, is_selectable, is_taken, share_of};

/// How many seconds of five tell how fast it goes.
const WINDOWS: u64 = 12;

impl Home {
    /// The tasks in the order in which they go if each is taken and finished at once, and no key or
    /// share opens or closes. The key and share of `freed` are open, whatever holds them.
    pub(in super::super) fn forecast(
        &self,
        freed: Option<&TaskRecord>,
        now: Timestamp,
    ) -> Vec<TaskRecord> {
        let is_freed_key = |task: &TaskRecord| {
            freed
                .is_some_and(|freed| freed.terms.key.is_some() && freed.terms.key == task.terms.key)
        };
        let mut home = self.clone();
        // Keys that may not go now never do, and the freed one is held by nothing.
        home.tasks.retain(|_, task| match &task.terms.key {
            Some(_) if is_freed_key(task) => is_selectable(task),
            Some(key) if self.is_by_key() => {
                !is_selectable(task) || self.going_of_key(key, now).is_some()
            }
            _ => true,
        });
        for share in self.tasks.values().map(|task| share_of(&task.terms)) {
            let is_freed = freed.is_some_and(|freed| share_of(&freed.terms) == share);
            let is_open = is_freed || self.share_is_open(&share, now);
            let rules = self.rules_of(&share);
            let limit = Own::Is((!is_open).then_some(0));
            let rules = ShareRules { limit, rate: Own::Is(None), ..rules };
            if self.is_by_key() {
                home.turns.own.insert(share, rules);
            }
        }
        if self.is_by_key() {
            home.settings.key_limit = Some(u64::MAX);
            home.settings.key_rate = None;
        }
        home.turns.keys.clear();
        home.turns.shares.clear();
        (home.turns.every_key, home.turns.every_share) = (None, None);
        home.settle(now);
        let mut line = Vec::new();
        while let Some(next) = home.next_in_turn(false, now).cloned() {
            home.charge(&next, now);
            home.tasks.remove(&next.number);
            home.settle(now);
            line.push(next);
        }
        line
    }

    /// What holds back a ready task besides its place and the turns of others.
    pub(in super::super) fn held_back(&self, task: &TaskRecord, now: Timestamp) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if !self.is_by_key() {
            return reasons;
        }
        let taken = |is_one: &dyn Fn(&TaskRecord) -> bool| {
            let taken = self.tasks.values().filter(|task| is_taken(task));
            taken.filter(|task| is_one(task)).count() as u64
        };
        if let Some(key) = &task.terms.key {
            let of_key = |task: &TaskRecord| task.terms.key.as_ref() == Some(key);
            let taken = taken(&of_key);
            if let Some(most) = self.settings.key_limit.filter(|most| taken >= *most) {
                reasons.push(Reason::KeyLimit { key: key.clone(), taken, most });
            }
            if let Some(open_at) = self.bucket_of_key(key).and_then(|it| it.opens_at(now)) {
                reasons.push(Reason::KeyRate { key: key.clone(), open_at });
            }
            let others = self.tasks.values().filter(|other| of_key(other) && holds(other));
            let first = others.min_by_key(|other| other.progress.seq);
            if let Some(by) = first.filter(|_| self.settings.key_hold)
                && by.number != task.number
            {
                reasons.push(Reason::KeyHeld { key: key.clone(), by: by.id.clone() });
            }
        }
        let share = share_of(&task.terms);
        let taken = taken(&|task| share_of(&task.terms) == share);
        if let Some(most) = self.share_limit(&share).filter(|most| taken >= *most) {
            reasons.push(Reason::ShareLimit { share: share.clone(), taken, most });
        }
        if let Some(open_at) = self.bucket_of_share(&share).and_then(|it| it.opens_at(now)) {
            reasons.push(Reason::ShareRate { share, open_at });
        }
        reasons
    }

    /// Says that so many others come before a task.
    pub(in super::super) fn reason_behind(&self, task: &TaskRecord, before: usize) -> Reason {
        let before = before.min(BEHIND_MAX) as u64;
        if is_fair(&self.settings) {
            Reason::ShareTurn { share: share_of(&task.terms), ahead: before }
        } else {
            Reason::Behind { at_least: before }
        }
    }

    /// How long it takes until so many tasks are handed out.
    pub(in super::super) fn eta(&self, tasks: u64, now: Timestamp) -> Option<Eta> {
        let window = now.ms() / 5_000;
        let all: Vec<u64> = (window.saturating_sub(WINDOWS)..window)
            .map(|window| self.tally.handed_out.get(&window).copied().unwrap_or(0))
            .skip_while(|handed_out| *handed_out == 0)
            .collect();
        let span = |handed_out: u64, seconds: u64| {
            (handed_out > 0).then(|| Span::from_ms(tasks * seconds * 1_000 / handed_out))
        };
        let seconds = 5 * all.len() as u64;
        Some(Eta {
            mean: span(all.iter().sum(), seconds)?,
            low: span(all.iter().copied().max()?, 5)?,
            high: span(all.iter().copied().min()?, 5),
        })
    }
}
