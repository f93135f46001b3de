//! `pinpriq queue`: what is done with queues as a whole.

use pinpriq_wire::resp::{Value, Words};

use super::asking::{ask, ask_and, order, print_map};
use super::change::lane;
use crate::args::queues::{
    LaneNameArgs, ListArgs, NameArgs, QueueCommand, SetArgs, SettingsArgs, SideArgs,
};
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, shown};
use crate::resp::{Client, unexpected};
use crate::words::OsWords as _;

/// How many names are asked for at a time.
const PAGE_NAMES: u64 = 1_000;

/// Runs one of the commands.
pub(crate) fn queue(command: &QueueCommand) -> Result<Exit, Failure> {
    let words = words(command, b"0");
    match command {
        QueueCommand::Create(SettingsArgs { client, .. })
        | QueueCommand::Set(SetArgs { settings: SettingsArgs { client, .. }, .. })
        | QueueCommand::Pause(SideArgs { client, .. })
        | QueueCommand::Resume(SideArgs { client, .. }) => order(client, &words),
        QueueCommand::Truncate(LaneNameArgs { name: NameArgs { client, .. }, .. })
        | QueueCommand::Drop(NameArgs { client, .. }) => ask(client, &words, "count"),
        QueueCommand::Show(LaneNameArgs { name: NameArgs { client, .. }, .. }) => {
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
        let side = arguments.side.iter();
        let words = side.fold(words, |words, side| words.bytes(side.to_string()));
        lane(words, &arguments.lane)
    };
    match command {
        QueueCommand::Create(arguments) => settings("QUEUE CREATE", arguments),
        QueueCommand::Set(it) => lane(settings("QUEUE SET", &it.settings), &it.lane),
        QueueCommand::Show(it) => lane(named("QUEUE SHOW", &it.name), &it.lane),
        QueueCommand::List(arguments) => list_words(arguments, cursor),
        QueueCommand::Truncate(it) => lane(named("QUEUE TRUNCATE", &it.name), &it.lane),
        QueueCommand::Drop(arguments) => named("QUEUE DROP", arguments),
        QueueCommand::Pause(arguments) => sided("QUEUE PAUSE", arguments),
        QueueCommand::Resume(arguments) => sided("QUEUE RESUME", arguments),
    }
}

fn settings(command: &str, arguments: &SettingsArgs) -> Words {
    let words = Words::new(command).name(&arguments.queue);
    let given = &arguments.given.0;
    given.iter().fold(words, |words, (name, value)| words.bytes(name).bytes(value))
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
