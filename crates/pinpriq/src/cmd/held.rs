//! `pinpriq ack`, `release`, `bury`, `fail` and `touch`: what holders of leases do, for many at
//! once.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::tasks::{AckArgs, BuryArgs, ClientArgs, FailArgs, ReleaseArgs, TouchArgs};
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::escaped;
use crate::pipeline::{self, Next, Traffic};
use crate::printer::{Printer, StdoutPrinter, hidden, shown, text};
use crate::resp::Client;
use crate::words::OsWords as _;

/// Finishes tasks.
pub(crate) fn ack(arguments: &AckArgs) -> Result<Exit, Failure> {
    let held = &arguments.held;
    let words = |receipt: &OsStr| ack_words(arguments, receipt);
    for_each(&held.client, "receipt", &held.receipts, words, None)
}

/// Gives tasks back.
pub(crate) fn release(arguments: &ReleaseArgs) -> Result<Exit, Failure> {
    let held = &arguments.held;
    let words = |receipt: &OsStr| release_words(arguments, receipt);
    for_each(&held.client, "receipt", &held.receipts, words, Some("state"))
}

/// Sets tasks aside.
pub(crate) fn bury(arguments: &BuryArgs) -> Result<Exit, Failure> {
    let held = &arguments.held;
    let words = |receipt: &OsStr| bury_words(arguments, receipt);
    for_each(&held.client, "receipt", &held.receipts, words, None)
}

/// Gives tasks back that failed.
pub(crate) fn fail(arguments: &FailArgs) -> Result<Exit, Failure> {
    let held = &arguments.held;
    let words = |receipt: &OsStr| fail_words(arguments, receipt);
    for_each(&held.client, "receipt", &held.receipts, words, Some("state"))
}

/// Renews leases.
pub(crate) fn touch(arguments: &TouchArgs) -> Result<Exit, Failure> {
    let words = |name: &OsStr| touch_words(arguments, name);
    let (kind, names) = match &arguments.id {
        Some(id) => ("id", std::slice::from_ref(id)),
        None => ("receipt", arguments.receipts.as_slice()),
    };
    for_each(&arguments.client, kind, names, words, Some("deadline"))
}

pub(super) fn ack_words(arguments: &AckArgs, receipt: &OsStr) -> Words {
    arguments.given.after(Words::new("ACK").name(&arguments.held.queue).name(receipt))
}

pub(super) fn release_words(arguments: &ReleaseArgs, receipt: &OsStr) -> Words {
    arguments.given.after(Words::new("RELEASE").name(&arguments.held.queue).name(receipt))
}

pub(super) fn bury_words(arguments: &BuryArgs, receipt: &OsStr) -> Words {
    arguments.given.after(Words::new("BURY").name(&arguments.held.queue).name(receipt))
}

pub(super) fn fail_words(arguments: &FailArgs, receipt: &OsStr) -> Words {
    arguments.given.after(Words::new("FAIL").name(&arguments.held.queue).name(receipt))
}

pub(super) fn touch_words(arguments: &TouchArgs, name: &OsStr) -> Words {
    let words = Words::new("TOUCH").name(&arguments.queue);
    let words = if arguments.id.is_some() { words.bytes("ID") } else { words };
    arguments.given.after(words.name(name).option("BY", arguments.by_ms))
}

/// Sends a command for each of `names`, and prints what is `answered`, or only that it is done.
fn for_each(
    client: &ClientArgs,
    kind: &'static str,
    names: &[OsString],
    words: impl Fn(&OsStr) -> Words,
    answered: Option<&'static str>,
) -> Result<Exit, Failure> {
    let mut connection = Client::open(&client.endpoint()?)?;
    let mut commands = Commands {
        kind,
        names,
        words,
        answered,
        sent: 0,
        done: 0,
        printer: Printer::to_stdout(client.json),
        exit: Exit::Done,
    };
    pipeline::run(&mut connection, &mut commands)?;
    commands.printer.flush()?;
    Ok(commands.exit)
}

/// The commands for many leases.
struct Commands<'a, F> {
    /// What the names are.
    kind: &'static str,
    names: &'a [OsString],
    words: F,
    answered: Option<&'static str>,
    sent: usize,
    done: usize,
    printer: StdoutPrinter,
    exit: Exit,
}

impl<F: Fn(&OsStr) -> Words> Traffic for Commands<'_, F> {
    fn next(&mut self, _idle: bool) -> Result<Next, Failure> {
        let name = self.names.get(self.sent);
        self.sent += 1;
        Ok(name.map_or(Next::End, |name| Next::Command((self.words)(name))))
    }

    /// A missing reader changes nothing: the commands matter, not what is printed.
    fn answer(&mut self, answer: Value) -> Result<(), Failure> {
        let bytes = self.names.get(self.done).map(|name| name.as_bytes()).unwrap_or_default();
        self.done += 1;
        let name = text(bytes);
        let many = self.names.len() > 1;
        let named = if many { shown(self.kind, &name) } else { hidden(self.kind, &name) };
        let done = Value::Boolean(true);
        let _: Wanted = match (&answer, self.answered) {
            (Value::Error(sentence), _) => {
                self.exit = Exit::Refused;
                if many {
                    tell(format!("{}: {sentence}", escaped(bytes)));
                } else {
                    tell(sentence);
                }
                let refused = text(sentence);
                self.printer.fields(&[hidden(self.kind, &name), hidden("error", &refused)])?
            }
            (_, None) => self.printer.fields(&[hidden(self.kind, &name), hidden("ok", &done)])?,
            (_, Some(answered)) => self.printer.fields(&[named, shown(answered, &answer)])?,
        };
        Ok(())
    }
}
