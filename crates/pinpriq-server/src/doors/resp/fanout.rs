//! Fan-out: topics, members, publishing.

use pinpriq_proto::command::Command;
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::task::Terms;

use super::call::{Call, Shape};
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::{DEADLINE, KEY, LEASE, TTL};

type Done = Result<(), Fault>;

pub(crate) fn publish(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let deadline = match (parts.moment(DEADLINE)?, parts.span(TTL)?) {
        (None, None) => Deadline::OfLane,
        (Some(at), None) => Deadline::At(at),
        (None, Some(ttl)) => Deadline::After(ttl),
        (Some(_), Some(_)) => {
            return Err(Fault::bad("DEADLINE and TTL say the same: give one of them"));
        }
    };
    let publish = Publish {
        topic: parts.word(0),
        payload: parts.word(1),
        deadline,
        priority: parts.priority()?.or(Some(0)),
        terms: Terms { key: parts.option(KEY), ..Terms::NONE },
    };
    call.ask(Shape::Plain, &Command::Publish(publish))
}

pub(crate) fn join(call: &mut Call<'_, '_>) -> Done {
    let (topic, member) = (call.parts.word(0), call.parts.word(1));
    let lease = call.parts.span(LEASE)?;
    ask(call, MemberCommand::Join { topic, member, lease })
}

pub(crate) fn beat(call: &mut Call<'_, '_>) -> Done {
    let member = call.parts.word(0);
    let lease = call.parts.span(LEASE)?;
    ask(call, MemberCommand::Beat { member, lease })
}

pub(crate) fn leave(call: &mut Call<'_, '_>) -> Done {
    let command = match *call.parts.words {
        [topic, member] => MemberCommand::LeaveTopic { topic, member },
        _ => MemberCommand::Leave(call.parts.word(0)),
    };
    ask(call, command)
}

pub(crate) fn members(call: &mut Call<'_, '_>) -> Done {
    let topic = call.parts.word(0);
    ask(call, MemberCommand::List(topic))
}

fn ask(call: &mut Call<'_, '_>, command: MemberCommand<'_>) -> Done {
    call.ask(Shape::Plain, &Command::Member(command))
}
