//! `pinpriq peek`, `get`, `await` and `stats`: looking at tasks without touching them.

use pinpriq_proto::wire::resp::{Value, Words};

use super::asking::{TaskField, ask_and, exit_of, print_map, print_tasks};
use super::change::task;
use crate::args::queues::StatsArgs;
use crate::args::tasks::{AwaitArgs, GetArgs, PeekArgs};
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
pub(crate) fn get(arguments: &GetArgs) -> Result<Exit, Failure> {
    ask_and(&arguments.task.client, &record_words(arguments), |printer, answer| {
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
    let words = Words::new("PEEK").name(&arguments.queue).option("COUNT", Some(arguments.count));
    arguments.given.after(words.flag("WITHMETA", arguments.client.json))
}

pub(super) fn record_words(arguments: &GetArgs) -> Words {
    arguments.given.after(task("GET", &arguments.task))
}

pub(super) fn await_words(arguments: &AwaitArgs) -> Words {
    let words = task("AWAIT", &arguments.task).option("WAIT", Some(arguments.wait_ms));
    arguments.given.after(words)
}

pub(super) fn stats_words(arguments: &StatsArgs) -> Words {
    let words = Words::new("STATS");
    let words = arguments.queue.iter().fold(words, |words, queue| words.name(queue));
    arguments.given.after(words)
}
