//! Putting tasks on behalf of a share, whatever share their put names.

use super::{Command, Put, Step};
use crate::change::ScheduleRecord;
use crate::export::Import;
use crate::letters::Arena;
use crate::schedule::{Plan, ScheduleCommand};
use crate::task::{GivenTerms, TaskRecord, Terms};

impl<'a> Command<'a> {
    /// Returns this command with this share for all tasks that it puts, also later and with its
    /// steps. The arena holds what it borrows.
    #[must_use]
    pub fn on_behalf_of<'s>(&self, share: &'s [u8], arena: &'s Arena) -> Command<'s>
    where
        'a: 's,
    {
        let terms = |terms: GivenTerms<'s>| terms.with(Some(share), terms.cost());
        let kept = |terms: &Terms| terms.clone().with(Some(share.into()), terms.cost());
        let put_of = |put: Put<'s>| Put { terms: terms(put.terms), ..put };
        match *self {
            Command::Put(put) => Command::Put(put_of(put)),
            Command::PutInLine { put, room } => {
                Command::PutInLine { put: arena.hold(put_of(*put)), room }
            }
            Command::PutBuried { put, reason } => {
                Command::PutBuried { put: arena.hold(put_of(*put)), reason }
            }
            Command::PutNumbered(put) => Command::PutNumbered(arena.hold(put_of(*put))),
            Command::Publish(mut publish) => {
                publish.terms = terms(publish.terms);
                Command::Publish(publish)
            }
            Command::Schedule(ScheduleCommand::Set(mut new)) => {
                new.terms = terms(new.terms);
                Command::Schedule(ScheduleCommand::Set(new))
            }
            Command::Import(Import::Task { task, until }) => {
                let task = TaskRecord { terms: kept(&task.terms), ..task.clone() };
                Command::Import(Import::Task { task: arena.keep(task), until })
            }
            Command::Import(Import::Schedule(schedule)) => {
                let plan = Plan { terms: kept(&schedule.plan.terms), ..schedule.plan.clone() };
                let schedule = ScheduleRecord { plan, ..schedule.clone() };
                Command::Import(Import::Schedule(arena.keep(schedule)))
            }
            Command::Transaction(steps) => {
                let steps = steps.iter().map(|step| match step {
                    Step::Command(command) => Step::Command(command.on_behalf_of(share, arena)),
                    other => *other,
                });
                Command::Transaction(arena.hold_all(steps))
            }
            Command::Within { names, command } => {
                let command = arena.hold(command.on_behalf_of(share, arena));
                Command::Within { names, command }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::letters::{Dice, Letter as _, encode_command};
    use crate::rights::{Need, Right};
    use crate::task::headers;

    fn letter(command: &Command<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_command(command, &mut bytes);
        bytes
    }

    /// Whether a command needs the right to put, and not for tasks that are there already, nor for
    /// dead letters or batches.
    fn puts(command: &Command<'_>) -> bool {
        match command {
            Command::Move { .. }
            | Command::Bulk(_)
            | Command::Queue(_)
            | Command::Batch(_)
            | Command::Import(Import::Queue { .. }) => false,
            Command::Within { command, .. } => puts(command),
            Command::Transaction(steps) => {
                steps.iter().any(|step| matches!(step, Step::Command(command) if puts(command)))
            }
            _ => {
                let mut puts = false;
                command.each_need(&mut |need| puts |= matches!(need, Need::On(Right::Put, _)));
                puts
            }
        }
    }

    #[test]
    fn all_else_about_the_task_stays() {
        let headers = headers::encode([(&b"trace"[..], &b"00-ab"[..])]);
        let terms = Terms::of(Some(&b"k"[..]), None).with(None, 3).with_headers(Some(&headers));
        let arena = Arena::default();
        let put = Command::Put(Put { terms, ..Put::new(b"q", b"p") }).on_behalf_of(b"ours", &arena);
        let Command::Put(put) = put else { panic!("{put:?} is no put") };
        assert_eq!(put.terms, terms.with(Some(b"ours"), 3));
        assert_eq!(put.terms.headers(), terms.headers());
    }

    #[test]
    fn whatever_puts_tasks_has_the_share() {
        let (mut dice, mut count) = (Dice::new(38), 0);
        for _ in 0..6_000 {
            let command = Command::sample(&mut dice);
            let arena = Arena::default();
            let ours = command.on_behalf_of(b"ours", &arena);
            let again = ours.on_behalf_of(b"ours", &arena);
            assert_eq!(letter(&ours), letter(&again), "{command:?}");
            if puts(&command) {
                count += 1;
                assert_ne!(letter(&ours), letter(&command), "{command:?}");
            }
        }
        assert!(count > 500, "{count} of them put");
    }
}
