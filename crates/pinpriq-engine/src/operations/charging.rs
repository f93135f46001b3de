//! Counts tasks for the accounts that have put them.
//!
//! A task counts from its put to its end, whichever client ends it, and wherever it moves within
//! this engine. How many tasks an account may have is decided by the caller.

use crate::engine::Engine;
use pinpriq_proto::task::Bytes;

impl Engine {
    /// Charges an account with the tasks that are put, published or imported by the commands from
    /// now on, until it is called again. Without an account nothing is counted, and nothing is
    /// kept for a task. After a restart no task has an account.
    pub fn charge(&mut self, account: Option<&Bytes>) {
        self.accounts.charge(account.cloned());
    }

    /// Moves by how much the number of tasks of each account has changed since the last call to the
    /// end of `changes`. The tasks of an emptied queue count until their memory is freed.
    pub fn take_charges(&mut self, changes: &mut Vec<(Bytes, i64)>) {
        self.accounts.take_changes(changes);
    }

    /// Counts a new task for the account that is charged now, if there is one.
    #[inline]
    pub(crate) fn count_for_account(&mut self, number: u64) {
        if self.accounts.charged().is_some() {
            self.set_account(number, self.accounts.charged().cloned());
        }
    }

    /// Counts a task no more for its account, if it has one.
    #[inline]
    pub(crate) fn forget_account(&mut self, number: u64) {
        if self.accounts.have_any() {
            self.set_account(number, None);
        }
    }

    /// Sets the account of a task.
    #[inline(never)]
    pub(crate) fn set_account(&mut self, number: u64, account: Option<Bytes>) {
        self.has_marks = true;
        let former = self.accounts.set(number, account);
        if let Some(undo) = &mut self.undo {
            undo.accounts.push((number, former));
        }
    }
}
