//! `pinpriq peek`, `get`, `await` and `stats`: looking at tasks without touching them.

use pinpriq_proto::wire::resp::{Value, Words};

use super::asking::{TaskField, ask_and, exit_of, print_map, print_tasks};
use super::change::lane;
use crate::args::queues::StatsArgs;
use crate::args::tasks::{AwaitArgs, IdArgs, PeekArgs, SelectionArgs};
use crate::exit::{Exit, Failure};
use crate::printer::shown;
use crate::resp::unexpected;
use crate::words::OsWords as _;

/// Prints tasks.
pub(crate) fn peek(arguments: &PeekArgs) -> Result<Exit, Failure> {
    ask_and(&arguments.client, &peek_words(arguments), |printer, answer| {
        print_tasks(printer, &answer, &[TaskField::Id, TaskField::Payload])
    })
}

/// Prints all of one task.
pub(crate) fn get(arguments: &IdArgs) -> Result<Exit, Failure> {
    ask_and(&arguments.client, &record_words(arguments), |printer, answer| {
        print_map(printer, &answer)
    })
}

/// Waits for the end of a task.
pub(crate) fn await_task(arguments: &AwaitArgs) -> Result<Exit, Failure> {
    ask_and(&arguments.task.client, &await_words(arguments), |printer, answer| match &answer {
        Value::Array(parts) if let [outcome, state] = parts.as_slice() => {
            printer.fields(&[shown("outcome", outcome), shown("state", state)])?;
            exit_of(outcome)
        }
        _ => Err(unexpected()),
    })
}

/// Prints figures.
pub(crate) fn stats(arguments: &StatsArgs) -> Result<Exit, Failure> {
    ask_and(&arguments.client, &stats_words(arguments), |printer, answer| {
        print_map(printer, &answer)
    })
}

pub(super) fn peek_words(arguments: &PeekArgs) -> Words {
    let words = Words::new("PEEK").name(&arguments.queue);
    let words = selection(words, arguments.selection)
        .option("STATE", arguments.state)
        .option("COUNT", Some(arguments.count))
        .flag("WITHMETA", arguments.client.json);
    lane(words, &arguments.lane)
}

pub(super) fn record_words(arguments: &IdArgs) -> Words {
    lane(Words::new("GET").name(&arguments.queue).name(&arguments.id), &arguments.lane)
}

pub(super) fn await_words(arguments: &AwaitArgs) -> Words {
    let AwaitArgs { task, wait_ms } = arguments;
    let words = Words::new("AWAIT").name(&task.queue).name(&task.id);
    lane(words.option("WAIT", Some(wait_ms)), &task.lane)
}

pub(super) fn stats_words(arguments: &StatsArgs) -> Words {
    let words = Words::new("STATS");
    match &arguments.queue {
        Some(queue) => words.name(queue).named("MEMBER", arguments.member.as_deref()),
        None => words,
    }
}

/// Adds which tasks are meant.
pub(super) fn selection(words: Words, selection: SelectionArgs) -> Words {
    words.option("FROM", selection.from).option("ORDER", selection.order)
}
