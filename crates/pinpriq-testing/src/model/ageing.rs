//! Ageing: a task goes the earlier the longer it has waited, whatever its priority.
//!
//! A task goes by the moment at which it has begun to age, plus a step for each of its priority.
//! Both follow from its put and its queue, unless the task says otherwise.

use pinpriq_proto::command::Selection;
use pinpriq_proto::settings::{Ranking, Settings};
use pinpriq_proto::task::{Aged, State, TaskRecord, Trace};
use pinpriq_proto::time::{Span, Timestamp};

use super::history::forget_open_attempt;
use super::turns::trace_of;
use super::{Home, Model, Place};

pub(super) fn ages(settings: &Settings) -> bool {
    settings.ranking == Ranking::Ageing
}

fn age(task: &mut TaskRecord, aged: Aged) {
    task.progress.trace = Trace { aged, ..trace_of(&task.progress) }.kept();
}

impl Home {
    /// By what a task goes before others: its priority, or its rank where tasks age.
    pub(super) fn number_of(&self, task: &TaskRecord) -> Option<i128> {
        let priority = i128::from(task.progress.priority?);
        if !ages(&self.settings) {
            return Some(priority);
        }
        let Aged { start, ageing } = task.progress.aged();
        let step = ageing.or(self.settings.ageing_usual).unwrap_or(Span::ZERO);
        let start = start.unwrap_or(task.put_at);
        Some(i128::from(start.ms()) + priority * i128::from(step.ms()))
    }

    /// What a task has to say that has come while AGEING was another one.
    fn own_ageing(&self, ageing: Option<Span>) -> Option<Span> {
        let Settings { ageing: now, ageing_usual: usual, .. } = &self.settings;
        ageing.filter(|_| ages(&self.settings) && now != usual)
    }

    /// A task that is ready ages, even if its delay would have lasted longer.
    pub(super) fn end_delays(&mut self, now: Timestamp) {
        if !ages(&self.settings) {
            return;
        }
        for task in self.tasks.values_mut().filter(|it| it.progress.state == State::Ready) {
            let aged = task.progress.aged();
            if aged.start > Some(now) {
                age(task, Aged { start: Some(now), ..aged });
            }
        }
    }

    /// Gives a place other settings. Its tasks age as they did.
    pub(super) fn set(&mut self, mut settings: Settings) {
        let has_aged = ages(&self.settings) && !self.tasks.is_empty();
        settings.ageing_usual = match ages(&settings) {
            true if has_aged => self.settings.ageing_usual,
            true => settings.ageing,
            false => None,
        };
        self.settings = settings;
    }

    /// What is so now of all that ageing can do, for the census of random tests.
    pub(super) fn seen_of_ageing(&self, now: Timestamp) -> Vec<&'static str> {
        if !ages(&self.settings) {
            return Vec::new();
        }
        let ready = || self.in_sight(Selection::DEFAULT, now);
        let next = self.first(Selection::DEFAULT, now).and_then(|next| next.progress.priority);
        let is_more_urgent = |task: &TaskRecord| {
            task.progress.priority.zip(next).is_some_and(|(priority, next)| priority < next)
        };
        let seen = [
            (ready().any(is_more_urgent), "a task goes before a more urgent one"),
            (
                ready().any(|task| task.progress.aged().ageing.is_some()),
                "a task ages by a former AGEING",
            ),
            (
                ready().any(|task| task.progress.aged().start.is_some()),
                "a task began to age after its put",
            ),
            (
                self.has_turns() && ready().any(|task| task.terms.key.is_some()),
                "tasks of a key age",
            ),
            (self.lane.is_some(), "a lane ages"),
        ];
        seen.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect()
    }

    /// The task as an export shows it.
    pub(super) fn exported(&self, mut task: TaskRecord) -> TaskRecord {
        let aged = task.progress.aged();
        let ageing = aged.ageing.or_else(|| self.own_ageing(self.settings.ageing_usual));
        age(&mut task, Aged { ageing, ..aged });
        task.progress.forget_text();
        forget_open_attempt(&mut task);
        task
    }
}

impl Model {
    /// A task comes into a place, and begins to age there.
    pub(super) fn begin_to_age(&self, place: &Place, task: &mut TaskRecord) {
        let Some(home) = self.homes.get(place).filter(|home| ages(&home.settings)) else { return };
        let mut aged = task.progress.aged();
        if let State::Waiting { ready_at: Some(ready_at) } = task.progress.state {
            aged.start = aged.start.or(Some(ready_at));
        }
        aged.ageing = aged.ageing.or_else(|| home.own_ageing(home.settings.ageing));
        age(task, aged);
    }

    /// A task comes back into a place, and ages as before.
    pub(super) fn age_as_before(&self, place: &Place, task: &mut TaskRecord) {
        let Some(home) = self.homes.get(place) else { return };
        let aged = task.progress.aged();
        let ageing = aged.ageing.or_else(|| home.own_ageing(home.settings.ageing_usual));
        age(task, Aged { ageing, ..aged });
    }

    /// Sends a task to the tail, where it begins to age anew.
    pub(super) fn send_to_tail(&mut self, number: u64, seq: u64) {
        let (now, place) = (self.now, self.places[&number].clone());
        let is_ageing = ages(&self.settings(&place));
        let task = self.task_mut(number);
        task.progress.seq = seq;
        if is_ageing {
            let aged = task.progress.aged();
            age(task, Aged { start: Some(now), ..aged });
        }
    }
}
