//! `pinpriq schedule`: what puts tasks into queues again and again.

use std::ffi::OsStr;

use pinpriq_proto::wire::resp::Words;

use super::asking::{ask, ask_and, order, print_map};
use super::names;
use super::sending::payload;
use crate::args::schedules::{ScheduleCommand, SetArgs};
use crate::exit::{Exit, Failure};
use crate::words::OsWords as _;

/// The command that lists names.
const LIST: &str = "SCHEDULE LIST";

/// Runs one of the commands.
pub(crate) fn schedule(command: &ScheduleCommand) -> Result<Exit, Failure> {
    let payload = match command {
        ScheduleCommand::Set(it) => payload(it.payload.as_deref())?,
        _ => Vec::new(),
    };
    let words = words(command, &payload);
    match command {
        ScheduleCommand::Set(it) => ask(&it.client, &words, "next_at"),
        ScheduleCommand::Show(it) => {
            ask_and(&it.client, &words, |printer, answer| print_map(printer, &answer))
        }
        ScheduleCommand::List(it) => names::print(LIST, it, "schedule"),
        ScheduleCommand::Pause(it) | ScheduleCommand::Resume(it) => order(&it.client, &words),
        ScheduleCommand::Drop(it) => ask(&it.client, &words, "count"),
        ScheduleCommand::Fire(it) => ask(&it.client, &words, "id"),
    }
}

/// What is sent first. The payload is that of `set`.
pub(super) fn words(command: &ScheduleCommand, payload: &[u8]) -> Words {
    let named = |command: &str, name: &OsStr| Words::new(command).name(name);
    match command {
        ScheduleCommand::Set(it) => set_words(it, payload),
        ScheduleCommand::Show(it) => named("SCHEDULE SHOW", &it.name),
        ScheduleCommand::List(it) => names::words(LIST, it, b"0"),
        ScheduleCommand::Pause(it) => named("SCHEDULE PAUSE", &it.name),
        ScheduleCommand::Resume(it) => named("SCHEDULE RESUME", &it.name),
        ScheduleCommand::Drop(it) => named("SCHEDULE DROP", &it.name),
        ScheduleCommand::Fire(it) => named("SCHEDULE FIRE", &it.name),
    }
}

fn set_words(arguments: &SetArgs, payload: &[u8]) -> Words {
    let words = Words::new("SCHEDULE SET").name(&arguments.name).name(&arguments.queue);
    arguments.given.after(words.bytes(payload))
}
