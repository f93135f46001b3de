//! A take over the queues of several shards, and what was heard of it.
//!
//! If tasks are acknowledged first and a shard may refuse the rest, each is asked before whether it
//! does. One that comes to refuse it after that counts as empty. Then each shard tells the task
//! that would be taken first there, and the shard with the most urgent one of all is asked to hand
//! it over. If it has fewer than are wanted, the shard with the next most urgent one adds to them.
//! If none has any, the client waits in all of them.
//! The first that hands a task over gives the answer, and the waits elsewhere end. What another one
//! hands over meanwhile goes back. A pop that waits only holds its task, under a lease, until the
//! shard learns that it is chosen: so what goes back was never gone.
//!
//! `home::desk::choosing` asks the shards, and decides what is next.

use pinpriq_proto::command::{Done, End, Order, Selection, TakeMode, Wait};
use pinpriq_proto::limits::TASKS_PER_ANSWER_MAX;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{Receipt, RequestId, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::Holds;

use crate::letters::letter::{Part, Piece};
use crate::sharding::Sharding;

/// What is to be acknowledged before a take, with its own bytes.
pub(crate) struct KeptDone {
    queue: Box<[u8]>,
    receipt: Receipt,
    result: Option<Box<[u8]>>,
}

impl KeptDone {
    pub(crate) fn of(done: &Done<'_>) -> Self {
        let Done { queue, receipt, result } = *done;
        Self { queue: queue.into(), receipt, result: result.map(Into::into) }
    }

    pub(crate) fn done(&self) -> Done<'_> {
        let Self { queue, receipt, result } = self;
        Done { queue, receipt: *receipt, result: result.as_deref() }
    }
}

/// A take over several shards that is under way.
pub(crate) struct Choosing {
    pub(crate) request: RequestId,
    pub(crate) wish: Wish,
    /// The shards that are asked.
    pub(crate) shares: Vec<Share>,
    /// What this shard holds for a pop that has chosen it.
    pub(crate) held: Option<(usize, Vec<Receipt>)>,
    /// How long it waits: until this moment, if it waits and has an end.
    pub(crate) wait: Wait,
    pub(crate) until: Option<Timestamp>,
    /// Whether tasks were acknowledged after each shard was asked whether it refuses the rest.
    pub(crate) is_checked: bool,
    /// The refusal of a shard that had no owner when it was asked.
    pub(crate) ownerless: Option<Refusal>,
    /// How many tasks the answer has already, while further shards add to it, and how many of
    /// these count: all, or one of each group if groups are wanted.
    pub(crate) gathered: (usize, u32),
    pub(crate) stage: Stage,
}

/// What is taken.
pub(crate) enum Wish {
    /// One job, as a reserve takes it.
    Reserve,
    /// Tasks.
    Tasks(Tasks),
}

/// Which tasks are taken, and how.
pub(crate) struct Tasks {
    pub(crate) member: Option<Box<[u8]>>,
    pub(crate) count: u32,
    pub(crate) selection: Selection,
    pub(crate) mode: TakeMode,
}

/// The part of one shard.
#[derive(Default)]
pub(crate) struct Share {
    pub(crate) shard: usize,
    /// The queues that are there: none, if a job is held there, or tasks are acknowledged there.
    pub(crate) queues: Vec<Box<[u8]>>,
    /// The tasks to acknowledge there first, with their queues.
    pub(crate) done: Vec<KeptDone>,
    /// Whether the reply that it owes says what has become of these.
    pub(crate) tells_done: bool,
    /// Whether it owes a reply.
    pub(crate) owes: bool,
    /// The place of its first task among those of all shards.
    pub(crate) head: Option<Urgency>,
}

impl Share {
    /// Returns the queues as a command has them.
    pub(crate) fn names(&self) -> Vec<&[u8]> {
        self.queues.iter().map(|queue| &**queue).collect()
    }
}

/// The place of a task: by its priority, by when it was put, and by its number. The lowest comes
/// first.
pub(crate) type Urgency = (i128, i128, i128);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Every shard says whether it refuses, before anything is acknowledged.
    Checking,
    /// Every shard tells its first task.
    Looking {
        /// Whether a job that the client holds is about to be over.
        is_soon: bool,
    },
    /// One shard is asked for its tasks.
    Taking,
    /// The client waits in every shard.
    Waiting,
    /// The shard of the share at this index is to pop what it holds.
    Popping(usize),
    /// It begins anew when no shard owes a reply.
    Settling,
    /// There is an answer.
    Answered,
}

/// What a shard has said.
pub(crate) enum Heard {
    /// It hands tasks over.
    Tasks(Output, Holds),
    /// Anything else.
    Reply(Reply),
    /// It says nothing more.
    Lost,
}

impl Choosing {
    /// Whether there is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.stage == Stage::Answered
    }

    /// Whether the answer has tasks, and further shards add to it.
    pub(crate) const fn is_growing(&self) -> bool {
        self.gathered.0 > 0
    }

    /// Whether a shard owes a reply.
    pub(crate) fn is_owed(&self) -> bool {
        self.shares.iter().any(|share| share.owes)
    }

    /// Whether one shard may refuse what another one has acknowledged tasks for: an order that a
    /// queue does not have, or a lane that is not there.
    pub(crate) fn needs_check(&self) -> bool {
        let Wish::Tasks(tasks) = &self.wish else { return false };
        let is_usual = tasks.selection.narrow || tasks.selection == Selection::DEFAULT;
        let may_refuse = !is_usual || tasks.member.is_some();
        may_refuse && self.shares.iter().any(|share| !share.done.is_empty())
    }

    /// Returns what a shard has said with a piece of news. A refusal that comes too late says that
    /// it has nothing.
    pub(crate) fn heard(&self, piece: Piece) -> Heard {
        match heard(piece) {
            Heard::Reply(Reply::Refused(refusal)) if self.comes_too_late(&refusal) => {
                Heard::Reply(Reply::Shown(Vec::new()))
            }
            said => said,
        }
    }

    /// Whether a shard refuses only now, after tasks were acknowledged: a queue has another order
    /// since, or a lane has gone. The client would believe that nothing was done. A client that
    /// waits hears it as any other does.
    fn comes_too_late(&self, refusal: &Refusal) -> bool {
        let is_of_take = matches!(refusal.kind, RefusalKind::BadArgument | RefusalKind::NotFound);
        let takes = matches!(self.stage, Stage::Looking { .. } | Stage::Taking);
        self.is_checked && is_of_take && takes
    }

    /// Returns how many tasks or groups the answer still lacks.
    pub(crate) fn lacks(&self) -> u32 {
        let Wish::Tasks(tasks) = &self.wish else { return 1 };
        let room = TASKS_PER_ANSWER_MAX.saturating_sub(self.gathered.0);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        tasks.count.saturating_sub(self.gathered.1).min(room)
    }

    /// Counts the tasks of an output, or its groups if these are wanted.
    pub(crate) fn count(&mut self, output: &Output) {
        let (Wish::Tasks(wish), Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }) =
            (&self.wish, output)
        else {
            return;
        };
        let of = |task: &TaskRecord| (task.queue.clone(), task.terms.key.clone());
        let is_companion = |pair: &&[TaskRecord]| {
            wish.selection.group && pair[1].terms.key.is_some() && of(&pair[0]) == of(&pair[1])
        };
        let companions = tasks.windows(2).filter(is_companion).count();
        let count = u32::try_from(tasks.len() - companions).unwrap_or(u32::MAX);
        self.gathered.0 += tasks.len();
        self.gathered.1 = self.gathered.1.saturating_add(count);
    }

    /// Whether what is taken after a wait is held before it is popped.
    pub(crate) fn holds_first(&self) -> bool {
        matches!(&self.wish, Wish::Tasks(tasks) if tasks.mode == TakeMode::Pop)
    }

    /// Whether tasks may be lost that a shard has popped before this refusal.
    pub(crate) fn may_lose(&self, refusal: &Refusal) -> bool {
        let is_open = matches!(refusal.kind, RefusalKind::Unknown | RefusalKind::Store);
        self.holds_first() && is_open
    }

    /// Returns the share with the most urgent first task of those that were not asked for it.
    pub(crate) fn next_share(&mut self) -> Option<usize> {
        let heads = self.shares.iter().enumerate();
        let heads = heads.filter_map(|(index, share)| Some((share.head?, index)));
        let (_, index) = heads.min()?;
        self.shares[index].head = None;
        Some(index)
    }

    pub(crate) const fn selection(&self) -> Selection {
        match &self.wish {
            Wish::Reserve => Selection::DEFAULT,
            Wish::Tasks(tasks) => tasks.selection,
        }
    }
}

/// Returns the queues by their shards, which come in the order of their first queues.
pub(crate) fn shares_of(queues: &[&[u8]], sharding: Sharding) -> Vec<Share> {
    let mut shares = Vec::new();
    for queue in queues {
        share_at(&mut shares, sharding.shard_of(queue)).queues.push((*queue).into());
    }
    shares
}

/// Returns the share of a shard. Adds it if there is none.
pub(crate) fn share_at(shares: &mut Vec<Share>, shard: usize) -> &mut Share {
    let at = shares.iter().position(|share| share.shard == shard);
    let at = at.unwrap_or_else(|| {
        shares.push(Share { shard, ..Share::default() });
        shares.len() - 1
    });
    &mut shares[at]
}

/// Returns the place of a task.
pub(crate) fn urgency(selection: Selection, task: &TaskRecord) -> Urgency {
    // A task without a priority is never first.
    let priority = i128::from(task.progress.priority.unwrap_or_default());
    let (put_at, number) = (i128::from(task.put_at.ms()), i128::from(task.number));
    let priority = if selection.from == End::Min { priority } else { -priority };
    match selection.order {
        Order::Oldest => (priority, put_at, number),
        Order::Newest => (priority, -put_at, -number),
    }
}

/// Returns what a shard has said with a piece of news.
pub(crate) fn heard(piece: Piece) -> Heard {
    match piece {
        Piece::Output(Output::Reply { reply: reply @ Reply::Refused(_), .. }, _)
        | Piece::Part(Part::Reply(reply)) => Heard::Reply(reply),
        Piece::Output(output, holds) => Heard::Tasks(output, holds),
        // That is what stands for a wait that has ended before its shard was asked.
        Piece::Part(_) => Heard::Reply(Reply::Done),
        Piece::Lost | Piece::Members(_) | Piece::Tubes(_) => Heard::Lost,
    }
}
