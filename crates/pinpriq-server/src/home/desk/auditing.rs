//! What a desk tells the audit.

use pinpriq_proto::command::Command;
use pinpriq_proto::reply::RefusalKind;

use super::Desk;
use crate::access::audit::{Event, What};
use crate::host::seat::Undone;
use crate::session::outbox::Owed;

/// A command whose outcome is to be told.
pub(super) struct Audited {
    command: String,
    /// The name of what it changes.
    name: Vec<u8>,
    /// What more there is to say.
    detail: Option<String>,
    /// Its place among the answers of the connection.
    place: u64,
}

impl Desk {
    /// Tells that something has happened on this connection, if there is an audit.
    pub(crate) fn tell_audit(
        &self,
        what: What,
        user: Option<String>,
        more: impl FnOnce(&mut Event),
    ) {
        let Some(audit) = &self.audit else { return };
        let mut event = self.event(what, user);
        more(&mut event);
        audit.note(event);
    }

    /// Returns what is known about something that has happened on this connection.
    fn event(&self, what: What, user: Option<String>) -> Event {
        let (from, door) = {
            let about = self.seat.session.about.borrow();
            (about.peer, about.door)
        };
        let user = user.or_else(|| self.pass().map(|pass| pass.user.name.to_string()));
        Event { user, from, door: Some(door.word()), ..Event::new(what) }
    }

    /// Tells that a command was refused for want of a right.
    pub(crate) fn tell_denied(&self, command: String, name: Option<Vec<u8>>) {
        self.tell_audit(What::Denied, None, |event| {
            (event.command, event.name) = (Some(command), name);
        });
    }

    /// Notes a command that is to be told, before it is asked for.
    pub(super) fn begin_audit(&self, command: &Command<'_>) -> Option<Audited> {
        self.audit.as_ref()?;
        let name = command.audited()?;
        // Earlier answers are in the outbox then, so that its place is known.
        self.seat.shard.turn_if_begun();
        let place = {
            let outbox = self.seat.session.outbox.borrow();
            outbox.passed() + outbox.len() as u64
        };
        let (name, detail) = (name.to_vec(), command.audited_detail());
        Some(Audited { command: self.command_word(), name, detail, place })
    }

    /// Tells what became of a command that was asked for.
    pub(super) fn end_audit(
        &self,
        command: &Command<'_>,
        audited: Option<Audited>,
        asked: &Result<(), Undone>,
    ) {
        match asked {
            Err(Undone::Refused(refusal)) if refusal.kind == RefusalKind::NoPerm => {
                self.tell_denied(self.command_word(), name_of(command).map(<[u8]>::to_vec));
            }
            Err(_) => {}
            Ok(()) => {
                if let Some(audited) = audited {
                    self.seat.shard.turn_if_begun();
                    let Audited { command, name, detail, place } = audited;
                    let mut event = self.event(What::Command, None);
                    (event.command, event.name) = (Some(command), Some(name));
                    event.detail = detail;
                    self.untold.borrow_mut().push_back((place, event));
                    self.tell_answered();
                }
            }
        }
    }

    /// Tells what became of commands whose answers are there by now. The shard of a queue may be
    /// another one, whose answer comes later.
    pub(crate) fn tell_answered(&self) {
        let outbox = self.seat.session.outbox.borrow();
        self.tell_first(|place| outbox.count_at(place));
    }

    /// Tells what is left when the connection ends before the answers have come.
    pub(super) fn tell_unanswered(&self) {
        self.tell_first(|_| Ok(None));
    }

    /// Tells commands, in their order, as long as `count_at` knows what their answers tell.
    fn tell_first(&self, count_at: impl Fn(u64) -> Result<Option<u64>, Owed>) {
        let untold = &mut *self.untold.borrow_mut();
        while let Some((place, _)) = untold.front()
            && let Ok(count) = count_at(*place)
            && let Some(((_, event), audit)) = untold.pop_front().zip(self.audit.as_ref())
        {
            audit.note(Event { count, ..event });
        }
    }

    /// Whether the answers to commands that are to be told are still owed.
    #[inline]
    pub(crate) fn has_untold(&self) -> bool {
        !self.untold.borrow().is_empty()
    }

    /// Returns the words of the command that was noted last.
    fn command_word(&self) -> String {
        (self.command_name)(self.pace.noted())
    }
}

/// Returns the first name that a command is about.
fn name_of<'c>(command: &Command<'c>) -> Option<&'c [u8]> {
    let mut first = None;
    command.each_need(&mut |need| {
        if let pinpriq_proto::rights::Need::On(_, name) = need {
            first.get_or_insert(name);
        }
    });
    first
}
