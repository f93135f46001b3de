//! `pinpriq put`: puts a task, the same task many times, or each line of stdin, over RESP.

use pinpriq_proto::wire::resp::Words;

use super::sending::Sending;
use crate::args::tasks::PutArgs;
use crate::exit::{Exit, Failure};
use crate::words::OsWords as _;

/// Puts, and prints the ids.
pub(crate) fn put(arguments: &PutArgs) -> Result<Exit, Failure> {
    let sending = Sending {
        client: &arguments.client,
        payload: arguments.payload.as_deref(),
        lines: arguments.lines,
        count: arguments.count,
        words: &|payload| words(arguments, payload),
        answer: "id",
        done: "tasks put",
    };
    sending.send()
}

/// What is sent.
pub(super) fn words(arguments: &PutArgs, payload: &[u8]) -> Words {
    let words = Words::new("PUT").name(&arguments.queue).bytes(payload);
    arguments.given.after(words.option("STATE", arguments.buried.then_some("B")))
}
