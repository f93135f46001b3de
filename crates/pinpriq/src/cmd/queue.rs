//! `pinpriq queue`: what is done with queues as a whole.

use pinpriq_wire::resp::Value;

use super::asking::{ask, ask_and, order, print_map};
use crate::args::queues::{ListArgs, NameArgs, QueueCommand, SettingsArgs, SideArgs};
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, shown};
use crate::resp::{Client, unexpected};
use crate::words::Words;

/// How many names are asked for at a time.
const PAGE_NAMES: u64 = 1_000;

/// Runs one of the commands.
pub(crate) fn queue(command: &QueueCommand) -> Result<Exit, Failure> {
    let words = words(command, b"0");
    match command {
        QueueCommand::Create(SettingsArgs { client, .. })
        | QueueCommand::Set(SettingsArgs { client, .. })
        | QueueCommand::Pause(SideArgs { client, .. })
        | QueueCommand::Resume(SideArgs { client, .. }) => order(client, &words),
        QueueCommand::Truncate(NameArgs { client, .. })
        | QueueCommand::Drop(NameArgs { client, .. }) => ask(client, &words, "count"),
        QueueCommand::Show(NameArgs { client, .. }) => {
            ask_and(client, &words, |printer, answer| print_map(printer, &answer))
        }
        QueueCommand::List(arguments) => list(arguments, words),
    }
}

/// What is sent; the page of a list is the one at `cursor`.
pub(super) fn words(command: &QueueCommand, cursor: &[u8]) -> Words {
    let named = |command: &str, arguments: &NameArgs| Words::new(command).name(&arguments.queue);
    let sided = |command: &str, arguments: &SideArgs| {
        let words = Words::new(command).name(&arguments.queue);
        arguments.side.iter().fold(words, |words, side| words.bytes(side.to_string()))
    };
    match command {
        QueueCommand::Create(arguments) => settings("QUEUE CREATE", arguments),
        QueueCommand::Set(arguments) => settings("QUEUE SET", arguments),
        QueueCommand::Show(arguments) => named("QUEUE SHOW", arguments),
        QueueCommand::List(arguments) => list_words(arguments, cursor),
        QueueCommand::Truncate(arguments) => named("QUEUE TRUNCATE", arguments),
        QueueCommand::Drop(arguments) => named("QUEUE DROP", arguments),
        QueueCommand::Pause(arguments) => sided("QUEUE PAUSE", arguments),
        QueueCommand::Resume(arguments) => sided("QUEUE RESUME", arguments),
    }
}

fn settings(command: &str, arguments: &SettingsArgs) -> Words {
    Words::new(command)
        .name(&arguments.queue)
        .option("IDS", arguments.ids)
        .option("TTL", arguments.ttl_ms)
        .option("TTR", arguments.ttr_ms)
        .option("AFTERACK", arguments.after_ack)
        .option("ZOMBIE", arguments.zombie_ms)
        .option("CAPACITY", arguments.capacity)
}

fn list_words(arguments: &ListArgs, cursor: &[u8]) -> Words {
    Words::new("QUEUE LIST")
        .named("PREFIX", arguments.prefix.as_deref())
        .option("COUNT", Some(PAGE_NAMES))
        .bytes("CURSOR")
        .bytes(cursor)
}

/// Prints all names, page by page.
fn list(arguments: &ListArgs, mut words: Words) -> Result<Exit, Failure> {
    let mut client = Client::open(&arguments.client.address)?;
    let mut printer = Printer::to_stdout(arguments.client.json);
    loop {
        let Value::Array(parts) = client.call(&words)? else { return Err(unexpected()) };
        let [cursor, Value::Array(names)] = parts.as_slice() else { return Err(unexpected()) };
        for name in names {
            if printer.fields(&[shown("queue", name)])? == Wanted::NoMore {
                return Ok(Exit::Done);
            }
        }
        let cursor = cursor.as_bytes().unwrap_or(b"0");
        if printer.flush()? == Wanted::NoMore || cursor == b"0" {
            return Ok(Exit::Done);
        }
        words = list_words(arguments, cursor);
    }
}
