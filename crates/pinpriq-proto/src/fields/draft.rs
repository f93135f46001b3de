//! A task of a record that is being read. What each field means is in the table.

use super::{Value, Wrong};
use crate::batches::{AFTER_MAX, After, OnlyIf, check_batch_name};
use crate::limits::{
    ATTEMPT_ADDRESS_BYTES_MAX, ATTEMPT_REASON_BYTES_MAX, BACKOFF_MS_MAX, HISTORY_MAX,
    NAME_BYTES_MAX,
};
use crate::task::history::Attempt;
use crate::task::{
    Bytes, Origin, Past, Progress, Retries, State, StateKind, TaskId, TaskRecord, Terms, Trace,
};
use crate::time::{Span, Timestamp};

/// A task of a record that is being read.
#[derive(Debug)]
pub struct Draft {
    pub(super) task: TaskRecord,
    pub(super) trace: Trace,
    pub(super) past: Past,
    pub(super) unique_until: Option<Timestamp>,
    /// Whether it waits until it is freed.
    pub(super) is_parked: bool,
    /// What was found first to be wrong with it.
    pub(super) wrong: Option<Wrong>,
}

impl Draft {
    /// A task of this queue, of which nothing was read yet. [`carried`] fields are to be written in
    /// their order, those that are left out as what is [`Carried::usual`].
    #[must_use]
    pub fn of(queue: Bytes) -> Self {
        let task = TaskRecord {
            number: 0,
            queue,
            lane: None,
            id: TaskId::Given(Bytes::default()),
            put_at: Timestamp::MAX,
            terms: Terms::NONE,
            progress: Progress::fresh(0, Some(0)),
            past: None,
            payload: Bytes::default(),
            away: None,
            shared: false,
        };
        let trace = Trace::NONE;
        let past = Past::default();
        Self { task, trace, past, unique_until: None, is_parked: false, wrong: None }
    }

    /// The task that was read and the end of the window of its unique key, or what is wrong.
    pub fn finish(mut self) -> Result<(TaskRecord, Option<Timestamp>), Wrong> {
        self.check_parked();
        self.check_batches();
        let Self { mut task, trace, past, unique_until, is_parked: _, wrong } = self;
        task.progress.trace = trace.kept();
        task.past = past.kept();
        wrong.map_or(Ok((task, unique_until)), Err)
    }

    /// Refuses a back-off that a task cannot have of its own.
    pub(super) fn check_wait(&mut self, name: &str, wait: Option<Span>) {
        if wait.is_some_and(|wait| !Retries::can_be_backoff(wait)) {
            self.refuse(format!("'{name}' is a number from 1 to {BACKOFF_MS_MAX}, or null"));
        }
    }

    /// Refuses attempts that no task can have.
    pub(super) fn check_history(&mut self, attempts: &[Attempt]) {
        if attempts.len() > usize::from(HISTORY_MAX) {
            self.refuse(format!("'history' has at most {HISTORY_MAX} attempts"));
        }
        for Attempt { contact, end, .. } in attempts {
            let reason = end.as_ref().and_then(|end| end.reason.as_ref());
            for (name, text, most) in [
                ("name", Some(&contact.name), NAME_BYTES_MAX),
                ("address", Some(&contact.address), ATTEMPT_ADDRESS_BYTES_MAX),
                ("reason", reason, ATTEMPT_REASON_BYTES_MAX),
            ] {
                if text.is_some_and(|text| text.len() > most) {
                    self.refuse(format!("the '{name}' of an attempt has at most {most} bytes"));
                }
            }
        }
    }

    pub(super) fn change_retries(&mut self, change: impl FnOnce(&mut Retries)) {
        let mut retries = self.task.terms.retries();
        change(&mut retries);
        if !retries.are_of_queue() {
            let terms = std::mem::take(&mut self.task.terms);
            self.task.terms = terms.with_retries(retries);
        }
    }

    pub(super) fn refuse(&mut self, wrong: impl Into<Wrong>) {
        self.wrong.get_or_insert_with(|| wrong.into());
    }

    pub(super) fn misplace(&mut self, name: &str) {
        let state = self.task.progress.state.kind().word();
        self.refuse(format!("a {state} task has no '{name}'"));
    }

    /// Refuses a waiting task of which nothing says when it is ready, unless it is held.
    pub(super) fn check_parked(&mut self) {
        match &self.task.progress.state {
            State::Waiting { ready_at: None } if self.is_parked == self.trace.after.is_some() => {
                self.refuse("a waiting task has 'ready_at', or it is 'parked', or it has 'after'");
            }
            state if self.is_parked && *state != State::HELD => {
                self.refuse("only a waiting task without 'ready_at' is 'parked'");
            }
            _ => {}
        }
    }

    /// Refuses names that no batch can have, and a wait for batches in other states than W.
    fn check_batches(&mut self) {
        let after = self.trace.after.as_ref().map_or(&[][..], |after| &after.names);
        if after.len() > AFTER_MAX {
            return self.refuse(format!("'after' names at most {AFTER_MAX} batches"));
        }
        let names = after.iter().chain(&self.past.batch);
        if let Err(wrong) = names.map(|name| &**name).try_for_each(check_batch_name) {
            return self.refuse(wrong.sentence);
        }
        if !after.is_empty() && self.task.progress.state != State::HELD {
            self.misplace("after");
        }
    }

    /// Lets it wait for these batches.
    pub(super) fn follow(&mut self, names: &[Bytes]) {
        let after = || After { names: names.to_vec(), only_if: OnlyIf::Done, any_failed: false };
        self.trace.after = (!names.is_empty()).then(after);
    }

    /// Says how the batches have to end that it waits for.
    pub(super) fn set_condition(&mut self, word: Option<&[u8]>) {
        let Some(word) = word else { return };
        let known = OnlyIf::ALL.into_iter().find(|it| it.word().as_bytes() == word);
        match (known, &mut self.trace.after) {
            (_, None) => self.refuse("'if' goes with 'after'"),
            (None, _) => self.refuse("'if' is done, acked or failed"),
            (Some(known), Some(after)) => after.only_if = known,
        }
    }

    /// Says whether a task of batches has failed that were done before.
    pub(super) fn set_any_failed(&mut self, any_failed: bool) {
        match &mut self.trace.after {
            Some(after) => after.any_failed = any_failed,
            None if any_failed => self.refuse("'after_failed' goes with 'after'"),
            None => {}
        }
    }

    /// Sets the moment at which a task leaves its state. It goes with the state `of` alone.
    pub(super) fn set_end(
        &mut self,
        name: &str,
        of: StateKind,
        at: Value<'_>,
        state: fn(Timestamp) -> State,
    ) {
        match at.moment() {
            Some(at) if self.task.progress.state.kind() == of => {
                self.task.progress.state = state(at);
            }
            None if self.task.progress.state.kind() != of => {}
            Some(_) => self.misplace(name),
            None => self.refuse(format!("a {} task has '{name}'", of.word())),
        }
    }

    /// Sets a part of the origin. Dead letters need all of them apart from numbers.
    pub(super) fn set_origin(
        &mut self,
        name: &str,
        value: Value<'_>,
        set: fn(&mut Origin, Value<'_>) -> Option<()>,
    ) {
        let Some(origin) = &mut self.past.origin else {
            if value != Value::Missing {
                self.refuse(format!("a task has no field '{name}'"));
            }
            return;
        };
        if set(origin, value).is_none() {
            self.refuse(format!("it has no '{name}'"));
        }
    }
}
