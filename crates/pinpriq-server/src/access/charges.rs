//! How many tasks users have in one shard, beside what their limits allow.
//!
//! The engine counts for the accounts that it is given, which are the names of users here. Only
//! users with a limit are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::users::{Limit, Name};
use pinpriq_proto::command::{BatchCommand, Command, Step};
use pinpriq_proto::reply::Refusal;
use pinpriq_proto::task::Bytes;

use super::roster::Roster;
use super::usage::{Usage, beyond};

/// The tasks of users in one shard. When the shard goes, they count no more.
#[derive(Debug)]
pub(crate) struct Charges {
    roster: Arc<Roster>,
    counts: BTreeMap<Bytes, Charged>,
}

/// The tasks of one user in the shard.
#[derive(Debug)]
struct Charged {
    usage: Arc<Usage>,
    count: u64,
}

impl Charges {
    pub(crate) const fn new(roster: Arc<Roster>) -> Self {
        Self { roster, counts: BTreeMap::new() }
    }

    /// Refuses what would give a user more tasks than its limit allows. Users who are gone have
    /// none.
    ///
    /// Shards check this for themselves. If several of them put at the same moment, each may put
    /// one command more.
    pub(crate) fn check(&self, account: &[u8], command: &Command<'_>) -> Result<(), Refusal> {
        let new = tasks_put_by(command);
        if new == 0 {
            return Ok(());
        }
        let (users, _) = self.roster.users();
        let user = str::from_utf8(account).ok().and_then(|name| users.user(name));
        let Some(user) = user else { return Ok(()) };
        let Some(most) = user.limits.of(Limit::Tasks) else { return Ok(()) };
        let present = self.roster.usages.usage(&user.name).tasks();
        if present.saturating_add(new) > most.get() {
            return Err(beyond(user, Limit::Tasks, most));
        }
        Ok(())
    }

    /// Notes by how much the number of tasks of users has changed.
    pub(crate) fn note(&mut self, changes: Vec<(Bytes, i64)>) {
        for (account, change) in changes {
            let Some(name) = name_of(&account) else { continue };
            let usage = || self.roster.usages.usage(&name);
            let kept = self.counts.entry(account.clone());
            let charged = kept.or_insert_with(|| Charged { usage: usage(), count: 0 });
            charged.count = charged.count.saturating_add_signed(change);
            charged.usage.add_tasks(change);
            if charged.count == 0 {
                self.counts.remove(&account);
            }
        }
    }
}

impl Drop for Charges {
    fn drop(&mut self) {
        for charged in self.counts.values() {
            charged.usage.add_tasks(-charged.count.cast_signed());
        }
    }
}

fn name_of(account: &[u8]) -> Option<Name> {
    str::from_utf8(account).ok()?.parse().ok()
}

/// Returns how many tasks a command puts at least. A publication puts one for each member. A batch
/// counts as a task.
fn tasks_put_by(command: &Command<'_>) -> u64 {
    match command {
        Command::Put(_)
        | Command::PutInLine { .. }
        | Command::PutBuried { .. }
        | Command::PutNumbered(_)
        | Command::Publish(_)
        | Command::Import(_)
        | Command::Batch(BatchCommand::Open { .. }) => 1,
        Command::Transaction(steps) => {
            let each = steps.iter().map(|step| match step {
                Step::Command(command) => tasks_put_by(command),
                Step::Nothing | Step::Bad(_) => 0,
            });
            each.sum()
        }
        _ => 0,
    }
}
