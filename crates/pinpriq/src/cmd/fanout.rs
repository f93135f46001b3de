//! `pinpriq publish`: what goes to all members of a topic.

use pinpriq_proto::wire::resp::Words;

use super::sending::Sending;
use crate::args::fanout::PublishArgs;
use crate::exit::{Exit, Failure};
use crate::words::OsWords as _;

/// Publishes, and prints the numbers of lanes.
pub(crate) fn publish(arguments: &PublishArgs) -> Result<Exit, Failure> {
    let sending = Sending {
        client: &arguments.client,
        payload: arguments.payload.as_deref(),
        lines: arguments.lines,
        count: arguments.count,
        words: &|payload| publish_words(arguments, payload),
        answer: "lanes",
        done: "tasks published",
    };
    sending.send()
}

pub(super) fn publish_words(arguments: &PublishArgs, payload: &[u8]) -> Words {
    arguments.given.after(Words::new("PUBLISH").name(&arguments.topic).bytes(payload))
}
