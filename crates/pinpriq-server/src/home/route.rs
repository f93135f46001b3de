//! Where a command is carried out, when there are several shards.
//!
//! The queues of one command must live in one shard, except for those of takes, which
//! `home::desk::choosing` asks of each shard, and of subscriptions, which `home::desk::dealing`
//! makes in each. A command that concerns all queues is asked everywhere.

use pinpriq_proto::batches::decode_names;
use pinpriq_proto::command::{Done, Step};
use pinpriq_proto::facts::Destination;
use pinpriq_proto::named_limits::used;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::request::fault::shown;

use crate::sharding::Sharding;

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
    let mut names = steps.iter().flat_map(names_of_step);
    let Some(first) = names.next() else { return Ok(None) };
    one_shard_of(first, names, sharding).map(Some)
}

/// Returns the queue or topic that a step names, if it names one, and the batches.
pub(super) fn names_of_step<'c>(step: &Step<'c>) -> impl Iterator<Item = &'c [u8]> {
    let destination = match step {
        Step::Command(command) => Some(command.destination()),
        _ => None,
    };
    let (name, batch, after) = match destination {
        Some(Destination::Queue(queue)) => (Some(queue), None, &b""[..]),
        Some(Destination::Bonds { queue, batch, after }) => (Some(queue), batch, after),
        _ => (None, None, &b""[..]),
    };
    name.into_iter().chain(batch).chain(decode_names(after))
}

/// Returns the shard where a queue lives, with these batches.
pub(super) fn shard_of_bonds<'b>(
    queue: &[u8],
    mut batches: impl Iterator<Item = &'b [u8]>,
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = sharding.shard_of(queue);
    match batches.find(|batch| sharding.shard_of(batch) != to) {
        None => Ok(to),
        Some(batch) => Err(across(format!(
            "the batch {} and the queue {} would live in different shards: give their names a \
             common part in braces, such as {{a}}",
            shown(batch),
            shown(queue)
        ))),
    }
}

/// Returns the shard where both of these queues live: one that tasks leave for the other.
pub(super) fn shard_of_pair(
    one: &[u8],
    other: &[u8],
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = sharding.shard_of(one);
    if sharding.shard_of(other) == to {
        return Ok(to);
    }
    Err(across(format!(
        "the queues {} and {} live in different shards, and tasks can move only within one: give \
         their names a common part in braces, such as {{a}} and {{a}}-dead",
        shown(one),
        shown(other)
    )))
}

/// Returns the shard where a queue lives, with the one for its dead letters and the limits that it
/// uses.
pub(super) fn shard_of_uses(
    queue: &[u8],
    dead_letters: Option<&[u8]>,
    uses: &[u8],
    sharding: Sharding,
) -> Result<usize, Refusal> {
    let to = shard_of_pair(queue, dead_letters.unwrap_or(queue), sharding)?;
    match used(uses).find(|limit| sharding.shard_of(limit) != to) {
        None => Ok(to),
        Some(limit) => Err(across(format!(
            "the limit {} and the queue {} would live in different shards: give their names a \
             common part in braces, such as {{a}}",
            shown(limit),
            shown(queue)
        ))),
    }
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

/// Returns the refusal of what concerns all shards, while this one has no owner.
pub(super) fn ownerless(shard: usize) -> Refusal {
    let sentence = format!("shard {shard} has no owner at the moment: send it again");
    Refusal::new(RefusalKind::TryAgain, sentence)
}

fn across(sentence: String) -> Refusal {
    Refusal::new(RefusalKind::CrossShard, sentence)
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::command::{Command, QueueCommand, QueueName};
    use pinpriq_proto::facts::Joining;
    use pinpriq_proto::looking::Leases;

    use super::*;

    const JOBS: QueueName<'_> = QueueName { name: b"jobs", member: None };

    #[test]
    fn command_within_names_goes_where_it_would_go_alone() {
        let redrive = Command::Redrive { queue: JOBS, count: 1 };
        let leases = Command::Leases(Leases { queue: None, after: None, count: 7 });
        let destination = |command| Command::Within { names: &[], command }.destination();
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
            let destination = Command::Within { names: &[], command }.destination();
            assert!(matches!(destination, Destination::Steps));
        }
    }
}
