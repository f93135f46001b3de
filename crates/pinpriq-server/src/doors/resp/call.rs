//! A request that is being carried out: its parts, and the ways to reply to it.

use std::sync::Arc;

use crate::users::{User, Verdict, judge};
use pinpriq_proto::command::{Command, Step};
use pinpriq_proto::letters::Steps;
use pinpriq_proto::task::RequestId;
use pinpriq_proto::time::Span;
use pinpriq_proto::wire::resp::{Protocol, Writer};

use super::collected::Transaction;
use crate::clients::about::Dialect;
use crate::clients::ending::Ending;
use crate::config::DoorName;
use crate::facts::tally::Tally;
use crate::home::desk::Desk;
use crate::home::door::Next;
use crate::host::seat::{Redirect, Undone};
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::WITHMETA;
use pinpriq_proto::request::parts::Parts;

/// The bits of a dialect. Connections begin with none of them.
const RESP3: u8 = 1;
const META: u8 = 2;
const CANCELS: u8 = 4;

/// A request that is being carried out.
pub(crate) struct Call<'c, 'a> {
    pub(crate) desk: &'c mut Desk,
    pub(crate) talk: &'c mut Talk,
    pub(crate) parts: &'c Parts<'a>,
}

/// The state of the conversation on a connection.
pub(crate) struct Talk {
    /// The version in which replies are written.
    pub(crate) protocol: Protocol,
    /// Whether deliveries tell everything that is known about their tasks.
    pub(crate) meta: bool,
    /// Whether the client hears that tasks were cancelled which it holds.
    pub(crate) cancels: bool,
    /// What must happen instead of the next request, if anything.
    pub(crate) next: Option<Next>,
    /// The transaction that is open, if one is.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// Where a command goes that is to be a step of a transaction.
    pub(crate) steps: Option<Steps>,
    /// Whose rights are asked for, if such a command is not to be carried out at all.
    pub(crate) dry_run: Option<DryRun>,
    /// The TTR of leases without a TTR of their own, if connections mean nothing: then leases
    /// must have one, and no connection holds them.
    pub(crate) ttr_otherwise: Option<Span>,
}

/// A command that somebody might carry out.
pub(crate) struct DryRun {
    pub(super) user: Arc<User>,
    /// What they lack for it.
    pub(super) lack: Option<String>,
}

impl DryRun {
    /// Finds out what the user lacks for a command.
    pub(super) fn judge(&mut self, command: &Command<'_>) {
        let lack = match judge(&self.user.rights, command) {
            // Lists leave out what may not be seen.
            Verdict::Allowed | Verdict::Within(_) => None,
            Verdict::Denied(lack) => Some(lack.to_string()),
        };
        self.lack = self.lack.take().or(lack);
    }
}

/// How the engine's reply to a request is written. It travels as the number of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// As the kind of answer suggests.
    Plain,
    /// Tasks as maps with everything that is known about them.
    WithMeta,
    /// About what the words of the request name, rather than about all.
    OfOne,
}

impl Shape {
    const ALL: [Self; 3] = [Self::Plain, Self::WithMeta, Self::OfOne];

    /// Returns the shape of the reply to a request with these parts.
    #[inline]
    pub(crate) fn asked_for(parts: &Parts<'_>) -> Self {
        if parts.given(WITHMETA).is_some() {
            Self::WithMeta
        } else if parts.words.is_empty() {
            Self::Plain
        } else {
            Self::OfOne
        }
    }

    /// Returns the number of a request with this shape: its place in [`Shape::ALL`].
    pub(crate) const fn request(self) -> RequestId {
        RequestId(self as u64)
    }

    /// Returns the shape of the reply to the request with this number.
    pub(crate) fn of(request: RequestId) -> Self {
        let index = usize::try_from(request.0).unwrap_or(usize::MAX);
        Self::ALL.get(index).copied().unwrap_or(Self::Plain)
    }
}

impl Talk {
    /// Returns a conversation in this dialect.
    pub(crate) const fn new(dialect: Dialect) -> Self {
        Self {
            protocol: protocol_of(dialect),
            meta: has_meta(dialect),
            cancels: has_cancels(dialect),
            next: None,
            transaction: None,
            steps: None,
            dry_run: None,
            ttr_otherwise: None,
        }
    }

    /// Removes and returns what must happen instead of the next request.
    #[cold]
    pub(crate) fn take_next(&mut self, length: usize) -> Result<usize, Next> {
        self.next.take().map_or(Ok(length), Err)
    }

    /// Notes what must happen before a request can be carried out, or returns why it was refused.
    #[cold]
    pub(crate) fn note_undone(&mut self, undone: Undone) -> Result<(), Fault> {
        self.next = Some(match undone {
            Undone::Refused(refusal) => return Err(refusal.into()),
            Undone::Redirected(redirect) => return Err(redirect.into()),
            Undone::NoRoom => Next::NoRoom,
            Undone::Blocked => Next::Blocked,
            Undone::Move(to) => Next::Move(to),
            Undone::Close(ending, reason) => Next::Close(ending, reason),
        });
        Ok(())
    }

    /// Replies without the engine, after the replies to everything asked before.
    pub(crate) fn say(&self, desk: &Desk, write: impl FnOnce(&mut Writer<'_>)) {
        desk.say(self.written(write));
    }

    /// Returns the bytes of a reply.
    pub(crate) fn written(&self, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        written(self.protocol, write)
    }

    /// Refuses a request.
    pub(crate) fn refuse(&self, desk: &Desk, fault: &Fault) {
        desk.say(refused((desk.tally(), desk.session().door()), self.protocol, fault));
    }

    /// Writes all later replies in this version.
    pub(crate) fn switch(&mut self, desk: &Desk, protocol: Protocol) {
        self.protocol = protocol;
        self.speak(desk);
    }

    /// Has later deliveries tell everything about their tasks, or not.
    pub(crate) fn tell_meta(&mut self, desk: &Desk, meta: bool) {
        self.meta = meta;
        self.speak(desk);
    }

    /// Has the client hear of tasks that are cancelled from now on, or not.
    pub(crate) fn tell_cancels(&mut self, desk: &Desk, cancels: bool) {
        self.cancels = cancels;
        self.speak(desk);
    }

    fn speak(&self, desk: &Desk) {
        let is_resp3 = self.protocol == Protocol::Resp3;
        let bits = [(is_resp3, RESP3), (self.meta, META), (self.cancels, CANCELS)];
        desk.speak(Dialect(bits.into_iter().filter(|(is_on, _)| *is_on).map(|(_, bit)| bit).sum()));
    }
}

/// Returns the bytes of a reply in this version.
pub(crate) fn written(protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes, protocol));
    bytes
}

/// Returns the bytes of a refusal in this version, and counts it.
pub(crate) fn refused(
    (tally, door): (&Tally, DoorName),
    protocol: Protocol,
    fault: &Fault,
) -> Vec<u8> {
    tally.refuse(door, fault.code);
    written(protocol, |writer| writer.error(fault.code.word(), &fault.sentence))
}

/// Returns the version that a dialect stands for.
pub(crate) const fn protocol_of(dialect: Dialect) -> Protocol {
    if dialect.0 & RESP3 == 0 { Protocol::Resp2 } else { Protocol::Resp3 }
}

/// Returns whether deliveries in a dialect tell everything about their tasks.
pub(crate) const fn has_meta(dialect: Dialect) -> bool {
    dialect.0 & META != 0
}

/// Returns whether a dialect has words for tasks that were cancelled.
pub(crate) const fn has_cancels(dialect: Dialect) -> bool {
    dialect.0 & CANCELS != 0
}

impl From<Redirect> for Fault {
    /// In the wording of Redis, which cluster clients know.
    fn from(redirect: Redirect) -> Self {
        match redirect {
            Redirect::Moved(slot, address) => {
                Self { code: Code::Moved, sentence: format!("{slot} {address}") }
            }
            Redirect::CrossSlot => {
                let sentence = "Keys in request don't hash to the same slot".to_owned();
                Self { code: Code::CrossSlot, sentence }
            }
        }
    }
}

impl Call<'_, '_> {
    /// Asks for a command, whose reply is written in this shape.
    #[inline]
    pub(crate) fn ask(&mut self, shape: Shape, command: &Command<'_>) -> Result<(), Fault> {
        if self.talk.steps.is_some() {
            self.note_step(command);
            return Ok(());
        }
        self.desk.ask(shape.request(), command).or_else(|undone| self.note_undone(undone))
    }

    #[cold]
    fn note_step(&mut self, command: &Command<'_>) {
        if let Some(dry_run) = &mut self.talk.dry_run {
            dry_run.judge(command);
        } else if let Some(steps) = &mut self.talk.steps {
            steps.push(&Step::Command(*command));
        }
    }

    #[cold]
    pub(crate) fn note_undone(&mut self, undone: Undone) -> Result<(), Fault> {
        self.talk.note_undone(undone)
    }

    /// Replies without the engine, after the replies to everything asked before.
    pub(crate) fn answer(&self, write: impl FnOnce(&mut Writer<'_>)) {
        self.talk.say(self.desk, write);
    }

    /// Replies OK without the engine.
    pub(crate) fn answer_ok(&self) {
        self.answer(|writer| writer.simple("OK"));
    }

    /// Ends the connection once all replies are sent.
    pub(crate) fn quit(&mut self, ending: Ending) {
        self.talk.next = Some(Next::Close(ending, ending.word().to_owned()));
    }
}
