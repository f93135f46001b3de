//! Commands that keep within names: a list of names, then the command as bytes.

use crate::command::Command;
use crate::limits::WITHIN_NAMES_MAX;
use crate::names::NamePattern;
use crate::records::primitives::{end, put_bytes, take_byte, take_bytes};

use super::carrying::take_import;
use super::kinds::{IMPORT_SCHEDULE, WITHIN};
use super::take_without_list;
use crate::letters::Malformed;
use crate::letters::list::{List, put_list, take_list};

const EXACT: u8 = 0;
const PREFIX: u8 = 1;

pub(super) fn encode(names: &[NamePattern<'_>], command: &Command<'_>, out: &mut Vec<u8>) {
    out.push(WITHIN);
    put_list(out, names, |out, pattern| {
        out.push(if pattern.is_prefix { PREFIX } else { EXACT });
        put_bytes(out, pattern.bytes);
    });
    super::encode(command, out);
}

pub(super) fn take<R>(
    input: &mut &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    let names: List<NamePattern<'_>> = take_list(input, NamePattern::exactly(&[]), take_pattern)?;
    if names.len() > WITHIN_NAMES_MAX {
        return Err(Malformed::OutOfRange("names"));
    }
    // Commands with lists of their own are not kept within names, nor are other such commands.
    let kind = take_byte(input)?;
    if kind == IMPORT_SCHEDULE {
        return take_import(kind, input, |command| {
            then(&Command::Within { names: &names, command })
        });
    }
    let command = take_without_list(kind, input)?;
    end(input)?;
    if !command.can_be_within() {
        return Err(Malformed::OutOfRange("command within names"));
    }
    Ok(then(&Command::Within { names: &names, command: &command }))
}

fn take_pattern<'a>(input: &mut &'a [u8]) -> Result<NamePattern<'a>, Malformed> {
    let is_prefix = match take_byte(input)? {
        EXACT => false,
        PREFIX => true,
        _ => return Err(Malformed::OutOfRange("prefix")),
    };
    Ok(NamePattern { bytes: take_bytes(input)?, is_prefix })
}
