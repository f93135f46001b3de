//! Deliveries: subscriptions and credits.

#![expect(clippy::unnecessary_wraps, reason = "all commands are functions of one type")]

use pinpriq_proto::command::{Command, Selection, TakeMode};

use super::call::{Call, Shape, written};
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::options::{MEMBER, POP, TTR};
use pinpriq_proto::request::parts::number;

type Done = Result<(), Fault>;

pub(crate) fn subscribe(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let ttr = parts.span(TTR)?;
    let mode = match (parts.has(POP), ttr) {
        (true, Some(_)) => return Err(Fault::bad("POP takes no TTR: a popped task has no lease")),
        (true, None) => TakeMode::Pop,
        (false, ttr) => TakeMode::Lease { ttr },
    };
    let queues = parts.words;
    let (member, selection) = (parts.option(MEMBER), Selection::DEFAULT);
    let command = Command::Subscribe { queues, member, selection, mode };
    call.ask(Shape::Plain, &command)
}

pub(crate) fn credit(call: &mut Call<'_, '_>) -> Done {
    let given = call.parts.word(0);
    let credits = number(given).and_then(|credits| u32::try_from(credits).ok());
    match credits {
        Some(credits) if credits > 0 => {
            add_credit(call, credits);
            Ok(())
        }
        _ => {
            let most = u32::MAX;
            Err(Fault::bad(format!("CREDIT is a number from 1 to {most}, not {}", shown(given))))
        }
    }
}

pub(crate) fn ready(call: &mut Call<'_, '_>) -> Done {
    add_credit(call, 1);
    Ok(())
}

/// Adds credit. The reply is all unspent credit.
fn add_credit(call: &mut Call<'_, '_>, credits: u32) {
    let protocol = call.talk.protocol;
    call.desk.say_credit(credits, move |outstanding| {
        written(protocol, |writer| writer.integer(i64::from(outstanding)))
    });
}
