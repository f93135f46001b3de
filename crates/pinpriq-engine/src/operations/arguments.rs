//! Checks of arguments. They come before all other checks.
//!
//! Each check returns a refusal that names the value and its bound. Checks that need a queue or a
//! task are in the commands themselves.

use crate::command::{
    Ack, Command, Done, Fail, QueueCommand, QueueName, Release, Reserve, Share, Take,
};
use crate::export::{Export, Import};
use crate::fanout::MemberCommand;
use crate::limits::{ID_BYTES_MAX, NAME_BYTES_MAX, REASON_BYTES_MAX};
use crate::looking::{Leases, Scan};
use crate::reply::{Refusal, RefusalKind};
use crate::schedule::ScheduleCommand;
use crate::time::{Span, Timestamp};

/// Formats a name or an id for a sentence: printable, and truncated.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    if bytes.len() <= SHOWN_BYTES_MAX {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    format!("\"{}…\" ({} bytes)", bytes[..SHOWN_BYTES_MAX].escape_ascii(), bytes.len())
}

pub(crate) fn bad(sentence: String) -> Refusal {
    Refusal::new(RefusalKind::BadArgument, sentence)
}

fn check_names_of_share(share: &Share<'_>) -> Result<(), Refusal> {
    match share {
        Share::Look { done, take } => check_names_of_done(done, take),
        Share::Wait { take, .. } => check_names_of(take.queues, take.member),
        Share::Pop(_) => Ok(()),
    }
}

#[inline(never)]
fn check_names_of_done(done: &[Done<'_>], take: &Take<'_>) -> Result<(), Refusal> {
    take.member.map_or(Ok(()), check_member)?;
    let mut queues = done.iter().map(|done| done.queue).chain(take.queues.iter().copied());
    queues.try_for_each(|queue| check_name("queue name", queue))
}

/// Checks the names of queues anywhere in a step of a transaction, or in what is kept within names.
#[inline(never)]
pub(crate) fn check_names_of_part(command: &Command<'_>) -> Result<(), Refusal> {
    check_names(command)
}

/// Checks the names of queues anywhere in a command.
#[inline(always)]
#[expect(clippy::inline_always, reason = "every command passes here, mostly with one name")]
pub(crate) fn check_names(command: &Command<'_>) -> Result<(), Refusal> {
    match command {
        Command::Put(put) => check_name("queue name", put.queue),
        Command::Take(take) => check_names_of(take.queues, take.member),
        Command::Ack(Ack { held, .. }) => check_queue_name(held.queue),
        other => check_other_names(other),
    }
}

#[inline(never)]
#[expect(clippy::too_many_lines, reason = "one arm for each command")]
fn check_other_names(command: &Command<'_>) -> Result<(), Refusal> {
    let queue: QueueName<'_> = match command {
        Command::Put(put) | Command::PutInLine { put, .. } => put.queue.into(),
        Command::PutBuried { put, .. } | Command::PutNumbered(put) => put.queue.into(),
        Command::Reserve(Reserve { queues, .. }) | Command::Head(queues) => {
            return check_names_of(queues, None);
        }
        Command::TakeDone { done, take } => return check_names_of_done(done, take),
        Command::Share(share) => return check_names_of_share(share),
        Command::Take(Take { queues, member, .. })
        | Command::Subscribe { queues, member, .. }
        | Command::Unsubscribe { queues, member } => return check_names_of(queues, *member),
        Command::Peek(peek) => peek.queue,
        Command::Leases(Leases { queue: Some(queue), .. })
        | Command::Scan(Scan { queue, .. })
        | Command::Explain { queue, .. }
        | Command::Get { queue, .. }
        | Command::AckAll { queue, .. }
        | Command::Plow { queue, .. }
        | Command::Kill { queue, .. }
        | Command::Redrive { queue, .. }
        | Command::Await { queue, .. } => *queue,
        Command::Ack(Ack { held, .. })
        | Command::Release(Release { held, .. })
        | Command::Bury { held, .. }
        | Command::Fail(Fail { held, .. })
        | Command::Touch { held, .. } => held.queue,
        Command::Dig(transfer)
        | Command::Switch { transfer, .. }
        | Command::Snatch(transfer)
        | Command::Restart(transfer) => transfer.queue,
        Command::Update(update) => update.queue,
        Command::Move { from, to, .. } => {
            check_name("queue name", to)?;
            *from
        }
        Command::Queue(command) => match command {
            QueueCommand::Create { queue, .. }
            | QueueCommand::Hold { queue, .. }
            | QueueCommand::Drop(queue) => (*queue).into(),
            QueueCommand::Set { queue, .. }
            | QueueCommand::Show(queue)
            | QueueCommand::Truncate(queue)
            | QueueCommand::Pause { queue, .. }
            | QueueCommand::Resume { queue, .. }
            | QueueCommand::Stats(Some(queue)) => *queue,
            QueueCommand::List { .. } | QueueCommand::Stats(None) => return Ok(()),
        },
        Command::Publish(publish) => return check_name("topic", publish.topic),
        Command::Member(command) => return check_names_of_member(command),
        Command::Export(Export { queue, .. })
        | Command::Kick { queue, .. }
        | Command::Foremost { queue, .. }
        | Command::Tubes(Some(queue)) => (*queue).into(),
        Command::Import(import) => {
            if let Import::Schedule(schedule) = import {
                check_name("name of a schedule", &schedule.name)?;
            }
            import.queue().into()
        }
        Command::Schedule(command) => return check_names_of_schedule(command),
        // Each part is checked when its turn comes.
        Command::Transaction(_)
        | Command::Within { .. }
        | Command::Numbered { .. }
        | Command::Tubes(None)
        | Command::LetGo
        | Command::Credit(_)
        | Command::PutBack(_)
        | Command::GiveBack(_)
        | Command::Leases(Leases { queue: None, .. }) => return Ok(()),
    };
    check_queue_name(queue)
}

fn check_names_of_member(command: &MemberCommand<'_>) -> Result<(), Refusal> {
    match command {
        MemberCommand::Join { topic, member, .. } | MemberCommand::LeaveTopic { topic, member } => {
            check_queue_name(QueueName { name: topic, member: Some(member) })
        }
        MemberCommand::Beat { member, .. } | MemberCommand::Leave(member) => check_member(member),
        MemberCommand::List(topic) => check_name("topic", topic),
    }
}

#[inline]
fn check_queue_name(queue: QueueName<'_>) -> Result<(), Refusal> {
    queue.member.map_or(Ok(()), check_member)?;
    let what = if queue.member.is_some() { "topic" } else { "queue name" };
    check_name(what, queue.name)
}

#[inline]
fn check_names_of(queues: &[&[u8]], member: Option<&[u8]>) -> Result<(), Refusal> {
    member.map_or(Ok(()), check_member)?;
    queues.iter().try_for_each(|queue| check_name("queue name", queue))
}

#[inline(never)]
fn check_names_of_schedule(command: &ScheduleCommand<'_>) -> Result<(), Refusal> {
    let name = match command {
        ScheduleCommand::Set(new) => {
            check_name("queue name", new.queue)?;
            new.name
        }
        ScheduleCommand::Show(name)
        | ScheduleCommand::Pause(name)
        | ScheduleCommand::Resume(name)
        | ScheduleCommand::Drop(name)
        | ScheduleCommand::Fire(name) => name,
        ScheduleCommand::List { .. } => return Ok(()),
    };
    check_name("name of a schedule", name)
}

fn check_member(member: &[u8]) -> Result<(), Refusal> {
    check_name("member", member)
}

#[inline]
pub(crate) fn check_name(what: &str, name: &[u8]) -> Result<(), Refusal> {
    if name.len() > NAME_BYTES_MAX { Err(too_long(what, name.len())) } else { Ok(()) }
}

#[cold]
fn too_long(what: &str, length: usize) -> Refusal {
    bad(format!("a {what} has at most {NAME_BYTES_MAX} bytes, and this one has {length}"))
}

pub(crate) fn check_key(key: Option<&[u8]>) -> Result<(), Refusal> {
    match key {
        Some(key) if key.len() > NAME_BYTES_MAX => Err(bad(format!(
            "a key has at most {NAME_BYTES_MAX} bytes, and this one has {}",
            key.len()
        ))),
        _ => Ok(()),
    }
}

pub(crate) fn check_id(id: &[u8]) -> Result<(), Refusal> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        let length = id.len();
        return Err(bad(format!("an id has 1 to {ID_BYTES_MAX} bytes, and this one has {length}")));
    }
    Ok(())
}

pub(crate) fn check_reason(reason: Option<&[u8]>) -> Result<(), Refusal> {
    match reason {
        Some(reason) if reason.len() > REASON_BYTES_MAX => Err(bad(format!(
            "a reason has at most {REASON_BYTES_MAX} bytes, and this one has {}",
            reason.len()
        ))),
        _ => Ok(()),
    }
}

pub(crate) fn check_count(count: u64) -> Result<(), Refusal> {
    if count == 0 { Err(bad("the count must be at least 1".to_owned())) } else { Ok(()) }
}

#[inline]
pub(crate) fn check_positive(what: &str, span: Option<Span>) -> Result<(), Refusal> {
    if span == Some(Span::ZERO) { Err(not_positive(what)) } else { Ok(()) }
}

#[cold]
fn not_positive(what: &str) -> Refusal {
    bad(format!("{what} must be at least 1 ms"))
}

/// Returns the moment `span` after `start`, if it is before the year 10000.
#[inline]
pub(crate) fn later(what: &str, start: Timestamp, span: Span) -> Result<Timestamp, Refusal> {
    let ms = start.ms().saturating_add(span.ms());
    if ms > Timestamp::MAX.ms() {
        return Err(too_late(what, span));
    }
    Ok(Timestamp::from_ms(ms))
}

#[cold]
fn too_late(what: &str, span: Span) -> Refusal {
    bad(format!("{what} of {span} ends after the year 9999"))
}
