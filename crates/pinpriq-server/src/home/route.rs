//! Where a command is carried out, when there are several shards.
//!
//! The queues of one command must live in one shard, except for those of takes, which
//! `home::desk::choosing` asks of each shard. So must all subscriptions of one client, since
//! its credits are for all of them. A command that concerns all queues is asked everywhere.

use pinpriq_engine::command::{Command, Done, QueueCommand, Reserve, Share, Step, Wait};
use pinpriq_engine::export::Import;
use pinpriq_engine::fanout::MemberCommand;
use pinpriq_engine::reply::{Refusal, RefusalKind};
use pinpriq_engine::schedule::ScheduleCommand;
use pinpriq_engine::settings::{Assignment, DEADLETTER, Value};

use super::joins::Joining;
use crate::sharding::Sharding;

/// Where a command belongs.
#[derive(Clone, Copy)]
pub(super) enum Destination<'c> {
    /// Where this queue or topic lives.
    Queue(&'c [u8]),
    /// Where these queues or topics live, if that is one shard.
    Queues(&'c [&'c [u8]]),
    /// Where both of these queues live, if that is one shard.
    Pair(&'c [u8], &'c [u8]),
    /// Where this schedule and its queue live, if that is one shard.
    Schedule(&'c [u8], &'c [u8]),
    /// Where these tasks and these queues live, if that is one shard.
    Done(&'c [Done<'c>], &'c [&'c [u8]]),
    /// Where the queues of these steps live, if that is one shard.
    Steps(&'c [Step<'c>]),
    /// Where the client has its subscriptions and credits.
    Deliveries,
    /// Everywhere. The replies are joined in this way.
    Everywhere(Joining),
}

impl<'c> Destination<'c> {
    /// Returns the destination of a command.
    pub(super) fn of(command: &Command<'c>) -> Self {
        match *command {
            Command::Put(put) | Command::PutInLine { put, .. } => Self::Queue(put.queue),
            Command::PutBuried { put, .. } | Command::PutNumbered(put) => Self::Queue(put.queue),
            Command::Reserve(Reserve { queues, .. }) | Command::Head(queues) => {
                Self::Queues(queues)
            }
            Command::Numbered { .. } => Self::Everywhere(Joining::Found),
            Command::Kick { queue, .. }
            | Command::Foremost { queue, .. }
            | Command::Tubes(Some(queue)) => Self::Queue(queue),
            Command::Tubes(None) => Self::Everywhere(Joining::Tubes),
            Command::LetGo => Self::Everywhere(Joining::Membership),
            Command::Share(Share::Look { take, .. } | Share::Wait { take, .. })
            | Command::Take(take) => Self::Queues(take.queues),
            Command::TakeDone { done, take } => Self::Done(done, take.queues),
            Command::Peek(peek) => Self::Queue(peek.queue.name),
            Command::Scan(scan) => Self::Queue(scan.queue.name),
            Command::Export(export) => Self::Queue(export.queue),
            Command::Import(import) => Self::of_import(import),
            Command::Leases(leases) => match leases.queue {
                Some(queue) => Self::Queue(queue.name),
                None => Self::Everywhere(Joining::Leases(leases.count)),
            },
            Command::Explain { queue, .. }
            | Command::Get { queue, .. }
            | Command::AckAll { queue, .. }
            | Command::Plow { queue, .. }
            | Command::Kill { queue, .. }
            | Command::Redrive { queue, .. }
            | Command::Await { queue, .. } => Self::Queue(queue.name),
            Command::Ack(ack) => Self::Queue(ack.held.queue.name),
            Command::Release(release) => Self::Queue(release.held.queue.name),
            Command::Bury { held, .. } | Command::Touch { held, .. } => {
                Self::Queue(held.queue.name)
            }
            Command::Dig(transfer)
            | Command::Switch { transfer, .. }
            | Command::Snatch(transfer)
            | Command::Restart(transfer) => Self::Queue(transfer.queue.name),
            Command::Update(update) => Self::Queue(update.queue.name),
            Command::Fail(fail) => Self::Queue(fail.held.queue.name),
            Command::Move { from, to, .. } => Self::Pair(from.name, to),
            Command::Subscribe { queues, .. } | Command::Unsubscribe { queues, .. }
                if !queues.is_empty() =>
            {
                Self::Queues(queues)
            }
            Command::Subscribe { .. }
            | Command::Unsubscribe { .. }
            | Command::Credit(_)
            | Command::PutBack(_)
            | Command::Share(Share::Pop(_))
            | Command::GiveBack(_) => Self::Deliveries,
            Command::Queue(command) => Self::of_queue(command),
            Command::Schedule(command) => Self::of_schedule(command),
            Command::Publish(publish) => Self::Queue(publish.topic),
            Command::Transaction(steps) => Self::Steps(steps),
            Command::Within { command, .. } if command.can_be_within() => Self::of(command),
            // The engine refuses it, and it must not be in a letter.
            Command::Within { .. } => Self::Steps(&[]),
            Command::Member(command) => match command {
                MemberCommand::Join { topic, .. }
                | MemberCommand::LeaveTopic { topic, .. }
                | MemberCommand::List(topic) => Self::Queue(topic),
                MemberCommand::Beat { .. } | MemberCommand::Leave(_) => {
                    Self::Everywhere(Joining::Membership)
                }
            },
        }
    }

    /// The name of a schedule decides its shard. So that it is known where it is, and that a slot
    /// and its task are one batch, its queue must live there too.
    const fn of_schedule(command: ScheduleCommand<'c>) -> Self {
        match command {
            ScheduleCommand::Set(new) => Self::Schedule(new.name, new.queue),
            ScheduleCommand::Show(name)
            | ScheduleCommand::Pause(name)
            | ScheduleCommand::Resume(name)
            | ScheduleCommand::Drop(name)
            | ScheduleCommand::Fire(name) => Self::Queue(name),
            ScheduleCommand::List { count, .. } => Self::Everywhere(Joining::Names(count)),
        }
    }

    /// What is imported lives where it would if it had been made here.
    fn of_import(import: Import<'c>) -> Self {
        match import {
            Import::Queue { queue, settings: Some(settings), .. } => {
                Self::of_settings(queue, settings)
            }
            Import::Schedule(schedule) => Self::Schedule(&schedule.name, &schedule.plan.queue),
            import => Self::Queue(import.queue()),
        }
    }

    /// A queue lives in the same shard as the queue for its dead letters.
    fn of_settings(queue: &'c [u8], settings: &[Assignment<'c>]) -> Self {
        let dead_letters = settings.iter().find(|(setting, _)| *setting == DEADLETTER);
        match dead_letters {
            Some((_, Value::Bytes(dead_letters))) => Self::Pair(queue, dead_letters),
            _ => Self::Queue(queue),
        }
    }

    fn of_queue(command: QueueCommand<'c>) -> Self {
        match command {
            QueueCommand::Create { queue, settings } => Self::of_settings(queue, settings),
            QueueCommand::Set { queue, settings } => Self::of_settings(queue.name, settings),
            QueueCommand::Drop(queue) | QueueCommand::Hold { queue, .. } => Self::Queue(queue),
            QueueCommand::Show(queue)
            | QueueCommand::Truncate(queue)
            | QueueCommand::Pause { queue, .. }
            | QueueCommand::Resume { queue, .. }
            | QueueCommand::Stats(Some(queue)) => Self::Queue(queue.name),
            QueueCommand::List { count, .. } => Self::Everywhere(Joining::Names(count)),
            QueueCommand::Stats(None) => Self::Everywhere(Joining::Figures),
        }
    }
}

/// Whether the reply may take long, so that the client has to wait for it.
pub(super) fn may_block(command: &Command<'_>) -> bool {
    match command {
        Command::Put(put) => put.wait.is_some_and(Wait::blocks),
        Command::PutInLine { put, room } => !room.is_zero() || put.wait.is_some_and(Wait::blocks),
        Command::Take(take)
        | Command::TakeDone { take, .. }
        | Command::Share(Share::Wait { take, .. }) => take.wait.blocks(),
        Command::Reserve(reserve) => reserve.wait.blocks(),
        Command::Await { wait, .. } => wait.blocks(),
        _ => false,
    }
}

/// Returns the shard where all these queues live.
pub(super) fn shard_of_all(queues: &[&[u8]], sharding: Sharding) -> Result<usize, Refusal> {
    let Some((first, others)) = queues.split_first() else { return Ok(0) };
    one_shard_of(first, others.iter().copied(), sharding)
}

/// Returns the shard where all these tasks and queues live.
pub(super) fn shard_of_done(
    done: &[Done<'_>],
    queues: &[&[u8]],
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = shard_of_all(queues, sharding)?;
    match queues.first() {
        Some(first) => one_shard_of(first, done.iter().map(|done| done.queue), sharding),
        None => Ok(to),
    }
}

/// Returns the shard where the queues of all these steps live, or
/// none if they name no queue.
pub(super) fn shard_of_steps(
    steps: &[Step<'_>],
    sharding: Sharding,
) -> Result<Option<usize>, Refusal> {
    let mut queues = steps.iter().filter_map(queue_of_step);
    let Some(first) = queues.next() else { return Ok(None) };
    one_shard_of(first, queues, sharding).map(Some)
}

/// Returns the queue or topic that a step names, if it names one.
pub(super) fn queue_of_step<'c>(step: &Step<'c>) -> Option<&'c [u8]> {
    let Step::Command(command) = step else { return None };
    match Destination::of(command) {
        Destination::Queue(queue) => Some(queue),
        _ => None,
    }
}

/// Returns the shard where both of these queues live: one that tasks leave for the other.
pub(super) fn shard_of_pair(
    one: &[u8],
    other: &[u8],
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = sharding.shard_of(one);
    if sharding.shard_of(other) == to || planted!(DeadLettersElsewhere) {
        return Ok(to);
    }
    Err(across(format!(
        "the queues {} and {} live in different shards, and tasks can move only within one: give \
         their names a common part in braces, such as {{a}} and {{a}}-dead",
        shown(one),
        shown(other)
    )))
}

fn one_shard_of<'q>(
    first: &[u8],
    mut others: impl Iterator<Item = &'q [u8]>,
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = sharding.shard_of(first);
    match others.find(|other| sharding.shard_of(other) != to) {
        None => Ok(to),
        Some(other) => Err(across(format!(
            "the queues {} and {} live in different shards, and one request is about those of \
             one: give their names a common part in braces, such as {{a}}, or ask twice",
            shown(first),
            shown(other)
        ))),
    }
}

/// Returns the shard where a schedule and its queue live.
pub(super) fn shard_of_schedule(
    name: &[u8],
    queue: &[u8],
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = sharding.shard_of(name);
    if sharding.shard_of(queue) == to {
        return Ok(to);
    }
    Err(across(format!(
        "the schedule {} and its queue {} would live in different shards: give their names a \
         common part in braces, such as {{a}}",
        shown(name),
        shown(queue)
    )))
}

/// Returns the refusal of a subscription to queues that live in another shard than those before.
pub(super) fn elsewhere(queue: &[u8]) -> Refusal {
    across(format!(
        "{} lives in another shard than the queues to which this connection has subscribed: use \
         another connection for it, or give their names a common part in braces, such as {{a}}; \
         RESET makes the connection free",
        shown(queue)
    ))
}

/// Returns the refusal of what concerns all shards, while this one has no owner.
pub(super) fn ownerless(shard: usize) -> Refusal {
    let sentence = format!("shard {shard} has no owner at the moment: send it again");
    Refusal::new(RefusalKind::TryAgain, sentence)
}

fn across(sentence: String) -> Refusal {
    Refusal::new(RefusalKind::CrossShard, sentence)
}

/// Returns a client's word as part of a sentence: printable, and cut short.
pub(crate) fn shown(word: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    let cut = if word.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    format!("'{}{cut}'", word[..word.len().min(SHOWN_BYTES_MAX)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use pinpriq_engine::command::QueueName;
    use pinpriq_engine::looking::Leases;

    use super::*;

    const JOBS: QueueName<'_> = QueueName { name: b"jobs", member: None };

    #[test]
    fn command_within_names_goes_where_it_would_go_alone() {
        let redrive = Command::Redrive { queue: JOBS, count: 1 };
        let leases = Command::Leases(Leases { queue: None, after: None, count: 7 });
        let destination = |command| Destination::of(&Command::Within { names: &[], command });
        assert!(matches!(destination(&redrive), Destination::Queue(b"jobs")));
        let everywhere = Destination::Everywhere(Joining::Leases(7));
        assert!(matches!(
            (destination(&leases), everywhere),
            (Destination::Everywhere(one), Destination::Everywhere(other)) if one == other
        ));
    }

    #[test]
    fn command_that_cannot_be_within_names_is_never_in_a_letter() {
        let drop = Command::Queue(QueueCommand::Drop(b"jobs"));
        let stats = Command::Queue(QueueCommand::Stats(None));
        let within = Command::Within { names: &[], command: &stats };
        for command in [&drop, &within] {
            let destination = Destination::of(&Command::Within { names: &[], command });
            assert!(matches!(destination, Destination::Steps([])));
        }
    }
}
