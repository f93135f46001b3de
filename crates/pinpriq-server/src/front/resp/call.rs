//! One request being carried out: its parts, and the ways in which it can be answered.

use pinpriq_engine::command::Command;
use pinpriq_engine::task::RequestId;
use pinpriq_wire::resp::Writer;

use super::RespDoor;
use super::words::Parts;

/// See the head of this file.
pub(crate) struct Call<'c, 'a> {
    pub(crate) door: &'c mut RespDoor,
    pub(crate) parts: &'c Parts<'a>,
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
    /// Not at all: the door answers by itself.
    Silent,
    /// Not here: it is but one shard's part of an answer.
    Part,
}

impl Shape {
    const ALL: [Self; 6] =
        [Self::Plain, Self::WithMeta, Self::Page, Self::QueueFigures, Self::Silent, Self::Part];

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

impl Call<'_, '_> {
    /// Has the engine carry out a command, and answer it.
    pub(crate) fn ask(&mut self, shape: Shape, command: Command<'_>) {
        self.door.ask(shape, command);
    }

    /// Answers without the engine, after everything that was asked before.
    pub(crate) fn answer(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        self.door.answer(write);
    }

    /// Answers OK without the engine.
    pub(crate) fn answer_ok(&mut self) {
        self.answer(|writer| writer.simple("OK"));
    }
}
