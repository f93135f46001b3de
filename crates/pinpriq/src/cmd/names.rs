//! The names of all queues or schedules, page by page.

use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::queues::ListArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, shown};
use crate::resp::{Client, unexpected};
use crate::words::OsWords as _;

/// How many names are asked for at a time.
const PAGE_NAMES: u64 = 1_000;

/// Prints all names that this command lists, each as a `field`.
pub(super) fn print(command: &str, arguments: &ListArgs, field: &str) -> Result<Exit, Failure> {
    let mut client = Client::open(&arguments.client.endpoint()?)?;
    let mut printer = Printer::to_stdout(arguments.client.json);
    let mut cursor = b"0".to_vec();
    loop {
        let answer = client.call(&words(command, arguments, &cursor))?;
        let Value::Array(parts) = answer else { return Err(unexpected()) };
        let [next, Value::Array(names)] = parts.as_slice() else { return Err(unexpected()) };
        for name in names {
            if printer.fields(&[shown(field, name)])? == Wanted::NoMore {
                return Ok(Exit::Done);
            }
        }
        cursor = next.as_bytes().unwrap_or(b"0").to_vec();
        if printer.flush()? == Wanted::NoMore || cursor == b"0" {
            return Ok(Exit::Done);
        }
    }
}

/// What is sent for the page at `cursor`.
pub(super) fn words(command: &str, arguments: &ListArgs, cursor: &[u8]) -> Words {
    Words::new(command)
        .named("PREFIX", arguments.prefix.as_deref())
        .option("COUNT", Some(PAGE_NAMES))
        .bytes("CURSOR")
        .bytes(cursor)
}
