//! `pinpriq explain`, `scan` and `leases`: looking at whole queues.

use pinpriq_proto::wire::resp::{Value, Words};

use super::asking::{TaskField, ask_and, print_map, print_tasks};
use crate::args::looking::{ExplainArgs, LeasesArgs, ScanArgs};
use crate::args::tasks::ClientArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::printer::{Field, Printer, StdoutPrinter, shown};
use crate::resp::{Client, unexpected};
use crate::words::OsWords as _;

/// The fields of a lease that people are shown.
const LEASE_FIELDS: [&str; 9] =
    ["queue", "member", "id", "client", "name", "address", "door", "since", "until"];

/// Prints why a task is not handed out.
pub(crate) fn explain(arguments: &ExplainArgs) -> Result<Exit, Failure> {
    let client = &arguments.client;
    ask_and(client, &explain_words(arguments), |printer, answer| {
        if client.json {
            return print_map(printer, &answer);
        }
        let head = ["id", "state", "since"].map(|name| Some(shown(name, member(&answer, name)?)));
        let head: Option<Vec<Field<'_>>> = head.into_iter().collect();
        printer.fields(&head.ok_or_else(unexpected)?)?;
        let Some(Value::Array(reasons)) = member(&answer, "reasons") else {
            return Err(unexpected());
        };
        for reason in reasons {
            let Value::Map(members) = reason else { return Err(unexpected()) };
            let fields: Vec<Field<'_>> =
                members.iter().map(|(_, value)| shown("reason", value)).collect();
            printer.fields(&fields)?;
        }
        Ok(Exit::Done)
    })
}

fn member<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(members) = map else { return None };
    let found = members.iter().find(|(key, _)| key.as_bytes() == Some(name.as_bytes()));
    found.map(|(_, value)| value)
}

/// Prints all tasks of a queue.
pub(crate) fn scan(arguments: &ScanArgs) -> Result<Exit, Failure> {
    let words = |cursor: &[u8]| scan_words(arguments, cursor);
    print_pages(&arguments.client, words, |printer, tasks| {
        print_tasks(printer, tasks, &[TaskField::Id, TaskField::Payload])
    })
}

/// Prints leases.
pub(crate) fn leases(arguments: &LeasesArgs) -> Result<Exit, Failure> {
    let words = |cursor: &[u8]| leases_words(arguments, cursor);
    print_pages(&arguments.client, words, |printer, leases| {
        let Value::Array(leases) = leases else { return Err(unexpected()) };
        for lease in leases {
            let field = |name: &'static str| Some(shown(name, member(lease, name)?));
            let fields: Option<Vec<Field<'_>>> = LEASE_FIELDS.into_iter().map(field).collect();
            if printer.fields(&fields.ok_or_else(unexpected)?)? == Wanted::NoMore {
                break;
            }
        }
        Ok(if leases.is_empty() { Exit::NothingThere } else { Exit::Done })
    })
}

/// Prints one page after the other. Nothing is there if there was nothing on any page.
fn print_pages(
    client: &ClientArgs,
    words: impl Fn(&[u8]) -> Words,
    print: impl Fn(&mut StdoutPrinter, &Value) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let mut connection = Client::open(&client.endpoint()?)?;
    let mut printer = Printer::to_stdout(client.json);
    let (mut cursor, mut exit) = (b"0".to_vec(), Exit::NothingThere);
    loop {
        let Value::Array(parts) = connection.call(&words(&cursor))? else {
            return Err(unexpected());
        };
        let [next, page] = parts.as_slice() else { return Err(unexpected()) };
        if print(&mut printer, page)? == Exit::Done {
            exit = Exit::Done;
        }
        cursor = next.as_bytes().unwrap_or(b"0").to_vec();
        if printer.flush()? == Wanted::NoMore || cursor == b"0" {
            return Ok(exit);
        }
    }
}

pub(super) fn explain_words(arguments: &ExplainArgs) -> Words {
    let words = Words::new("EXPLAIN").name(&arguments.queue);
    let words = arguments.id.iter().fold(words, |words, id| words.name(id));
    arguments.given.after(words)
}

pub(super) fn scan_words(arguments: &ScanArgs, cursor: &[u8]) -> Words {
    let words = Words::new("SCAN").name(&arguments.queue).bytes("CURSOR").bytes(cursor);
    let words = words.option("COUNT", Some(arguments.page));
    arguments.given.after(words.flag("WITHMETA", arguments.client.json))
}

pub(super) fn leases_words(arguments: &LeasesArgs, cursor: &[u8]) -> Words {
    let words = Words::new("LEASES");
    let words = arguments.queue.iter().fold(words, |words, queue| words.name(queue));
    arguments.given.after(words.bytes("CURSOR").bytes(cursor))
}
