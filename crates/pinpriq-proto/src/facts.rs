//! What is known about a command before it is carried out: where it goes, which names it has, what
//! it needs of a disk.
//!
//! The facts stand on the declaration of each command, and `pinpriq-derive` makes the methods of
//! [`Command`](crate::command::Command) from them. The types here are what those methods return.

use std::sync::Arc;

use crate::limits::NAME_BYTES_MAX;
use crate::names::QueueName;
use crate::refusal::{Refusal, RefusalKind};
use crate::rights::{Need, Right};

/// Where a command belongs, when there are several engines.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'c> {
    /// Where this queue or topic lives.
    Queue(&'c [u8]),
    /// Where these queues or topics live, if that is one shard.
    Queues(&'c [&'c [u8]]),
    /// Where this queue and the batches that a put into it names live, if that is one shard.
    Bonds {
        /// The queue.
        queue: &'c [u8],
        /// The batch that the task is in.
        batch: Option<&'c [u8]>,
        /// Those that it waits for, as [`encode_names`](crate::batches::encode_names) writes them.
        after: &'c [u8],
    },
    /// Where the queue of this task and the batches that its record names live, if that is one
    /// shard.
    Record {
        /// The queue.
        queue: &'c [u8],
        /// The batch that the task is in.
        batch: Option<&'c [u8]>,
        /// Those that it waits for.
        after: &'c [Arc<[u8]>],
    },
    /// Where both of these queues live, if that is one shard.
    Pair(&'c [u8], &'c [u8]),
    /// Where this schedule and its queue live, if that is one shard.
    Schedule(&'c [u8], &'c [u8]),
    /// Where a queue, the one for its dead letters and the limits that it uses live, if that is one
    /// shard.
    Uses {
        /// The queue.
        queue: &'c [u8],
        /// The queue for its dead letters, if that is set too.
        dead_letters: Option<&'c [u8]>,
        /// The names of the limits, with commas between.
        uses: &'c [u8],
    },
    /// Where the tasks that it acknowledges and the queues that it takes from live, if that is one
    /// shard.
    Done,
    /// Where the queues of its steps live, if that is one shard.
    Steps,
    /// Where the client has its subscriptions and credits.
    Deliveries,
    /// Everywhere. The replies are joined in this way.
    Everywhere(Joining),
}

/// How the replies of several engines become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joining {
    /// Figures are added up.
    Figures,
    /// The first names, at most this number.
    Names(usize),
    /// The first leases, at most this number.
    Leases(u32),
    /// A member is known if it is known anywhere, and leaves all lanes.
    Membership,
    /// The one that has found a task.
    Found,
    /// All tubes.
    Tubes,
}

/// What a command needs of a disk that is nearly full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disk {
    /// Nothing that it lacks, or what is decided where the bytes are known.
    Served,
    /// Room that there is not.
    Refused,
    /// Room for leases.
    Leases,
}

/// What a command needs besides being carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Care {
    /// Nothing.
    Plain,
    /// It may name moments by the wall clock.
    OwnTime,
    /// It may go through many tasks or queues, and has a short reply.
    LongWork,
    /// The reply may have many parts, or many bytes for a short request.
    LongReply,
    /// It takes one group, which may have many tasks.
    Group,
    /// Deliveries may follow.
    Subscription,
}

/// Stands for what only the engine knows: all that a command touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anywhere;

/// A name that is neither that of a queue nor of a lane, and what it is called in a refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called<'c>(pub(crate) &'static str, pub(crate) &'c [u8]);

/// Queues, or with a member its lanes in these topics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<'c>(pub(crate) &'c [&'c [u8]], pub(crate) Option<&'c [u8]>);

/// What a right is needed on.
pub(crate) trait Subject<'c> {
    /// Tells each need.
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>));
}

/// What has names.
pub(crate) trait Named<'c> {
    /// Refuses names that are too long.
    fn check(&self) -> Result<(), Refusal>;
    /// Returns the first name.
    fn name(&self) -> Option<&'c [u8]>;
}

impl<'c> Subject<'c> for Anywhere {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        tell(Need::Wherever(right));
    }
}

impl<'c> Subject<'c> for &'c [u8] {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        tell(Need::On(right, self));
    }
}

impl<'c> Subject<'c> for QueueName<'c> {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        tell(Need::On(right, self.name));
    }
}

impl<'c, S: Subject<'c>> Subject<'c> for Option<S> {
    /// Without a name, all of them are meant.
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        match self {
            Some(subject) => subject.each(right, tell),
            None => Anywhere.each(right, tell),
        }
    }
}

impl<'c> Subject<'c> for &'c [&'c [u8]] {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        self.iter().for_each(|name| name.each(right, tell));
    }
}

impl<'c> Named<'c> for () {
    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn name(&self) -> Option<&'c [u8]> {
        None
    }
}

impl<'c> Named<'c> for &'c [u8] {
    #[inline]
    fn check(&self) -> Result<(), Refusal> {
        check_name("queue name", self)
    }

    fn name(&self) -> Option<&'c [u8]> {
        Some(self)
    }
}

impl<'c> Named<'c> for Called<'c> {
    fn check(&self) -> Result<(), Refusal> {
        check_name(self.0, self.1)
    }

    fn name(&self) -> Option<&'c [u8]> {
        Some(self.1)
    }
}

impl<'c> Named<'c> for QueueName<'c> {
    #[inline]
    fn check(&self) -> Result<(), Refusal> {
        check_queue(*self)
    }

    fn name(&self) -> Option<&'c [u8]> {
        Some(self.name)
    }
}

impl<'c, N: Named<'c>> Named<'c> for Option<N> {
    fn check(&self) -> Result<(), Refusal> {
        self.as_ref().map_or(Ok(()), N::check)
    }

    fn name(&self) -> Option<&'c [u8]> {
        self.as_ref().and_then(N::name)
    }
}

impl<'c> Named<'c> for Lanes<'c> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every take")]
    fn check(&self) -> Result<(), Refusal> {
        if let Some(member) = self.1 {
            check_member(member)?;
        }
        for name in self.0 {
            name.check()?;
        }
        Ok(())
    }

    fn name(&self) -> Option<&'c [u8]> {
        self.0.first().copied()
    }
}

/// Where a put goes: the queue alone is a name, and batches are checked elsewhere.
impl<'c> Named<'c> for Destination<'c> {
    #[inline]
    fn check(&self) -> Result<(), Refusal> {
        self.name().map_or(Ok(()), |name| name.check())
    }

    #[inline]
    fn name(&self) -> Option<&'c [u8]> {
        match *self {
            Self::Queue(queue) | Self::Bonds { queue, .. } => Some(queue),
            _ => None,
        }
    }
}

/// One after the other.
impl<'c, A: Named<'c>, B: Named<'c>> Named<'c> for (A, B) {
    fn check(&self) -> Result<(), Refusal> {
        self.0.check()?;
        self.1.check()
    }

    fn name(&self) -> Option<&'c [u8]> {
        self.0.name()
    }
}

impl<'c> From<&'c [u8]> for Destination<'c> {
    fn from(name: &'c [u8]) -> Self {
        Self::Queue(name)
    }
}

impl<'c> From<QueueName<'c>> for Destination<'c> {
    fn from(queue: QueueName<'c>) -> Self {
        Self::Queue(queue.name)
    }
}

impl<'c> From<&'c [&'c [u8]]> for Destination<'c> {
    fn from(queues: &'c [&'c [u8]]) -> Self {
        Self::Queues(queues)
    }
}

impl<'a> Destination<'a> {
    /// Without queues, all subscriptions are meant.
    pub(crate) const fn of_subscription(queues: &'a [&'a [u8]]) -> Self {
        if queues.is_empty() { Self::Deliveries } else { Self::Queues(queues) }
    }
}

/// Refuses the name of a member that is too long.
pub fn check_member(member: &[u8]) -> Result<(), Refusal> {
    check_name("member", member)
}

/// Refuses the name of a queue or lane that is too long.
#[inline]
pub fn check_queue(queue: QueueName<'_>) -> Result<(), Refusal> {
    queue.member.map_or(Ok(()), check_member)?;
    let what = if queue.member.is_some() { "topic" } else { "queue name" };
    check_name(what, queue.name)
}

/// Refuses a name that is too long. `what` it is called stands in the refusal.
#[inline]
pub fn check_name(what: &str, name: &[u8]) -> Result<(), Refusal> {
    if name.len() > NAME_BYTES_MAX { Err(too_long(what, name.len())) } else { Ok(()) }
}

#[cold]
fn too_long(what: &str, length: usize) -> Refusal {
    Refusal::new(
        RefusalKind::BadArgument,
        format!("a {what} has at most {NAME_BYTES_MAX} bytes, and this one has {length}"),
    )
}
