//! Counts the tasks of users who have a limit of them, on a server with users.

use std::cell::RefCell;
use std::sync::Arc;

use pinpriq_proto::command::Command;
use pinpriq_proto::reply::Refusal;
use pinpriq_proto::task::Bytes;

use super::Shard;
use crate::access::charges::Charges;
use crate::access::roster::Roster;

impl Shard {
    /// Counts the tasks of users from now on.
    pub(crate) fn count_tasks_of(&self, roster: Arc<Roster>) {
        drop(self.charges.set(RefCell::new(Charges::new(roster))));
    }

    /// Carries out everything in `act` for an account: the tasks that are put meanwhile count for
    /// it. Refuses a command that would give it too many.
    pub(crate) fn charging<T>(
        &self,
        (account, command): (&Bytes, &Command<'_>),
        act: impl FnOnce() -> T,
    ) -> Result<T, Refusal> {
        let Some(charges) = self.charges.get() else { return Ok(act()) };
        self.note_charges();
        charges.borrow().check(account, command)?;
        self.state.borrow_mut().durable.charge(Some(account));
        let done = act();
        self.state.borrow_mut().durable.charge(None);
        Ok(done)
    }

    /// Notes how many tasks users have by now.
    pub(super) fn note_charges(&self) {
        let Some(charges) = self.charges.get() else { return };
        let mut news = Vec::new();
        self.state.borrow_mut().durable.take_charges(&mut news);
        charges.borrow_mut().note(news);
    }
}
