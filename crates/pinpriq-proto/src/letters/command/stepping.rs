//! Transactions: each step is a byte for its kind, then its sentence or its command as bytes.

use crate::command::{Command, QueueName, Step};
use crate::limits::TRANSACTION_STEPS_MAX;
use crate::records::primitives::{end, put_bytes, take_byte, take_bytes};
use crate::task::Receipt;

use super::kinds::{ACK, ACK_ALL, KILL, PUT, TRANSACTION};
use super::parts::take_queue_first;
use super::{holding, putting, take_names, take_receipts, take_without_list};
use crate::letters::Malformed;
use crate::letters::list::{List, put_list, take_vec};

const NOTHING: u8 = 0;
const BAD: u8 = 1;
const COMMAND: u8 = 2;

/// A step as its bytes.
#[derive(Clone, Copy)]
enum Written<'a> {
    Nothing,
    Bad(&'a str),
    Command(&'a [u8]),
}

/// A step with the list that its command borrows.
enum Held<'a> {
    Whole(Step<'a>),
    Acks(QueueName<'a>, List<Receipt>),
    Kill(QueueName<'a>, List<&'a [u8]>),
}

pub(super) fn encode(steps: &[Step<'_>], out: &mut Vec<u8>) {
    out.push(TRANSACTION);
    put_list(out, steps, put_step);
}

pub(crate) fn put_step(out: &mut Vec<u8>, step: &Step<'_>) {
    match step {
        Step::Nothing => out.push(NOTHING),
        Step::Bad(sentence) => {
            out.push(BAD);
            put_bytes(out, sentence.as_bytes());
        }
        Step::Command(command) => {
            let mut bytes = Vec::new();
            super::encode(command, &mut bytes);
            out.push(COMMAND);
            put_bytes(out, &bytes);
        }
    }
}

/// Takes steps up to the end of the bytes.
pub(crate) fn take_all<R>(
    bytes: &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    let mut rest = bytes;
    let mut written = Vec::new();
    while !rest.is_empty() {
        written.push(take_written(&mut rest)?);
    }
    with_steps(written, then)
}

pub(super) fn take<R>(
    input: &mut &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    let written = take_vec(input, take_written)?;
    end(input)?;
    with_steps(written, then)
}

fn with_steps<R>(
    written: Vec<Written<'_>>,
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    if written.len() > TRANSACTION_STEPS_MAX {
        return Err(Malformed::OutOfRange("steps"));
    }
    let held: Vec<Held<'_>> = written.into_iter().map(hold).collect::<Result<_, _>>()?;
    let steps: Vec<Step<'_>> = held.iter().map(Held::step).collect();
    Ok(then(&Command::Transaction(&steps)))
}

fn take_written<'a>(input: &mut &'a [u8]) -> Result<Written<'a>, Malformed> {
    Ok(match take_byte(input)? {
        NOTHING => Written::Nothing,
        BAD => {
            let sentence = std::str::from_utf8(take_bytes(input)?);
            Written::Bad(sentence.map_err(|_| Malformed::OutOfRange("sentence"))?)
        }
        COMMAND => Written::Command(take_bytes(input)?),
        kind => return Err(Malformed::UnknownKind { what: "step", kind }),
    })
}

fn hold(written: Written<'_>) -> Result<Held<'_>, Malformed> {
    let mut rest = match written {
        Written::Nothing => return Ok(Held::Whole(Step::Nothing)),
        Written::Bad(sentence) => return Ok(Held::Whole(Step::Bad(sentence))),
        Written::Command(bytes) => bytes,
    };
    let input = &mut rest;
    let held = match take_byte(input)? {
        PUT => Held::Whole(Step::Command(Command::Put(putting::take_put(input)?))),
        ACK => Held::Whole(Step::Command(Command::Ack(holding::take_ack(input)?))),
        ACK_ALL => Held::Acks(take_queue_first(input)?, take_receipts(input)?),
        KILL => Held::Kill(take_queue_first(input)?, take_names(input)?),
        // Commands with other lists are no steps, nor is a transaction.
        kind => Held::Whole(Step::Command(take_without_list(kind, input)?)),
    };
    end(input)?;
    match held {
        Held::Whole(Step::Command(command)) if !command.is_step() => {
            Err(Malformed::OutOfRange("step"))
        }
        held => Ok(held),
    }
}

impl Held<'_> {
    fn step(&self) -> Step<'_> {
        match self {
            Self::Whole(step) => *step,
            Self::Acks(queue, receipts) => {
                Step::Command(Command::AckAll { queue: *queue, receipts })
            }
            Self::Kill(queue, ids) => Step::Command(Command::Kill { queue: *queue, ids }),
        }
    }
}
