//! Commands that ask the server, and print what it replies.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use pinpriq_proto::wire::resp::{Value, Words};

use super::bulk;
use super::sending::payload;
use crate::args::asked::Asked;
use crate::args::more::{Prints, TaskField};
use crate::args::tasks::ClientArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::escaped;
use crate::pipeline::{self, Next, Traffic};
use crate::printer::{Field, Printer, StdoutPrinter, hidden, shown, text};
use crate::resp::{Client, unexpected};

/// Asks what a command of the table asks, and prints the replies.
pub(crate) fn ask(asked: &Asked) -> Result<Exit, Failure> {
    if let Some((kind, names)) = &asked.held {
        return ask_for_each(asked, kind, names);
    }
    if matches!(asked.more.prints, Prints::Changed) {
        return bulk::change(asked);
    }
    if asked.is_paged {
        return ask_for_pages(asked);
    }
    let payload = asked.payload.as_ref().map(|given| payload(Some(given))).transpose()?;
    ask_and(&asked.client, &asked.words(payload.as_deref()), |printer, answer| {
        print(printer, asked, &answer)
    })
}

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

/// Prints one page after the other. Nothing is there if there was nothing on any page.
fn ask_for_pages(asked: &Asked) -> Result<Exit, Failure> {
    let mut connection = Client::open(&asked.client.endpoint()?)?;
    let mut printer = Printer::to_stdout(asked.client.json);
    let (mut cursor, mut exit) = (b"0".to_vec(), Exit::NothingThere);
    loop {
        let Value::Array(parts) = connection.call(&asked.page(&cursor))? else {
            return Err(unexpected());
        };
        let [next, page] = parts.as_slice() else { return Err(unexpected()) };
        if print(&mut printer, asked, page)? == Exit::Done {
            exit = Exit::Done;
        }
        cursor = next.as_bytes().unwrap_or(b"0").to_vec();
        if printer.flush()? == Wanted::NoMore || cursor == b"0" {
            return Ok(exit);
        }
    }
}

/// Prints a reply.
fn print(printer: &mut StdoutPrinter, asked: &Asked, answer: &Value) -> Result<Exit, Failure> {
    match asked.more.prints {
        Prints::Any => print_any(printer, answer),
        Prints::Done => printer.fields(&[hidden("ok", &Value::Boolean(true))]).map(|_| Exit::Done),
        Prints::Value(name) => printer.fields(&[shown(name, answer)]).map(|_| Exit::Done),
        Prints::Each(name) => {
            print_each(printer, answer, |printer, value| printer.fields(&[shown(name, value)]))?;
            Ok(Exit::Done)
        }
        Prints::Map => print_map(printer, answer),
        Prints::Rows { can_be_nothing } => {
            let exit = print_each(printer, answer, print_row)?;
            Ok(if can_be_nothing { exit } else { Exit::Done })
        }
        Prints::Tasks(fields) => print_tasks(printer, answer, fields, asked.is_about_several),
        Prints::Outcome => {
            let Value::Array(parts) = answer else { return Err(unexpected()) };
            let [outcome, state, result @ ..] = parts.as_slice() else {
                return Err(unexpected());
            };
            let mut fields = vec![shown("outcome", outcome), shown("state", state)];
            fields.extend(shown_result(result)?);
            printer.fields(&fields)?;
            exit_of(outcome)
        }
        Prints::BatchOutcome => {
            let Some([outcome, batch]) = answer.elements() else { return Err(unexpected()) };
            printer.fields(&[shown("outcome", outcome), hidden("batch", batch)])?;
            match outcome.as_bytes() {
                Some(b"done") => Ok(Exit::Done),
                Some(b"timeout") => Ok(Exit::TimedOut),
                _ => Err(unexpected()),
            }
        }
        // Its pages are added up.
        Prints::Changed => Err(unexpected()),
        Prints::Explained if asked.client.json => print_map(printer, answer),
        Prints::Explained => print_explained(printer, answer),
    }
}

/// Prints whatever comes: a map, a line for each part of a list, or one value.
fn print_any(printer: &mut StdoutPrinter, answer: &Value) -> Result<Exit, Failure> {
    match answer {
        Value::Null | Value::Map(_) => print_map(printer, answer),
        Value::Array(_) => print_each(printer, answer, |printer, value| match value {
            Value::Map(_) => printer.map(value),
            _ => printer.fields(&[shown("reply", value)]),
        }),
        _ => printer.fields(&[shown("reply", answer)]).map(|_| Exit::Done),
    }
}

/// Prints each value of a list, as long as somebody reads.
fn print_each(
    printer: &mut StdoutPrinter,
    answer: &Value,
    print: impl Fn(&mut StdoutPrinter, &Value) -> Result<Wanted, Failure>,
) -> Result<Exit, Failure> {
    let Value::Array(values) = answer else { return Err(unexpected()) };
    for value in values {
        if print(printer, value)? == Wanted::NoMore {
            break;
        }
    }
    Ok(if values.is_empty() { Exit::NothingThere } else { Exit::Done })
}

/// Prints a map, or nothing if the reply is null.
fn print_map(printer: &mut StdoutPrinter, answer: &Value) -> Result<Exit, Failure> {
    match answer {
        Value::Null => Ok(Exit::NothingThere),
        Value::Map(_) => printer.map(answer).map(|_| Exit::Done),
        _ => Err(unexpected()),
    }
}

/// Prints the members of a map on a line.
fn print_row(printer: &mut StdoutPrinter, map: &Value) -> Result<Wanted, Failure> {
    let Value::Map(members) = map else { return Err(unexpected()) };
    let fields = members.iter().map(|(name, value)| {
        let name = name.as_bytes().and_then(|name| std::str::from_utf8(name).ok());
        name.map(|name| shown(name, value)).ok_or_else(unexpected)
    });
    printer.fields(&fields.collect::<Result<Vec<_>, _>>()?)
}

/// Prints tasks: as maps if they came as maps, and otherwise the requested fields.
pub(super) fn print_tasks(
    printer: &mut StdoutPrinter,
    answer: &Value,
    fields: &[TaskField],
    of_several_queues: bool,
) -> Result<Exit, Failure> {
    let fields = fields.iter().filter(|field| of_several_queues || **field != TaskField::Queue);
    let fields: Vec<TaskField> = fields.copied().collect();
    print_each(printer, answer, |printer, task| match task {
        Value::Map(_) => printer.map(task),
        Value::Array(parts) => {
            let fields: Option<Vec<_>> =
                fields.iter().map(|field| part_of(*field, parts)).collect();
            printer.fields(&fields.ok_or_else(unexpected)?)
        }
        _ => Err(unexpected()),
    })
}

fn part_of(field: TaskField, parts: &[Value]) -> Option<Field<'_>> {
    let (name, place) = match field {
        TaskField::Queue => ("queue", 0),
        TaskField::Id => ("id", 1),
        TaskField::Receipt => ("receipt", 2),
        TaskField::Payload => ("payload", 3),
    };
    parts.get(place).map(|value| shown(name, value))
}

/// Prints a line about a task, and one for each reason why it is not handed out.
fn print_explained(printer: &mut StdoutPrinter, answer: &Value) -> Result<Exit, Failure> {
    let head = ["id", "state", "since"].map(|name| Some(shown(name, answer.field(name)?)));
    let head: Option<Vec<Field<'_>>> = head.into_iter().collect();
    let mut head = head.ok_or_else(unexpected)?;
    let etas = ["eta_ms", "eta_low", "eta_high"].map(|name| (name, answer.field(name)));
    let etas = etas.into_iter().filter_map(|(name, eta)| Some((name, eta?)));
    head.extend(etas.filter(|(_, eta)| **eta != Value::Null).map(|(name, eta)| shown(name, eta)));
    printer.fields(&head)?;
    print_each(printer, answer.field("reasons").ok_or_else(unexpected)?, print_row)?;
    Ok(Exit::Done)
}

/// Shows what has come of the work, if the last elements of a reply tell it.
pub(super) fn shown_result(rest: &[Value]) -> Result<Option<Field<'_>>, Failure> {
    match rest {
        [] => Ok(None),
        [result] => Ok(Some(shown("result", result))),
        _ => Err(unexpected()),
    }
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
        Some(b"cancelled") => Ok(Exit::Cancelled),
        Some(b"skipped") => Ok(Exit::Skipped),
        _ => Err(unexpected()),
    }
}

/// Sends a command for each of `names`, and prints what is answered, or only that it is done.
fn ask_for_each(asked: &Asked, kind: &'static str, names: &[OsString]) -> Result<Exit, Failure> {
    let mut connection = Client::open(&asked.client.endpoint()?)?;
    let printer = Printer::to_stdout(asked.client.json);
    let mut commands = Commands { asked, kind, names, sent: 0, done: 0, printer, exit: Exit::Done };
    pipeline::run(&mut connection, &mut commands)?;
    commands.printer.flush()?;
    Ok(commands.exit)
}

/// The commands for many leases.
struct Commands<'a> {
    asked: &'a Asked,
    /// What the names are.
    kind: &'static str,
    names: &'a [OsString],
    sent: usize,
    done: usize,
    printer: StdoutPrinter,
    exit: Exit,
}

impl Traffic for Commands<'_> {
    fn next(&mut self, _idle: bool) -> Result<Next, Failure> {
        let name = self.names.get(self.sent);
        self.sent += 1;
        let words = |name: &OsString| self.asked.words(Some(name.as_bytes()));
        Ok(name.map_or(Next::End, |name| Next::Command(words(name))))
    }

    /// A missing reader changes nothing: the commands matter, not what is printed.
    fn answer(&mut self, answer: Value) -> Result<(), Failure> {
        let bytes = self.names.get(self.done).map(|name| OsStr::as_bytes(name)).unwrap_or_default();
        self.done += 1;
        let name = text(bytes);
        let many = self.names.len() > 1;
        let named = if many { shown(self.kind, &name) } else { hidden(self.kind, &name) };
        let done = Value::Boolean(true);
        let _: Wanted = match (&answer, self.asked.more.prints) {
            (Value::Error(sentence), _) => {
                self.exit = Exit::Refused;
                tell(if many {
                    format!("{}: {sentence}", escaped(bytes))
                } else {
                    sentence.clone()
                });
                let refused = text(sentence);
                self.printer.fields(&[hidden(self.kind, &name), hidden("error", &refused)])?
            }
            (_, Prints::Done) => {
                self.printer.fields(&[hidden(self.kind, &name), hidden("ok", &done)])?
            }
            (_, Prints::Value(answered)) => {
                self.printer.fields(&[named, shown(answered, &answer)])?
            }
            _ => self.printer.fields(&[named, shown("reply", &answer)])?,
        };
        Ok(())
    }
}
