//! `pinpriq queue`: what is done with queues as a whole.

use pinpriq_proto::wire::resp::Words;

use super::asking::{ask, ask_and, order, print_map};
use super::change::lane;
use super::names;
use crate::args::queues::{
    LaneNameArgs, NameArgs, PauseArgs, QueueCommand, SetArgs, SettingsArgs, SideArgs,
};
use crate::exit::{Exit, Failure};
use crate::words::OsWords as _;

/// The command that lists names.
const LIST: &str = "QUEUE LIST";

/// Runs one of the commands.
pub(crate) fn queue(command: &QueueCommand) -> Result<Exit, Failure> {
    let words = words(command);
    match command {
        QueueCommand::Create(SettingsArgs { client, .. })
        | QueueCommand::Set(SetArgs { settings: SettingsArgs { client, .. }, .. })
        | QueueCommand::Pause(PauseArgs { sides: SideArgs { client, .. }, .. })
        | QueueCommand::Resume(SideArgs { client, .. }) => order(client, &words),
        QueueCommand::Truncate(LaneNameArgs { name: NameArgs { client, .. }, .. })
        | QueueCommand::Drop(NameArgs { client, .. }) => ask(client, &words, "count"),
        QueueCommand::Show(LaneNameArgs { name: NameArgs { client, .. }, .. }) => {
            ask_and(client, &words, |printer, answer| print_map(printer, &answer))
        }
        QueueCommand::List(arguments) => names::print(LIST, arguments, "queue"),
    }
}

/// What is sent first.
pub(super) fn words(command: &QueueCommand) -> Words {
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
        QueueCommand::List(arguments) => names::words(LIST, arguments, b"0"),
        QueueCommand::Truncate(it) => lane(named("QUEUE TRUNCATE", &it.name), &it.lane),
        QueueCommand::Drop(arguments) => named("QUEUE DROP", arguments),
        QueueCommand::Pause(it) => sided("QUEUE PAUSE", &it.sides).option("FOR", it.for_ms),
        QueueCommand::Resume(arguments) => sided("QUEUE RESUME", arguments),
    }
}

fn settings(command: &str, arguments: &SettingsArgs) -> Words {
    let words = Words::new(command).name(&arguments.queue);
    let given = &arguments.given.0;
    given.iter().fold(words, |words, (name, value)| words.bytes(name).bytes(value))
}
