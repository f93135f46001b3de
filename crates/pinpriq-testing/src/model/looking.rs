//! Looking at a queue: why a task is not handed out, all tasks, all leases.

use std::num::NonZeroU64;

use pinpriq_proto::command::{QueueName, Selection};
use pinpriq_proto::limits::{BEHIND_MAX, LOOKED_MAX, NAME_BYTES_MAX, NARROW_PAYLOAD_BYTES_MAX};
use pinpriq_proto::looking::{Eta, Explanation, LeasePlace, LeaseShown, Leases, Reason, Scan};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::task::{State, StateKind, TaskRecord};
use pinpriq_proto::time::Timestamp;

use super::bonds::{batch_name_fits, is_pending_in};
use super::within::match_one;
use super::{Answer, Home, Model, Place, fits, id_fits};

impl Model {
    pub(super) fn explain(&self, queue: QueueName<'_>, id: Option<&[u8]>) -> Answer {
        if let Some(id) = id {
            id_fits(id)?;
        }
        let place = self.place_of(queue)?;
        let explanation = if let Some(id) = id {
            if let Some(number) = self.find(queue, id)? {
                self.explain_task(&place, self.task(number))
            } else {
                let (id, ending) = self.ending_of(queue, id).ok_or(RefusalKind::NotFound)?;
                let (id, since) = (Some(id.clone()), Some(ending.at));
                let reasons = vec![Reason::Ended(ending.clone())];
                Explanation { id, since, reasons, ..Explanation::default() }
            }
        } else {
            match self.homes.get(&place) {
                Some(home) => self.explain_home(&place, home),
                None => Explanation::default(),
            }
        };
        Ok(Some(Reply::Explained(Box::new(explanation))))
    }

    /// Since when a task is in its state. What happened before the server started is not known.
    fn since(&self, task: &TaskRecord) -> Option<Timestamp> {
        let noted = self.since.get(&task.number).copied();
        noted.or_else(|| (task.put_at >= self.started_at).then_some(task.put_at))
    }

    fn explain_home(&self, place: &Place, home: &Home) -> Explanation {
        if let Some(next) = home.first(Selection::DEFAULT, self.now) {
            return self.explain_task(place, next);
        }
        if let Some(first) = home.in_line(self.now).first() {
            return self.explain_task(place, first);
        }
        let of = |kind: StateKind| {
            let mut tasks: Vec<&TaskRecord> =
                home.tasks.values().filter(|task| task.progress.state.kind() == kind).collect();
            tasks.sort_by_key(|task| task.progress.seq);
            tasks
        };
        let mut reasons = Vec::new();
        let ready_at = |task: &&TaskRecord| match task.progress.state {
            State::Waiting { ready_at } => ready_at,
            _ => None,
        };
        let waiting = of(StateKind::Waiting);
        if let Some(until) = waiting.iter().filter_map(ready_at).min() {
            reasons.push(Reason::Delayed { until });
        }
        let held = || waiting.iter().filter(|task| task.progress.state == State::HELD);
        if held().any(|task| task.progress.after().is_none()) {
            reasons.push(Reason::Held);
        }
        // Of those that wait for batches, the first one says why.
        let follower = held().find(|task| task.progress.after().is_some());
        reasons.extend(follower.and_then(|task| self.why_held(task).into_iter().next()));
        for kind in [StateKind::Taken, StateKind::Buried] {
            if let Some(task) = of(kind).first() {
                reasons.push(self.explain_task(place, task).reasons[0].clone());
            }
        }
        let has_unranked = !of(StateKind::Ready).is_empty();
        if home.paused.output.is_on() && (has_unranked || !reasons.is_empty()) {
            reasons.push(Reason::Paused);
        }
        if has_unranked {
            reasons.push(Reason::NoPriority);
        }
        Explanation { reasons, ..Explanation::default() }
    }

    fn explain_task(&self, place: &Place, task: &TaskRecord) -> Explanation {
        let since = self.since(task);
        let mut eta = None;
        let mut reasons = match &task.progress.state {
            State::Ready => {
                let reasons;
                (reasons, eta) = self.explain_ready(place, task);
                reasons
            }
            State::Waiting { ready_at: Some(until) } => vec![Reason::Delayed { until: *until }],
            State::Waiting { ready_at: None } => self.why_held(task),
            State::Taken(lease) => {
                let (client, until) = (lease.client(), lease.deadline);
                let progress = task.progress.text().cloned();
                vec![Reason::Taken { client, since, until, progress }]
            }
            State::Buried(_) => vec![Reason::Buried { reason: task.progress.reason.clone() }],
            State::Zombie { .. } | State::Done => Vec::new(),
        };
        let kind = task.progress.state.kind();
        if matches!(kind, StateKind::Taken | StateKind::Buried) && self.is_over(task) {
            reasons.push(Reason::Expired);
        }
        Explanation { id: Some(task.id.clone()), state: Some(kind), since, reasons, eta }
    }

    /// Why a ready task is not handed out, and when it will be.
    fn explain_ready(&self, place: &Place, task: &TaskRecord) -> (Vec<Reason>, Option<Eta>) {
        let home = &self.homes[place];
        let mut reasons = Vec::new();
        if home.paused.output.is_on() {
            reasons.push(Reason::Paused);
        }
        let is_taken = |task: &&TaskRecord| matches!(task.progress.state, State::Taken(_));
        let taken = home.tasks.values().filter(is_taken).count() as u64;
        if let Some(most) = home.settings.limit.filter(|most| taken >= *most) {
            reasons.push(Reason::Limit { taken, most });
        }
        if let Some(next_at) = home.next_token(self.now) {
            reasons.push(Reason::Rate { next_at });
        }
        reasons.extend(self.shut_limits(home));
        if task.progress.priority.is_none() {
            reasons.push(Reason::NoPriority);
            return (reasons, None);
        }
        let held_back = home.held_back(task, self.now);
        let is_paced = held_back.is_empty() && !home.paused.output.is_on();
        reasons.extend(held_back);
        let is_free = reasons.is_empty();
        let is_other = |other: &TaskRecord| other.number != task.number;
        let before = if home.has_turns() {
            let line = home.forecast(Some(task), self.now);
            line.iter().take_while(|other| is_other(other)).count()
        } else {
            home.in_line(self.now).into_iter().take_while(|other| is_other(other)).count()
        };
        if before > 0 {
            reasons.push(home.reason_behind(task, before));
        }
        if !self.is_waited_for(place, task.payload.len() <= NARROW_PAYLOAD_BYTES_MAX) {
            reasons.push(Reason::NoConsumer);
        }
        if before == 0 && is_free {
            reasons.push(Reason::Next);
        }
        let eta = is_paced && before < BEHIND_MAX;
        (reasons, eta.then(|| home.eta(before as u64 + 1, self.now)).flatten())
    }

    pub(super) fn scan(&self, scan: &Scan<'_>) -> Answer {
        page_fits(scan.count)?;
        fits(scan.key.is_none_or(|key| key.len() <= NAME_BYTES_MAX))?;
        batch_name_fits(scan.batch)?;
        let place = self.place_of(scan.queue)?;
        let mut tasks: Vec<TaskRecord> = match self.homes.get(&place) {
            Some(home) => home.tasks.values().cloned().collect(),
            None => Vec::new(),
        };
        tasks.retain(|task| task.progress.seq > scan.after);
        tasks.retain(|task| scan.state.is_none_or(|kind| task.progress.state.kind() == kind));
        tasks.sort_by_key(|task| task.progress.seq);
        // The page ends before the next task after a full one, whether it is meant or not.
        let has_key =
            |task: &TaskRecord| scan.key.is_none() || task.terms.key.as_deref() == scan.key;
        let is_meant = |task: &TaskRecord| has_key(task) && is_pending_in(task, scan.batch);
        let (mut shown, mut last, mut next) = (Vec::new(), 0, None);
        for task in tasks {
            if shown.len() == scan.count as usize {
                next = NonZeroU64::new(last);
                break;
            }
            last = task.progress.seq;
            if is_meant(&task) {
                shown.push(task);
            }
        }
        Ok(Some(Reply::Scanned { tasks: shown, next }))
    }

    pub(super) fn leases(&self, leases: &Leases<'_>, names: Option<&[NamePattern<'_>]>) -> Answer {
        page_fits(leases.count)?;
        let only = leases.queue.map(|queue| self.place_of(queue)).transpose()?;
        let homes = self.homes.iter().filter(|(place, _)| match &only {
            Some(only) => only == *place,
            None => !self.has_ended(place),
        });
        let homes =
            homes.filter(|(_, home)| names.is_none_or(|names| match_one(names, &home.name)));
        let mut all: Vec<LeaseShown> = homes
            .flat_map(|(_, home)| home.tasks.values().map(move |task| (home, task)))
            .filter_map(|(home, task)| self.lease_shown(home, task))
            .collect();
        all.sort_by(|one, other| one.place.cmp(&other.place));
        all.retain(|lease| match (leases.after, &only) {
            (None, _) => true,
            (Some(after), Some(_)) => lease.place.seq > after.seq,
            (Some(after), None) => lease.place.borrowed() > after,
        });
        let more = all.len() > leases.count as usize;
        all.truncate(leases.count as usize);
        let next = all.last().filter(|_| more).map(|last| last.place.clone());
        Ok(Some(Reply::Leases { leases: all, next: next.map(Box::new) }))
    }

    fn lease_shown(&self, home: &Home, task: &TaskRecord) -> Option<LeaseShown> {
        let State::Taken(lease) = &task.progress.state else { return None };
        let lane = home.lane.as_ref().map(|lane| &lane.name);
        let place = LeasePlace {
            lane: lane.map(|lane| lane.number),
            queue: home.name.clone(),
            seq: task.progress.seq,
        };
        Some(LeaseShown {
            place,
            member: lane.map(|lane| lane.member.clone()),
            id: task.id.clone(),
            holder: lease.client(),
            since: self.since(task),
            until: lease.deadline,
            progress: task.progress.text().cloned(),
        })
    }
}

impl Home {
    /// The tasks that can be chosen, in the order in which they are.
    fn in_line(&self, now: Timestamp) -> Vec<&TaskRecord> {
        let mut line: Vec<&TaskRecord> = self
            .in_sight(Selection::DEFAULT, now)
            .filter(|task| task.progress.priority.is_some())
            .collect();
        line.sort_by_key(|task| (self.number_of(task), task.progress.seq));
        line
    }
}

pub(super) fn page_fits(count: u32) -> Result<(), RefusalKind> {
    fits((1..=LOOKED_MAX).contains(&count))
}
