//! `pinpriq queue`: what is done with queues as a whole.

use pinpriq_proto::wire::resp::Words;

use super::asking::{ask, ask_and, order, print_map};
use super::names;
use crate::args::queues::{
    NameArgs, PauseArgs, QueueCommand, ResumeArgs, SetArgs, SettingsArgs, ShowArgs, SideArgs,
    TruncateArgs,
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
        | QueueCommand::Resume(ResumeArgs { sides: SideArgs { client, .. }, .. }) => {
            order(client, &words)
        }
        QueueCommand::Truncate(TruncateArgs { name: NameArgs { client, .. }, .. })
        | QueueCommand::Drop(NameArgs { client, .. }) => ask(client, &words, "count"),
        QueueCommand::Show(ShowArgs { name: NameArgs { client, .. }, .. }) => {
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
        side.fold(words, |words, side| words.bytes(side.to_string()))
    };
    match command {
        QueueCommand::Create(arguments) => settings("QUEUE CREATE", arguments),
        QueueCommand::Set(it) => it.given.after(settings("QUEUE SET", &it.settings)),
        QueueCommand::Show(it) => it.given.after(named("QUEUE SHOW", &it.name)),
        QueueCommand::List(arguments) => names::words(LIST, arguments, b"0"),
        QueueCommand::Truncate(it) => it.given.after(named("QUEUE TRUNCATE", &it.name)),
        QueueCommand::Drop(arguments) => named("QUEUE DROP", arguments),
        QueueCommand::Pause(it) => it.given.after(sided("QUEUE PAUSE", &it.sides)),
        QueueCommand::Resume(it) => it.given.after(sided("QUEUE RESUME", &it.sides)),
    }
}

fn settings(command: &str, arguments: &SettingsArgs) -> Words {
    let words = Words::new(command).name(&arguments.queue);
    let given = &arguments.given.0;
    given.iter().fold(words, |words, (name, value)| words.bytes(name).bytes(value))
}
