//! The commands on queues.

use std::fmt::Write as _;

use pinpriq_proto::command::{Command, QueueCommand, QueueName, Sides};

use super::call::{Call, Shape};
use super::looking::no_cursor;
use super::settings::changes;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::options::{COUNT, CURSOR, FOR, MEMBER, PREFIX};

type Done = Result<(), Fault>;

/// The number of names on a page of `QUEUE LIST`: by default, and at most.
const PAGE_NAMES: u64 = 100;
const PAGE_NAMES_MAX: u64 = 10_000;

pub(crate) fn create(call: &mut Call<'_, '_>) -> Done {
    let words = call.parts.words;
    let settings = changes(&words[1..], "queue create")?;
    ask(call, QueueCommand::Create { queue: words[0], settings: &settings })
}

pub(crate) fn set(call: &mut Call<'_, '_>) -> Done {
    let words = call.parts.words;
    let settings = changes(&words[1..], "queue set")?;
    let queue = call.parts.queue();
    ask(call, QueueCommand::Set { queue, settings: &settings })
}

pub(crate) fn show(call: &mut Call<'_, '_>) -> Done {
    let queue = call.parts.queue();
    ask(call, QueueCommand::Show(queue))
}

pub(crate) fn list(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let prefix = parts.option(PREFIX).unwrap_or_default();
    let count = page_names(parts.count(COUNT)?);
    let after = parts.option(CURSOR).map(name_at).transpose()?.flatten();
    let command = QueueCommand::List { prefix, after: after.as_deref(), count };
    call.ask(Shape::Page, &Command::Queue(command))
}

pub(crate) fn truncate(call: &mut Call<'_, '_>) -> Done {
    let queue = call.parts.queue();
    ask(call, QueueCommand::Truncate(queue))
}

pub(crate) fn drop_queue(call: &mut Call<'_, '_>) -> Done {
    let queue = call.parts.word(0);
    ask(call, QueueCommand::Drop(queue))
}

pub(crate) fn pause(call: &mut Call<'_, '_>) -> Done {
    let (queue, sides) = sides(call)?;
    let length = call.parts.span(FOR)?;
    ask(call, QueueCommand::Pause { queue, sides, length })
}

pub(crate) fn resume(call: &mut Call<'_, '_>) -> Done {
    let (queue, sides) = sides(call)?;
    ask(call, QueueCommand::Resume { queue, sides })
}

pub(crate) fn stats(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    if parts.words.is_empty() && parts.has(MEMBER) {
        return Err(Fault::bad("STATS of a lane names the topic first"));
    }
    let queue = (!parts.words.is_empty()).then(|| parts.queue());
    let shape = if queue.is_some() { Shape::QueueFigures } else { Shape::Plain };
    call.ask(shape, &Command::Queue(QueueCommand::Stats(queue)))
}

/// Returns the number of names on a page when this number is asked for.
pub(crate) fn page_names(asked: Option<u64>) -> usize {
    let count = asked.unwrap_or(PAGE_NAMES).min(PAGE_NAMES_MAX);
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns the cursor that continues after `name`.
pub(crate) fn cursor_after(name: &[u8]) -> String {
    let mut cursor = String::from("n");
    for byte in name {
        let _ = write!(cursor, "{byte:02x}");
    }
    cursor
}

/// Returns the name that a cursor stands for, or `None` for the start.
pub(crate) fn name_at(cursor: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    if cursor == b"0" {
        return Ok(None);
    }
    let name = cursor.strip_prefix(b"n").and_then(bytes_of_digits);
    name.map(Some).ok_or_else(|| no_cursor(cursor))
}

/// Returns the bytes that these hexadecimal digits stand for.
pub(super) fn bytes_of_digits(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.chunks_exact(2);
    let is_whole = pairs.remainder().is_empty();
    let bytes = pairs.map(|pair| Some(digit(pair[0])? * 16 + digit(pair[1])?));
    bytes.collect::<Option<Vec<u8>>>().filter(|_| is_whole)
}

fn ask(call: &mut Call<'_, '_>, command: QueueCommand<'_>) -> Done {
    call.ask(Shape::Plain, &Command::Queue(command))
}

fn sides<'a>(call: &Call<'_, 'a>) -> Result<(QueueName<'a>, Sides), Fault> {
    let parts = call.parts;
    let sides = match parts.words.get(1).copied() {
        None => Sides::Both,
        Some(side) if side.eq_ignore_ascii_case(b"IN") => Sides::Input,
        Some(side) if side.eq_ignore_ascii_case(b"OUT") => Sides::Output,
        Some(side) => {
            return Err(Fault::bad(format!("a side is IN or OUT, not {}", shown(side))));
        }
    };
    Ok((parts.queue(), sides))
}
