//! Checks of arguments. They come before all other checks.
//!
//! Each check returns a refusal that names the value and its bound. Checks that need a queue or a
//! task are in the commands themselves.

use pinpriq_proto::command::{Command, QueueName, Take};
use pinpriq_proto::facts::{check_name, check_queue};
use pinpriq_proto::limits::{ID_BYTES_MAX, REASON_BYTES_MAX};
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::task::COST_USUAL;
use pinpriq_proto::time::{Span, Timestamp};

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

/// Checks the names of queues anywhere in a command.
#[inline(always)]
#[expect(clippy::inline_always, reason = "every command passes here, mostly with one name")]
pub(crate) fn check_names(command: &Command<'_>) -> Result<(), Refusal> {
    match command {
        Command::Put(put) => check_name("queue name", put.queue),
        Command::Take(Take { queues: [name], member, .. }) => {
            check_queue(QueueName { name, member: *member })
        }
        Command::Ack(ack) => check_queue(ack.held.queue),
        other => check_other_names(other),
    }
}

#[inline(never)]
fn check_other_names(command: &Command<'_>) -> Result<(), Refusal> {
    command.check_names()
}

pub(crate) fn check_id(id: &[u8]) -> Result<(), Refusal> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        let length = id.len();
        return Err(bad(format!("an id has 1 to {ID_BYTES_MAX} bytes, and this one has {length}")));
    }
    Ok(())
}

pub(crate) fn check_reason(reason: Option<&[u8]>) -> Result<(), Refusal> {
    check_text("a reason", REASON_BYTES_MAX, reason)
}

/// Refuses a text for people that is longer than `most` bytes.
pub(crate) fn check_text(what: &str, most: usize, text: Option<&[u8]>) -> Result<(), Refusal> {
    match text {
        Some(text) if text.len() > most => {
            Err(bad(format!("{what} has at most {most} bytes, and this one has {}", text.len())))
        }
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

/// Refuses a cost above `most`, and none at all.
pub(crate) fn check_cost_below(most: u64, cost: u32) -> Result<(), Refusal> {
    if cost < COST_USUAL {
        return Err(bad("the cost must be at least 1".to_owned()));
    }
    if u64::from(cost) <= most {
        return Ok(());
    }
    Err(bad(format!("a task of this queue costs at most {most} (COSTMAX), and this one {cost}")))
}
