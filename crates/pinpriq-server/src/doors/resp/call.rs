//! One request being carried out: its parts, and the ways in which it can be answered.

use pinpriq_engine::command::Command;
use pinpriq_engine::task::RequestId;
use pinpriq_wire::resp::{Protocol, Writer};

use super::fault::Fault;
use super::words::Parts;
use crate::doors::door::Next;
use crate::home::desk::Desk;
use crate::host::seat::Undone;
use crate::host::tally::Tally;
use crate::session::about::Dialect;
use crate::session::ending::Ending;

/// The dialect that is not the one that connections begin with.
const RESP3: Dialect = Dialect(1);

/// See the head of this file.
pub(crate) struct Call<'c, 'a> {
    pub(crate) desk: &'c mut Desk,
    pub(crate) talk: &'c mut Talk,
    pub(crate) parts: &'c Parts<'a>,
}

/// How it stands with the conversation on a connection.
pub(crate) struct Talk {
    /// The version in which answers are written.
    pub(crate) protocol: Protocol,
    /// What is to happen in place of the next request, if anything.
    pub(crate) next: Option<Next>,
}

/// How the engine's answer to a request is to be written. It travels as the number of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// As the kind of answer suggests.
    Plain,
    /// Tasks as maps with all that is known about them.
    WithMeta,
    /// A page of names, with the cursor for the next.
    Page,
    /// The figures of one queue rather than of all.
    QueueFigures,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Plain, Self::WithMeta, Self::Page, Self::QueueFigures];

    /// The shape as the number of a request: its place in [`Shape::ALL`].
    pub(crate) const fn request(self) -> RequestId {
        RequestId(self as u64)
    }

    /// The shape of the answer to a request of that number.
    pub(crate) fn of(request: RequestId) -> Self {
        let index = usize::try_from(request.0).unwrap_or(usize::MAX);
        Self::ALL.get(index).copied().unwrap_or(Self::Plain)
    }
}

impl Talk {
    /// One in this dialect.
    pub(crate) const fn new(dialect: Dialect) -> Self {
        Self { protocol: protocol_of(dialect), next: None }
    }

    /// Takes out what is to happen in place of the next request.
    #[cold]
    pub(crate) fn take_next(&mut self, length: usize) -> Result<usize, Next> {
        self.next.take().map_or(Ok(length), Err)
    }

    /// Answers without the engine, after everything that was asked before.
    pub(crate) fn say(&self, desk: &Desk, write: impl FnOnce(&mut Writer<'_>)) {
        desk.say(self.written(write));
    }

    /// What an answer is in bytes.
    pub(crate) fn written(&self, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        written(self.protocol, write)
    }

    /// Refuses a request.
    pub(crate) fn refuse(&self, desk: &Desk, fault: &Fault) {
        desk.say(refused(desk.tally(), self.protocol, fault));
    }

    /// Has the answers from here on written in this version.
    pub(crate) fn switch(&mut self, desk: &Desk, protocol: Protocol) {
        self.protocol = protocol;
        desk.speak(if protocol == Protocol::Resp3 { RESP3 } else { Dialect::default() });
    }
}

/// What an answer is in the bytes of this version.
pub(crate) fn written(protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes, protocol));
    bytes
}

/// What a refusal is in the bytes of this version. It is counted.
pub(crate) fn refused(tally: &Tally, protocol: Protocol, fault: &Fault) -> Vec<u8> {
    tally.refuse(fault.code);
    written(protocol, |writer| writer.error(fault.code.word(), &fault.sentence))
}

/// The version that a dialect stands for.
pub(crate) const fn protocol_of(dialect: Dialect) -> Protocol {
    if dialect.0 == RESP3.0 { Protocol::Resp3 } else { Protocol::Resp2 }
}

impl Call<'_, '_> {
    /// Has a command carried out, and answered in this shape.
    #[inline]
    pub(crate) fn ask(&mut self, shape: Shape, command: &Command<'_>) -> Result<(), Fault> {
        self.desk.ask(shape.request(), command).or_else(|undone| self.put_off(undone))
    }

    #[cold]
    fn put_off(&mut self, undone: Undone) -> Result<(), Fault> {
        self.talk.next = Some(match undone {
            Undone::Refused(refusal) => return Err(refusal.into()),
            Undone::NoRoom => Next::NoRoom,
            Undone::Move(to) => Next::Move(to),
            Undone::Close(ending, reason) => Next::Close(ending, reason),
        });
        Ok(())
    }

    /// Answers without the engine, after everything that was asked before.
    pub(crate) fn answer(&self, write: impl FnOnce(&mut Writer<'_>)) {
        self.talk.say(self.desk, write);
    }

    /// Answers OK without the engine.
    pub(crate) fn answer_ok(&self) {
        self.answer(|writer| writer.simple("OK"));
    }

    /// Ends the connection once what was answered is sent.
    pub(crate) fn quit(&mut self, ending: Ending) {
        self.talk.next = Some(Next::Close(ending, ending.word().to_owned()));
    }
}
