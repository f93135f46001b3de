//! Fan-out: topics, members, publishing.

use pinpriq_proto::command::Command;
use pinpriq_proto::fanout::MemberCommand;

use super::call::{Call, Shape};
use pinpriq_proto::request::fault::Fault;

type Done = Result<(), Fault>;

pub(crate) fn leave(call: &mut Call<'_, '_>) -> Done {
    let command = match *call.parts.words {
        [topic, member] => MemberCommand::LeaveTopic { topic, member },
        _ => MemberCommand::Leave(call.parts.word(0)),
    };
    ask(call, command)
}

fn ask(call: &mut Call<'_, '_>, command: MemberCommand<'_>) -> Done {
    call.ask(Shape::Plain, &Command::Member(command))
}
