//! Commands that administer a queue.

use crate::command::{Command, QueueCommand, QueueName, Sides};
use crate::records::primitives::{
    end, put_bytes, put_if, put_number, put_span, take_bytes, take_if, take_number, take_span,
};
use crate::time::Span;

use super::kinds::{
    QUEUE_CREATE, QUEUE_DROP, QUEUE_HOLD, QUEUE_LIST, QUEUE_PAUSE, QUEUE_RESUME, QUEUE_SET,
    QUEUE_SHOW, QUEUE_STATS, QUEUE_TRUNCATE,
};
use super::parts::{begin_in, pack_queue, put_queue, take_queue, take_queue_first};
use crate::letters::Malformed;
use crate::letters::flags::{Packed, Packing};
use crate::letters::settings::{put_changes, take_changes};

pub(super) fn encode(command: &QueueCommand<'_>, out: &mut Vec<u8>) {
    let mut flags = Packed::default();
    match command {
        QueueCommand::Create { queue, settings } => {
            out.push(QUEUE_CREATE);
            put_bytes(out, queue);
            put_changes(out, settings);
        }
        QueueCommand::Set { queue, settings } => {
            begin_in(out, QUEUE_SET, queue);
            put_changes(out, settings);
        }
        QueueCommand::Show(queue) => begin_in(out, QUEUE_SHOW, queue),
        QueueCommand::List { prefix, after, count } => {
            out.push(QUEUE_LIST);
            flags.flag(after.is_some());
            flags.put(out);
            put_bytes(out, prefix);
            put_if(out, *after, put_bytes);
            put_number(out, *count as u64);
        }
        QueueCommand::Truncate(queue) => begin_in(out, QUEUE_TRUNCATE, queue),
        QueueCommand::Drop(queue) => {
            out.push(QUEUE_DROP);
            put_bytes(out, queue);
        }
        QueueCommand::Pause { queue, sides, length } => {
            put_sides(out, QUEUE_PAUSE, queue, (*sides, *length));
        }
        QueueCommand::Hold { queue, length, makes } => {
            out.push(QUEUE_HOLD);
            flags.flag(length.is_some());
            flags.flag(*makes);
            flags.put(out);
            put_bytes(out, queue);
            put_if(out, *length, put_span);
        }
        QueueCommand::Resume { queue, sides } => {
            put_sides(out, QUEUE_RESUME, queue, (*sides, None));
        }
        QueueCommand::Stats(queue) => {
            out.push(QUEUE_STATS);
            flags.flag(queue.is_some());
            flags.flag(queue.is_some_and(|queue| queue.member.is_some()));
            flags.put(out);
            put_if(out, queue.as_ref(), put_queue);
        }
    }
}

fn put_sides(
    out: &mut Vec<u8>,
    kind: u8,
    queue: &QueueName<'_>,
    (sides, length): (Sides, Option<Span>),
) {
    out.push(kind);
    let mut flags = Packed::default();
    pack_queue(&mut flags, queue);
    flags.code(
        2,
        match sides {
            Sides::Input => 0,
            Sides::Output => 1,
            Sides::Both => 2,
        },
    );
    flags.flag(length.is_some());
    flags.put(out);
    put_queue(out, queue);
    put_if(out, length, put_span);
}

/// Takes the rest of a command that changes settings, after its kind, and calls `then` with the
/// command.
#[inline(never)]
pub(super) fn take_changing<R>(
    kind: u8,
    input: &mut &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    let queue = if kind == QUEUE_CREATE {
        QueueName::from(take_bytes(input)?)
    } else {
        take_queue_first(input)?
    };
    let changes = take_changes(input)?;
    end(input)?;
    let (name, settings) = (queue.name, &*changes);
    Ok(then(&Command::Queue(if kind == QUEUE_CREATE {
        QueueCommand::Create { queue: name, settings }
    } else {
        QueueCommand::Set { queue, settings }
    })))
}

/// Takes the rest of any other of these commands, after its kind.
pub(super) fn take<'a>(kind: u8, input: &mut &'a [u8]) -> Result<QueueCommand<'a>, Malformed> {
    let unknown = Malformed::UnknownKind { what: "command", kind };
    if kind == QUEUE_DROP {
        return take_bytes(input).map(QueueCommand::Drop);
    }
    if !(QUEUE_SHOW..=QUEUE_STATS).contains(&kind) && kind != QUEUE_HOLD {
        return Err(unknown);
    }
    let mut flags = Packing::take(input)?;
    Ok(match kind {
        QUEUE_SHOW => QueueCommand::Show(take_queue_alone(flags, input)?),
        QUEUE_LIST => {
            let has_after = flags.flag();
            flags.end()?;
            QueueCommand::List {
                prefix: take_bytes(input)?,
                after: take_if(has_after, input, take_bytes)?,
                count: usize::try_from(take_number(input)?)
                    .map_err(|_| Malformed::OutOfRange("count"))?,
            }
        }
        QUEUE_TRUNCATE => QueueCommand::Truncate(take_queue_alone(flags, input)?),
        QUEUE_PAUSE => {
            let (queue, sides, length) = take_sides(flags, input)?;
            QueueCommand::Pause { queue, sides, length }
        }
        QUEUE_RESUME => match take_sides(flags, input)? {
            (queue, sides, None) => QueueCommand::Resume { queue, sides },
            _ => return Err(Malformed::OutOfRange("flags")),
        },
        QUEUE_HOLD => {
            let (is_long, makes) = (flags.flag(), flags.flag());
            flags.end()?;
            let (queue, length) = (take_bytes(input)?, take_if(is_long, input, take_span)?);
            QueueCommand::Hold { queue, length, makes }
        }
        QUEUE_STATS => {
            let (is_there, is_lane) = (flags.flag(), flags.flag());
            flags.end()?;
            if is_lane && !is_there {
                return Err(Malformed::OutOfRange("flags"));
            }
            QueueCommand::Stats(take_if(is_there, input, |input| take_queue(is_lane, input))?)
        }
        _ => return Err(unknown),
    })
}

fn take_queue_alone<'a>(
    mut flags: Packing,
    input: &mut &'a [u8],
) -> Result<QueueName<'a>, Malformed> {
    let is_lane = flags.flag();
    flags.end()?;
    take_queue(is_lane, input)
}

fn take_sides<'a>(
    mut flags: Packing,
    input: &mut &'a [u8],
) -> Result<(QueueName<'a>, Sides, Option<Span>), Malformed> {
    let is_lane = flags.flag();
    let sides = match flags.code(2) {
        0 => Sides::Input,
        1 => Sides::Output,
        2 => Sides::Both,
        _ => return Err(Malformed::OutOfRange("sides")),
    };
    let has_length = flags.flag();
    flags.end()?;
    Ok((take_queue(is_lane, input)?, sides, take_if(has_length, input, take_span)?))
}
