//! One change of all tasks of a queue that a filter chooses.

use std::num::NonZeroU64;

use pinpriq_proto::command::{Amendment, Assign, Bulk, BulkChange, Cancel, Filter};
use pinpriq_proto::limits::{
    BULK_STEPS_MAX, CHANGED_BYTES_MAX, CHANGED_MAX, HEADER_NAME_BYTES_MAX, NAME_BYTES_MAX,
    PATTERN_BYTES_MAX, SHARE_BYTES_MAX, STEPS_PER_CHANGE,
};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::task::StateKind::{self, Buried, Done, Ready, Taken, Waiting, Zombie};
use pinpriq_proto::task::{Counts, State, TaskRecord, Trace, headers, reasons};
use pinpriq_proto::time::Span;

use super::bonds::{batch_name_fits, is_pending_in};
use super::turns::{share_of, trace_of};
use super::within::match_one;
use super::{Answer, Exit, Model, Place, fits};

impl Model {
    pub(super) fn bulk(&mut self, bulk: &Bulk<'_>, names: Option<&[NamePattern<'_>]>) -> Answer {
        let given = [Some(bulk.queue.name), bulk.queue.member, bulk.target()];
        fits(given.into_iter().flatten().all(|name| name.len() <= NAME_BYTES_MAX))?;
        let needs_room = !matches!(bulk.change, BulkChange::Cancel | BulkChange::Kill) && !bulk.dry;
        if needs_room && self.room >= Room::Scarce {
            return Err(RefusalKind::Busy);
        }
        fits((1..=CHANGED_MAX).contains(&bulk.count))?;
        filter_fits(&bulk.filter)?;
        match bulk.change {
            BulkChange::Delay(delay) => self.amendment_fits(delay, &Amendment::NONE)?,
            BulkChange::Move(to) => fits(bulk.queue.member.is_some() || bulk.queue.name != to)?,
            _ => {}
        }
        fits(bulk.filter.state.is_none_or(|state| concerns(bulk.change, state)))?;
        let place = self.place_of(bulk.queue)?;
        let usual = match bulk.change {
            BulkChange::Restart => Some(Buried),
            BulkChange::Redrive => Some(Ready),
            _ => None,
        };
        let state = bulk.filter.state.or(usual);
        let mut tasks: Vec<(u64, u64)> = Vec::new();
        if let Some(home) = self.homes.get(&place) {
            let there = home.tasks.values().filter(|task| task.progress.seq > bulk.after);
            let there =
                there.filter(|task| state.is_none_or(|kind| task.progress.state.kind() == kind));
            tasks.extend(there.map(|task| (task.progress.seq, task.number)));
        }
        tasks.sort_unstable();
        let (mut found, mut bytes, mut last, mut next) = (Vec::new(), 0, bulk.after, None);
        let mut looked = 0;
        for (seq, number) in tasks {
            let is_full = found.len() == bulk.count as usize || bytes >= CHANGED_BYTES_MAX;
            if is_full || looked + STEPS_PER_CHANGE * found.len() >= BULK_STEPS_MAX {
                next = NonZeroU64::new(last);
                break;
            }
            (last, looked) = (seq, looked + 1);
            let task = self.task(number);
            if would_change(&place, task, bulk.change) && self.is_meant(task, &bulk.filter) {
                let moves = matches!(bulk.change, BulkChange::Move(_) | BulkChange::Redrive);
                if moves || self.is_over(task) {
                    bytes += (task.payload.len() + task.terms.key_bytes()) as u64;
                }
                found.push((seq, number, looked - 1));
            }
        }
        let origins = found.iter().filter_map(|(_, number, _)| self.task(*number).origin());
        if let (BulkChange::Redrive, Some(names)) = (bulk.change, names)
            && !origins.into_iter().all(|origin| match_one(names, &origin.queue))
        {
            return Err(RefusalKind::NoPerm);
        }
        let mut changed = found.len();
        if !bulk.dry {
            for (index, (seq, number, before)) in found.into_iter().enumerate() {
                match self.change_one(number, bulk) {
                    Ok(()) => {}
                    Err(kind) if index == 0 => return Err(kind),
                    Err(_) => {
                        (changed, looked, next) = (index, before, NonZeroU64::new(seq - 1));
                        break;
                    }
                }
            }
        }
        let (looked, changed) = (looked as u64, changed as u64);
        Ok(Some(Reply::Bulked { next, looked, changed }))
    }

    fn is_meant(&self, task: &TaskRecord, filter: &Filter<'_>) -> bool {
        let (progress, terms) = (&task.progress, &task.terms);
        if let Some((low, high)) = filter.priorities
            && !progress.priority.is_some_and(|priority| low <= priority && priority <= high)
        {
            return false;
        }
        if let Some(pattern) = filter.reason
            && !progress.reason.as_ref().is_some_and(|reason| matches(pattern, reason))
        {
            return false;
        }
        if let Some((name, pattern)) = filter.header {
            let headers = terms.headers().map_or(&[][..], |headers| &**headers);
            let mut headers = headers::decode(headers);
            if !headers.any(|(known, value)| known == name && matches(pattern, value)) {
                return false;
            }
        }
        (filter.key.is_none() || terms.key.as_deref() == filter.key)
            && is_pending_in(task, filter.batch)
            && filter.share.is_none_or(|share| *share_of(terms) == *share)
            && filter.older.is_none_or(|older| task.put_at.after(older) <= self.now)
            && filter.failures.is_none_or(|least| progress.failures >= least)
    }

    fn change_one(&mut self, number: u64, bulk: &Bulk<'_>) -> Result<(), RefusalKind> {
        match bulk.change {
            BulkChange::Restart => {
                if self.bring_back(number, Span::ZERO, &Amendment::NONE, true).is_some() {
                    let progress = &mut self.task_mut(number).progress;
                    progress.trace = Trace { counts: Counts::NONE, ..trace_of(progress) }.kept();
                }
            }
            BulkChange::Cancel if self.task(number).progress.state.kind() == Taken => {
                let reason = Some(reasons::BULK);
                let cancel = Cancel { queue: bulk.queue, id: b"", reason, grace: None };
                self.ask_to_stop(number, &cancel)?;
            }
            BulkChange::Cancel => self.leave(number, Exit::Cancelled),
            BulkChange::Kill => self.leave(number, Exit::Killed),
            BulkChange::Priority(priority) => {
                let priority = Assign::To(priority);
                self.amend(number, &Amendment { priority, ..Amendment::NONE });
                let place = self.places[&number].clone();
                self.settle(&place);
            }
            BulkChange::Delay(delay) => {
                self.bring_back(number, delay, &Amendment::NONE, false);
            }
            BulkChange::Move(to) => {
                let to = Place::Queue(to.into());
                self.may_move(number, &to)?;
                self.move_by_hand(number, &to);
            }
            BulkChange::Redrive => {
                let Some(origin) = self.task(number).origin() else { return Ok(()) };
                let to = Place::Queue(origin.queue.clone());
                self.may_move(number, &to)?;
                self.take_home(number, &to);
            }
        }
        Ok(())
    }
}

/// Whether the change is about this task.
fn would_change(place: &Place, task: &TaskRecord, change: BulkChange<'_>) -> bool {
    if !concerns(change, task.progress.state.kind()) {
        return false;
    }
    match change {
        BulkChange::Restart | BulkChange::Kill | BulkChange::Move(_) => true,
        BulkChange::Cancel => task.progress.cancelled().is_none(),
        BulkChange::Priority(priority) => task.progress.priority != priority,
        BulkChange::Delay(delay) => match task.progress.state {
            State::Ready => delay > Span::ZERO,
            _ => task.progress.state != State::HELD,
        },
        BulkChange::Redrive => {
            let origin = task.origin();
            origin.is_some_and(|origin| Place::Queue(origin.queue.clone()) != *place)
        }
    }
}

/// Whether a change is about tasks in this state.
fn concerns(change: BulkChange<'_>, state: StateKind) -> bool {
    let states: &[StateKind] = match change {
        BulkChange::Restart => &[Waiting, Buried, Zombie, Done],
        BulkChange::Cancel => &[Ready, Waiting, Taken, Buried],
        BulkChange::Kill => &StateKind::ALL,
        BulkChange::Redrive => &[Ready],
        BulkChange::Move(_) | BulkChange::Priority(_) => &[Ready, Waiting, Buried, Zombie, Done],
        BulkChange::Delay(_) => &[Ready, Waiting],
    };
    states.contains(&state)
}

fn filter_fits(filter: &Filter<'_>) -> Result<(), RefusalKind> {
    fits(filter.key.is_none_or(|key| key.len() <= NAME_BYTES_MAX))?;
    batch_name_fits(filter.batch)?;
    fits(filter.share.is_none_or(|share| share.len() <= SHARE_BYTES_MAX))?;
    fits(filter.reason.is_none_or(|pattern| pattern.len() <= PATTERN_BYTES_MAX))?;
    fits(filter.priorities.is_none_or(|(low, high)| low <= high))?;
    let Some((name, pattern)) = filter.header else { return Ok(()) };
    let is_of_name =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(byte);
    fits((1..=HEADER_NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_of_name))?;
    fits(pattern.len() <= PATTERN_BYTES_MAX)
}

/// Whether a text matches a pattern, tried sign by sign.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|from| matches(rest, &text[from..])),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
            text.first() == Some(byte) && matches(rest, &text[1..])
        }
    }
}
