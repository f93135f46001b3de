//! What a client has asked of a shard whose owner may change, until it is done.
//!
//! When the owner of a shard changes, `home::recovery` decides by this what is asked of the next
//! one, and of what it is unknown whether it has happened. A single server keeps no such log.

use std::collections::VecDeque;

use pinpriq_proto::command::{Command, Share, Wait};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::task::RequestId;
use pinpriq_proto::time::Timestamp;

use crate::facts::Facts;
use crate::letters::letter::Part;

/// The log of one client and one shard, oldest first.
#[derive(Clone, Default)]
pub(crate) struct Log {
    asked: VecDeque<Asked>,
}

/// Something that was asked.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) what: What,
    /// When it was asked.
    pub(crate) at: Timestamp,
    /// The number of bytes that it occupies in a letter.
    pub(crate) length: usize,
    /// Whether the shard has carried it out, or waits to do so with the request blocked.
    pub(crate) carried_out: bool,
    /// Whether the shard still owes the reply, or its part.
    pub(crate) is_owed: bool,
    /// Whether a former owner may have begun it.
    pub(crate) may_have_begun: bool,
}

/// What was asked.
#[derive(Clone)]
pub(crate) enum What {
    /// An encoded command.
    Command(RequestId, Vec<u8>),
    /// A part of a reply.
    Part(Wanted),
}

impl What {
    /// Whether the client was reset.
    pub(crate) const fn is_reset(&self) -> bool {
        matches!(self, Self::Part(Wanted::Reset))
    }
}

/// A part of a reply that was asked of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// The reply of the engine.
    Reply,
    /// The facts about the shard.
    Facts,
    /// That the client was reset there.
    Reset,
    /// The number of deliveries.
    Delivered,
}

impl Log {
    /// Notes that this is being asked, and whether a reply will come.
    pub(crate) fn push(&mut self, what: What, length: usize, at: Timestamp, is_owed: bool) {
        let (carried_out, may_have_begun) = (false, false);
        self.keep(Asked { what, at, length, carried_out, is_owed, may_have_begun });
    }

    /// Notes that this number of bytes was carried out, and that this number of replies and parts
    /// has come.
    pub(crate) fn note(&mut self, mut consumed: usize, replies: usize) {
        for asked in &mut self.asked {
            if consumed == 0 {
                break;
            }
            if !asked.carried_out && asked.length > 0 {
                consumed = consumed.saturating_sub(asked.length);
                asked.carried_out = true;
            }
        }
        for asked in self.asked.iter_mut().filter(|asked| asked.is_owed).take(replies) {
            asked.is_owed = false;
            asked.carried_out |= asked.length == 0;
        }
        while self.asked.pop_front_if(|it| it.carried_out && !it.is_owed).is_some() {}
    }

    /// Returns the number of bytes that were not carried out.
    pub(crate) fn under_way(&self) -> usize {
        self.asked.iter().filter(|it| !it.carried_out).map(|it| it.length).sum()
    }

    /// Returns everything that is not done, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Asked> {
        self.asked.iter()
    }

    /// Removes everything.
    pub(crate) fn take(&mut self) -> VecDeque<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// Keeps this, after everything that was kept before.
    pub(crate) fn keep(&mut self, asked: Asked) {
        self.asked.push_back(asked);
    }

    /// Whether everything is done.
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }
}

/// Returns what stands for the part of a shard that has no owner, or whose owner cannot say it.
pub(crate) fn substitute(wanted: Wanted, shard: usize) -> Part {
    match wanted {
        Wanted::Reply => {
            let sentence = format!(
                "the owner of shard {shard} is changing: any shard may have carried this out; send \
                 it again"
            );
            Part::Reply(Reply::Refused(Refusal::new(RefusalKind::TryAgain, sentence)))
        }
        Wanted::Facts => Part::Facts(Box::<Facts>::default()),
        Wanted::Reset => Part::Done,
        Wanted::Delivered => Part::Delivered(0),
    }
}

/// Returns how long a command may block.
pub(crate) fn wait_of(command: &Command<'_>) -> Option<Wait> {
    let mut found = None;
    with_wait(command, |wait| *found.insert(wait));
    found
}

/// Returns a command that may block for as long as `change` says, given for how long it may now.
pub(crate) fn with_wait<'c>(
    command: &Command<'c>,
    change: impl FnOnce(Wait) -> Wait,
) -> Command<'c> {
    let mut command = *command;
    match &mut command {
        Command::Take(take)
        | Command::TakeDone { take, .. }
        | Command::Share(Share::Wait { take, .. }) => take.wait = change(take.wait),
        Command::Reserve(reserve) => reserve.wait = change(reserve.wait),
        Command::Await { wait, .. } => *wait = change(*wait),
        Command::PutInLine { room, .. } => {
            if let Wait::For(changed) = change(Wait::For(*room)) {
                *room = changed;
            }
        }
        _ => {}
    }
    command
}
