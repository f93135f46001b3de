//! For which account tasks were put, and how the number of tasks of each account changes.
//!
//! Only tasks of a command that an account was charged with are known, and only in memory. What an
//! account is, and how many tasks it may have, is decided elsewhere.

use std::collections::BTreeMap;

use pinpriq_proto::task::Bytes;

/// The accounts of tasks.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// What is charged with the tasks that are put now.
    charged: Option<Bytes>,
    /// The tasks that an account was charged with, by number.
    of_task: BTreeMap<u64, Bytes>,
    /// How the number of tasks has changed since the last question.
    changes: BTreeMap<Bytes, i64>,
}

impl Accounts {
    /// Charges an account with the tasks that are put from now on, or none. Returns what was
    /// charged before.
    pub(crate) const fn charge(&mut self, account: Option<Bytes>) -> Option<Bytes> {
        std::mem::replace(&mut self.charged, account)
    }

    /// Returns what is charged with the tasks that are put now.
    #[inline]
    pub(crate) const fn charged(&self) -> Option<&Bytes> {
        self.charged.as_ref()
    }

    /// Whether an account was charged with any task that is there.
    #[inline]
    pub(crate) fn have_any(&self) -> bool {
        !self.of_task.is_empty()
    }

    /// Returns the account of a task.
    pub(crate) fn of(&self, number: u64) -> Option<&Bytes> {
        self.of_task.get(&number)
    }

    /// Sets the account of a task, and returns the one before.
    pub(crate) fn set(&mut self, number: u64, account: Option<Bytes>) -> Option<Bytes> {
        if let Some(account) = &account {
            *self.changes.entry(account.clone()).or_default() += 1;
        }
        let former = match account {
            Some(account) => self.of_task.insert(number, account),
            None => self.of_task.remove(&number),
        };
        if let Some(former) = &former {
            *self.changes.entry(former.clone()).or_default() -= 1;
        }
        former
    }

    /// Returns the numbers of the tasks that have an account. For checks only.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.of_task.keys().copied()
    }

    /// Moves the changes since the last call to the end of `changes`.
    pub(crate) fn take_changes(&mut self, changes: &mut Vec<(Bytes, i64)>) {
        let taken = std::mem::take(&mut self.changes);
        changes.extend(taken.into_iter().filter(|(_, change)| *change != 0));
    }
}
