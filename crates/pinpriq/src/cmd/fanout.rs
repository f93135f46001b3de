//! `pinpriq publish`, `join`, `beat`, `leave` and `members`: topics and those who listen to them.
//!
//! `pinpriq listen`, which does more than ask one thing, is in `take/listen.rs`.

use pinpriq_proto::wire::resp::{Value, Words};

use super::asking::{ask, ask_and, order};
use super::sending::Sending;
use crate::args::fanout::{BeatArgs, JoinArgs, LeaveArgs, MembersArgs, PublishArgs};
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::printer::shown;
use crate::resp::unexpected;
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

/// Joins a topic.
pub(crate) fn join(arguments: &JoinArgs) -> Result<Exit, Failure> {
    ask(&arguments.client, &join_words(arguments), "incarnation")
}

/// Gives a sign of life.
pub(crate) fn beat(arguments: &BeatArgs) -> Result<Exit, Failure> {
    order(&arguments.client, &beat_words(arguments))
}

/// Ends lanes.
pub(crate) fn leave(arguments: &LeaveArgs) -> Result<Exit, Failure> {
    ask(&arguments.client, &leave_words(arguments), "lanes")
}

/// Prints the members of a topic.
pub(crate) fn members(arguments: &MembersArgs) -> Result<Exit, Failure> {
    ask_and(&arguments.client, &members_words(arguments), |printer, answer| {
        let Value::Array(members) = answer else { return Err(unexpected()) };
        for member in &members {
            let Value::Map(figures) = member else { return Err(unexpected()) };
            let fields: Result<Vec<_>, Failure> = figures
                .iter()
                .map(|(name, value)| {
                    let name = name.as_bytes().and_then(|name| std::str::from_utf8(name).ok());
                    name.map(|name| shown(name, value)).ok_or_else(unexpected)
                })
                .collect();
            if printer.fields(&fields?)? == Wanted::NoMore {
                break;
            }
        }
        Ok(Exit::Done)
    })
}

pub(super) fn publish_words(arguments: &PublishArgs, payload: &[u8]) -> Words {
    arguments.given.after(Words::new("PUBLISH").name(&arguments.topic).bytes(payload))
}

pub(super) fn join_words(arguments: &JoinArgs) -> Words {
    let words = Words::new("JOIN").name(&arguments.topic).name(&arguments.member);
    arguments.given.after(words)
}

pub(super) fn beat_words(arguments: &BeatArgs) -> Words {
    arguments.given.after(Words::new("BEAT").name(&arguments.member))
}

pub(super) fn leave_words(arguments: &LeaveArgs) -> Words {
    let topic = arguments.topic.iter();
    topic.fold(Words::new("LEAVE"), |words, topic| words.name(topic)).name(&arguments.member)
}

pub(super) fn members_words(arguments: &MembersArgs) -> Words {
    Words::new("MEMBERS").name(&arguments.topic)
}
