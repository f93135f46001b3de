//! The commands and outputs of the engine as bytes.
//!
//! A [`Command`] goes to another shard in a letter, and its [`Output`]s come back in one. How each
//! type is written follows from its declaration, see [`pinpriq_derive::Letter`]: the number of the
//! variant, the fields that are always there, then a tag and a value for each other field that has
//! not its usual value, and the byte 0. Numbers are LEB128 in their shortest form, texts and lists
//! have their length before them. Tasks, settings and schedules are written as in the journal. So
//! each value has exactly one encoding, and a new command or a new field needs nothing here.
//!
//! ```
//! use pinpriq_proto::command::{Command, Put};
//! use pinpriq_proto::letters::{decode_command, encode_command};
//!
//! let mut letter = Vec::new();
//! let put = Command::Put(Put { priority: Some(5), ..Put::new(b"jobs", b"hello") });
//! encode_command(&put, &mut letter);
//! assert_eq!(letter, b"\x01\x04jobs\x05hello\x02\x01\x0a\0");
//! assert_eq!(decode_command(&letter, |command| *command == put), Ok(true));
//! ```
//!
//! Encoding cannot fail. Decoding is total: any bytes give a value or an error, never a panic, and
//! what is allocated is in proportion to the bytes that are there. A number or a tag that is not
//! known is refused with a sentence which says that a newer version wrote it. Whether two nodes
//! speak the same version at all is decided when they greet each other. This module knows nothing
//! about several commands in one letter, where a letter goes, or who may send it. It does not check
//! whether a command makes sense, since the engine does. Nothing here may be written to a disk.

mod arena;
#[cfg(test)]
mod tests;
mod values;

pub use self::arena::Arena;
#[cfg(test)]
pub use self::tests::Dice;
use crate::command::{Command, Step};
use crate::limits::TRANSACTION_STEPS_MAX;
use crate::records::primitives::{end, put_bytes, take_byte, take_bytes};
pub use crate::records::{Malformed, primitives};
use crate::reply::{Output, Reply};
pub use pinpriq_derive::Letter;

/// The tags from here on may be ignored by who does not know them.
const IGNORABLE_FROM: u8 = 128;

/// A value in a letter. That of most types follows from their declaration.
pub trait Letter<'a>: Sized {
    /// The most of these that a list may have.
    const MOST: usize = usize::MAX;

    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes what [`Letter::put`] appends.
    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed>;

    /// Appends it if it is known not to be the default of its type.
    #[inline]
    fn put_unusual(&self, out: &mut Vec<u8>) {
        self.put(out);
    }

    /// Takes what [`Letter::put_unusual`] appends.
    #[inline]
    fn take_unusual(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        Self::take(input, arena)
    }

    /// Returns any value.
    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self;
}

/// Appends a command.
///
/// # Panics
/// If the payload of a task that is put back was left in the store and not read back.
#[inline]
pub fn encode_command(command: &Command<'_>, out: &mut Vec<u8>) {
    command.put(out);
}

/// Decodes one command that fills `bytes` exactly, and calls `then` with it. Strings are borrowed
/// from `bytes`. Lists are in a buffer that lives as long as the call.
#[inline]
pub fn decode_command<R>(
    bytes: &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    let (arena, mut rest) = (Arena::default(), bytes);
    let command = Command::take(&mut rest, &arena)?;
    end(rest)?;
    check(&command)?;
    Ok(then(&command))
}

/// The steps of a transaction, encoded one by one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    bytes: Vec<u8>,
}

impl Steps {
    /// Adds a step.
    pub fn push(&mut self, step: &Step<'_>) {
        step.put(&mut self.bytes);
    }

    /// Calls `then` with a transaction of these steps.
    pub fn decode<R>(&self, then: impl FnOnce(&Command<'_>) -> R) -> Result<R, Malformed> {
        let (arena, mut rest) = (Arena::default(), &self.bytes[..]);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == TRANSACTION_STEPS_MAX {
                return Err(Malformed::OutOfRange("steps"));
            }
            steps.push(Step::take(&mut rest, &arena)?);
        }
        let command = Command::Transaction(&steps);
        check(&command)?;
        Ok(then(&command))
    }
}

/// Appends an output. Payloads that were left in the store must have been read back before: the
/// `away` of a task is not encoded.
///
/// # Panics
/// If a payload was left in the store and not read back.
pub fn encode_output(output: &Output, out: &mut Vec<u8>) {
    output.put(out);
}

/// Decodes one output that fills `bytes` exactly.
pub fn decode_output(bytes: &[u8]) -> Result<Output, Malformed> {
    let output = decode(bytes)?;
    match &output {
        Output::Reply { reply, .. } => check_reply(reply)?,
        Output::Delivery { .. } | Output::Notice(_) => {}
    }
    Ok(output)
}

/// Decodes one value that fills `bytes` exactly, and borrows nothing. Nothing within it is checked.
pub fn decode<T: for<'a> Letter<'a>>(bytes: &[u8]) -> Result<T, Malformed> {
    let (arena, mut rest) = (Arena::default(), bytes);
    let value = T::take(&mut rest, &arena)?;
    end(rest)?;
    Ok(value)
}

/// Refuses commands within others that the engine does not carry out there.
fn check(command: &Command<'_>) -> Result<(), Malformed> {
    let is_no_step = |step: &Step<'_>| matches!(step, Step::Command(it) if !it.is_step());
    match command {
        Command::Transaction(steps) if steps.iter().any(is_no_step) => {
            Err(Malformed::OutOfRange("step"))
        }
        Command::Within { command, .. } if !command.can_be_within() => {
            Err(Malformed::OutOfRange("command within names"))
        }
        _ => Ok(()),
    }
}

/// Refuses replies within others that the engine does not give there.
pub fn check_reply(reply: &Reply) -> Result<(), Malformed> {
    let is_no_step = |it: &Reply| matches!(it, Reply::Transaction(_) | Reply::Refused(_));
    match reply {
        Reply::Transaction(replies) if replies.iter().any(is_no_step) => {
            Err(Malformed::OutOfRange("reply of a step"))
        }
        _ => Ok(()),
    }
}

/// Appends a field with this tag, unless it has its usual value. A field that may be ignored has
/// its length before it, so that it can be passed over.
#[inline]
#[doc(hidden)]
pub fn put_tagged<T: PartialEq>(
    tag: u8,
    value: &T,
    usual: &T,
    out: &mut Vec<u8>,
    put: impl FnOnce(&T, &mut Vec<u8>),
) {
    if value == usual {
        return;
    }
    out.push(tag);
    if tag < IGNORABLE_FROM {
        return put(value, out);
    }
    let mut field = Vec::new();
    put(value, &mut field);
    put_bytes(out, &field);
}

/// Takes what [`put_tagged`] appends, if `tag`, the one that comes next, is that of the field.
#[inline]
#[doc(hidden)]
pub fn take_tagged<'a, T: PartialEq>(
    field: (u8, &'static str),
    tag: &mut u8,
    usual: T,
    input: &mut &'a [u8],
    take: impl FnOnce(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let (known, name) = field;
    if known >= IGNORABLE_FROM {
        pass_ignorable(tag, known, input)?;
    }
    if *tag != known {
        return Ok(usual);
    }
    let value = if known < IGNORABLE_FROM {
        take(input)?
    } else {
        let mut bytes = take_bytes(input)?;
        let value = take(&mut bytes)?;
        end(bytes)?;
        value
    };
    if value == usual {
        return Err(Malformed::OutOfRange(name));
    }
    *tag = take_byte(input)?;
    Ok(value)
}

/// Passes over fields that are not known and may be ignored, up to the one with the tag `known`.
fn pass_ignorable(tag: &mut u8, known: u8, input: &mut &[u8]) -> Result<(), Malformed> {
    while (IGNORABLE_FROM..known).contains(tag) {
        take_bytes(input)?;
        let next = take_byte(input)?;
        if next <= *tag && next != 0 {
            return Err(Malformed::OutOfRange("order of fields"));
        }
        *tag = next;
    }
    Ok(())
}

/// Refuses what follows the known fields of `what`, unless it may be ignored.
#[inline]
#[doc(hidden)]
pub fn end_fields(
    mut tag: u8,
    what: &'static str,
    known: &[u8],
    input: &mut &[u8],
) -> Result<(), Malformed> {
    if tag == 0 {
        return Ok(());
    }
    if known.contains(&tag) {
        return Err(Malformed::OutOfRange("order of fields"));
    }
    pass_ignorable(&mut tag, u8::MAX, input)?;
    if tag == 0 { Ok(()) } else { Err(Malformed::UnknownField { what, tag }) }
}
