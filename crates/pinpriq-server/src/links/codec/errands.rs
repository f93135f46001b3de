//! Errands: a byte for the kind, then its fields. Commands and questions fill the rest.
//!
//! What was not sent to a client travels as the two commands that put it back.

use pinpriq_proto::command::Command;
use pinpriq_proto::letters::primitives::{
    end, put_bytes, put_number, take_byte, take_bytes, take_flag, take_number, take_small,
};
use pinpriq_proto::letters::{Malformed, decode_command, encode_command};
use pinpriq_proto::task::{Receipt, TaskRecord};

use super::{pack, put_sized, take_count, take_sized, unpack};
use crate::clients::about::Manners;
use crate::clients::unsent::Unsent;
use crate::letters::letter::{Commands, Errand, Question};

const OPEN: u8 = 1;
const COMMANDS: u8 = 2;
const CREDIT: u8 = 3;
const ASK_COMMAND: u8 = 4;
const ASK_DELIVERED: u8 = 5;
const RESET: u8 = 6;
const END_WAITS: u8 = 7;
const END: u8 = 8;
const SENT: u8 = 9;
const CUT: u8 = 10;
const BACK: u8 = 11;
const ACCOUNT: u8 = 12;
const NO_ACCOUNT: u8 = 13;
const PERMIT: u8 = 14;
const ASIDE: u8 = 15;

/// Appends an errand.
///
/// # Panics
/// If it asks for payloads on a disk or has some, or asks about the shard on behalf of no client.
pub(crate) fn encode_errand(errand: &Errand, out: &mut Vec<u8>) {
    match errand {
        Errand::Open(manners) => {
            let Manners { tells_refusals, waits_for_room, groups_per_turn, requeues } = *manners;
            out.push(OPEN);
            out.push(pack([tells_refusals, waits_for_room, requeues]));
            put_number(out, groups_per_turn as u64);
        }
        Errand::Account(Some(account)) => {
            out.push(ACCOUNT);
            put_bytes(out, account);
        }
        Errand::Account(None) => out.push(NO_ACCOUNT),
        Errand::Commands(commands) => {
            out.push(COMMANDS);
            out.extend_from_slice(commands.encoded());
        }
        Errand::Credit(credits) => {
            out.push(CREDIT);
            put_number(out, u64::from(*credits));
        }
        Errand::Permit(total) => {
            out.push(PERMIT);
            put_number(out, *total);
        }
        Errand::Aside(command) => {
            out.push(ASIDE);
            out.extend_from_slice(command.encoded());
        }
        Errand::Ask(Question::Command(commands)) => {
            out.push(ASK_COMMAND);
            out.extend_from_slice(commands.encoded());
        }
        Errand::Ask(Question::Inquiry(_)) => {
            unreachable!("an inquiry goes to the shards of this node only")
        }
        Errand::Ask(Question::Delivered) => out.push(ASK_DELIVERED),
        Errand::Reset => out.push(RESET),
        Errand::EndWaits => out.push(END_WAITS),
        Errand::End { stopping, unsent } => {
            out.push(END);
            out.push(u8::from(*stopping));
            put_leases(out, unsent);
        }
        Errand::Read(_) => unreachable!("another node keeps no payloads on its disk"),
        Errand::Sent(outputs) => {
            out.push(SENT);
            put_number(out, *outputs as u64);
        }
        Errand::Cut { heard, unsent } => put_unsent(out, CUT, *heard, unsent),
        Errand::Back { outputs, unsent } => put_unsent(out, BACK, *outputs, unsent),
    }
}

/// Decodes one errand that fills `bytes` exactly.
pub(crate) fn decode_errand(bytes: &[u8]) -> Result<Errand, Malformed> {
    let mut rest = bytes;
    let input = &mut rest;
    let errand = match take_byte(input)? {
        OPEN => Errand::Open(take_manners(input)?),
        COMMANDS => return Ok(Errand::Commands(Commands::parse(input)?.0)),
        CREDIT => Errand::Credit(take_small(input, "credit")?),
        PERMIT => Errand::Permit(take_number(input)?),
        kind @ (ASK_COMMAND | ASIDE) => {
            // An answer is awaited, and there is one for one command.
            return match Commands::parse(input)? {
                (command, 1) if kind == ASIDE => Ok(Errand::Aside(command)),
                (command, 1) => Ok(Errand::Ask(Question::Command(command))),
                _ => Err(Malformed::OutOfRange("commands of a question")),
            };
        }
        ASK_DELIVERED => Errand::Ask(Question::Delivered),
        RESET => Errand::Reset,
        END_WAITS => Errand::EndWaits,
        END => Errand::End { stopping: take_flag(input, "stopping")?, unsent: take_leases(input)? },
        SENT => Errand::Sent(take_count(input, "outputs")?),
        CUT => Errand::Cut { heard: take_number(input)?, unsent: take_unsent(input)? },
        ACCOUNT => Errand::Account(Some(take_bytes(input)?.into())),
        NO_ACCOUNT => Errand::Account(None),
        BACK => Errand::Back { outputs: take_number(input)?, unsent: take_unsent(input)? },
        kind => return Err(Malformed::UnknownKind { what: "errand", kind }),
    };
    end(input)?;
    Ok(errand)
}

fn take_manners(input: &mut &[u8]) -> Result<Manners, Malformed> {
    let [tells_refusals, waits_for_room, requeues] = unpack(take_byte(input)?)?;
    let groups_per_turn = take_count(input, "groups")?;
    Ok(Manners { tells_refusals, waits_for_room, groups_per_turn, requeues })
}

fn put_unsent(out: &mut Vec<u8>, kind: u8, outputs: u64, unsent: &Unsent) {
    let Unsent { popped, popped_away, leases } = unsent;
    assert!(popped_away.is_empty(), "another node keeps no payloads on its disk");
    out.push(kind);
    put_number(out, outputs);
    put_sized(out, |out| encode_command(&Command::PutBack(popped), out));
    put_leases(out, leases);
}

fn take_unsent(input: &mut &[u8]) -> Result<Unsent, Malformed> {
    let popped: Option<Vec<TaskRecord>> =
        decode_command(take_sized(input)?, |command| match command {
            Command::PutBack(tasks) => Some(tasks.to_vec()),
            _ => None,
        })?;
    let popped = popped.ok_or(Malformed::OutOfRange("popped"))?;
    Ok(Unsent { popped, popped_away: Vec::new(), leases: take_leases(input)? })
}

fn put_leases(out: &mut Vec<u8>, leases: &[Receipt]) {
    put_sized(out, |out| encode_command(&Command::GiveBack(leases), out));
}

fn take_leases(input: &mut &[u8]) -> Result<Vec<Receipt>, Malformed> {
    let leases = decode_command(take_sized(input)?, |command| match command {
        Command::GiveBack(leases) => Some(leases.to_vec()),
        _ => None,
    })?;
    leases.ok_or(Malformed::OutOfRange("leases"))
}
