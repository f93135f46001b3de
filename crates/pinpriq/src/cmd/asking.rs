//! The common part of most commands over RESP: ask one thing, and print the reply.

use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::given::Other;
use crate::args::tasks::ClientArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, StdoutPrinter, hidden, shown};
use crate::resp::{Client, unexpected};

/// Asks, and lets `print` print the reply.
pub(super) fn ask_and(
    client: &ClientArgs,
    words: &Words,
    print: impl FnOnce(&mut StdoutPrinter, Value) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let answer = Client::open(&client.endpoint()?)?.call(words)?;
    let mut printer = Printer::to_stdout(client.json);
    let exit = print(&mut printer, answer)?;
    printer.flush()?;
    Ok(exit)
}

/// Asks, and prints the reply under this name.
pub(super) fn ask(client: &ClientArgs, words: &Words, name: &str) -> Result<Exit, Failure> {
    ask_and(client, words, |printer, answer| {
        printer.fields(&[shown(name, &answer)])?;
        Ok(Exit::Done)
    })
}

/// Asks for something whose success prints nothing for people.
pub(super) fn order(client: &ClientArgs, words: &Words) -> Result<Exit, Failure> {
    ask_and(client, words, |printer, _| {
        printer.fields(&[hidden("ok", &Value::Boolean(true))])?;
        Ok(Exit::Done)
    })
}

/// Asks, and prints whatever comes: a map, a line for each part of a list, or one value.
pub(super) fn print_any(arguments: &Other) -> Result<Exit, Failure> {
    ask_and(&arguments.client, &arguments.words, |printer, answer| match &answer {
        Value::Null | Value::Map(_) => print_map(printer, &answer),
        Value::Array(values) => {
            for value in values {
                let wanted = match value {
                    Value::Map(_) => printer.map(value)?,
                    _ => printer.fields(&[shown("reply", value)])?,
                };
                if wanted == Wanted::NoMore {
                    break;
                }
            }
            Ok(if values.is_empty() { Exit::NothingThere } else { Exit::Done })
        }
        _ => printer.fields(&[shown("reply", &answer)]).map(|_| Exit::Done),
    })
}

/// Prints a map, or nothing if the reply is null.
pub(super) fn print_map(printer: &mut StdoutPrinter, answer: &Value) -> Result<Exit, Failure> {
    match answer {
        Value::Null => Ok(Exit::NothingThere),
        Value::Map(_) => printer.map(answer).map(|_| Exit::Done),
        _ => Err(unexpected()),
    }
}

/// Prints tasks: as maps if they came as maps, and otherwise the requested fields.
pub(super) fn print_tasks(
    printer: &mut StdoutPrinter,
    answer: &Value,
    names: &[TaskField],
) -> Result<Exit, Failure> {
    let Value::Array(tasks) = answer else { return Err(unexpected()) };
    for task in tasks {
        let wanted = match task {
            Value::Map(_) => printer.map(task)?,
            Value::Array(parts) => {
                let fields: Option<Vec<_>> = names.iter().map(|field| field.of(parts)).collect();
                printer.fields(&fields.ok_or_else(unexpected)?)?
            }
            _ => return Err(unexpected()),
        };
        if wanted == Wanted::NoMore {
            break;
        }
    }
    Ok(if tasks.is_empty() { Exit::NothingThere } else { Exit::Done })
}

/// Returns how a command ends that waited for a task with this outcome.
pub(super) fn exit_of(outcome: &Value) -> Result<Exit, Failure> {
    match outcome.as_bytes() {
        Some(b"acked") => Ok(Exit::Done),
        Some(b"buried") => Ok(Exit::Buried),
        Some(b"expired") => Ok(Exit::Expired),
        Some(b"killed") => Ok(Exit::Killed),
        Some(b"timeout") => Ok(Exit::TimedOut),
        Some(b"dead") => Ok(Exit::Dead),
        Some(b"evicted") => Ok(Exit::Evicted),
        Some(b"moved") => Ok(Exit::Moved),
        _ => Err(unexpected()),
    }
}

/// A part of a task that is sent without its metadata.
#[derive(Clone, Copy, Debug)]
pub(super) enum TaskField {
    Queue,
    Id,
    Receipt,
    Payload,
}

impl TaskField {
    fn of(self, parts: &[Value]) -> Option<crate::printer::Field<'_>> {
        let (name, place) = match self {
            Self::Queue => ("queue", 0),
            Self::Id => ("id", 1),
            Self::Receipt => ("receipt", 2),
            Self::Payload => ("payload", 3),
        };
        parts.get(place).map(|value| shown(name, value))
    }
}
