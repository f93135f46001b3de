//! A take over the queues of several shards: what was heard, and what to do next.
//!
//! First, each shard tells the task that would be taken first there, and the shard with the most
//! urgent one of all is asked to hand it over. If none has any, the client waits in all of them.
//! The first that hands a task over gives the answer, and the waits elsewhere end. What another one
//! hands over meanwhile goes back. A pop that waits only holds its task, under a lease, until the
//! shard is told that it is chosen: so what goes back was never gone.
//!
//! This module decides, and `home::desk::choosing` writes the letters.

use std::rc::Rc;

use pinpriq_engine::command::{End, Order, Selection, TakeMode, Wait};
use pinpriq_engine::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_engine::task::{Receipt, RequestId, TaskRecord};
use pinpriq_engine::time::Timestamp;
use pinpriq_store::durable::Holds;

use crate::letters::letter::{Part, Piece};

/// A take over several shards that is under way.
pub(crate) struct Choosing {
    pub(crate) request: RequestId,
    /// The gap that is kept for its answer.
    pub(crate) gap: u64,
    pub(crate) wish: Wish,
    /// The shards that are asked.
    pub(crate) shares: Vec<Share>,
    /// What this shard holds for a pop that has chosen it.
    held: Option<(usize, Vec<Receipt>)>,
    /// How long it waits: until this moment, if it waits and has an end.
    wait: Wait,
    until: Option<Timestamp>,
    /// The refusal of a shard that had no owner when it was asked.
    ownerless: Option<Refusal>,
    stage: Stage,
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
    pub(crate) queues: Vec<Rc<[u8]>>,
    /// The tasks to acknowledge there first, with their queues.
    pub(crate) done: Vec<(Box<[u8]>, Receipt)>,
    /// Whether the reply that it owes says what has become of these.
    pub(crate) tells_done: bool,
    /// Whether it owes a reply.
    pub(crate) owes: bool,
    /// The place of its first task among those of all shards.
    head: Option<Urgency>,
}

impl Share {
    pub(crate) fn of(shard: usize) -> Self {
        Self { shard, ..Self::default() }
    }
}

/// The place of a task: by its priority, by when it was put, and by its number. The lowest comes
/// first.
type Urgency = (i128, i128, i128);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
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

/// What to do next.
pub(crate) enum Next {
    /// Nothing before more is heard.
    Hear,
    /// All shards must tell their first task.
    Look,
    /// The share at this index must hand over its tasks.
    Take(usize),
    /// The client must wait in every shard.
    Wait,
    /// The share at this index must pop what it holds, and the waits elsewhere end.
    Pop(usize),
    /// This is the answer, and it comes from this shard, if any.
    Answer(Option<usize>, Reply, Holds),
    /// There never is an answer.
    Lost,
    /// The shard must have this back.
    GiveBack(Output),
}

/// What a shard has said.
enum Heard {
    /// It hands tasks over.
    Tasks(Output, Holds),
    /// Anything else.
    Reply(Reply),
    /// It says nothing more.
    Lost,
}

impl Choosing {
    pub(crate) fn new(
        (request, gap): (RequestId, u64),
        (wish, shares): (Wish, Vec<Share>),
        (wait, now): (Wait, Timestamp),
    ) -> Self {
        let until = match wait {
            Wait::For(span) => Some(now.after(span)),
            Wait::No | Wait::Forever => None,
        };
        let stage = Stage::Looking { is_soon: false };
        let (held, ownerless) = (None, None);
        Self { request, gap, wish, shares, held, wait, until, ownerless, stage }
    }

    /// Returns how long it waits from now on.
    pub(crate) fn wait(&self, now: Timestamp) -> Wait {
        self.until.map_or(self.wait, |until| Wait::For(until.since(now)))
    }

    /// Whether there is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.stage == Stage::Answered
    }

    /// Whether there is an answer, and no shard owes a reply.
    pub(crate) fn is_over(&self) -> bool {
        self.is_answered() && !self.is_owed()
    }

    /// Whether a shard owes a reply.
    fn is_owed(&self) -> bool {
        self.shares.iter().any(|share| share.owes)
    }

    /// Notes that all shards are about to be asked for their first task.
    pub(crate) fn begin(&mut self) {
        self.stage = Stage::Looking { is_soon: false };
        self.ownerless = None;
        for share in &mut self.shares {
            share.head = None;
        }
    }

    /// Notes that a shard is not asked, since it has no owner.
    pub(crate) fn pass_over(&mut self, refusal: Refusal) {
        self.ownerless = Some(refusal);
    }

    /// Removes and returns what a shard holds, and the shard.
    pub(crate) const fn take_held(&mut self) -> Option<(usize, Vec<Receipt>)> {
        self.held.take()
    }

    /// Returns what a shard holds.
    pub(crate) fn held(&self) -> &[Receipt] {
        self.held.as_ref().map_or(&[], |(_, held)| held)
    }

    /// Returns what to do if nothing more has to be heard.
    pub(crate) fn go_on(&mut self, may_wait: bool) -> Next {
        match self.stage {
            _ if self.is_owed() => Next::Hear,
            Stage::Looking { is_soon } => self.look_around(is_soon, may_wait),
            Stage::Settling => Next::Look,
            Stage::Taking | Stage::Waiting | Stage::Popping(_) | Stage::Answered => Next::Hear,
        }
    }

    /// Takes the reply of a shard, and returns what to do. `may_wait` says whether the client may
    /// still be made to wait.
    pub(crate) fn hear(&mut self, from: usize, piece: Piece, may_wait: bool) -> Next {
        let Some(index) = self.shares.iter().position(|share| share.shard == from) else {
            unreachable!("shard {from} was not asked")
        };
        let share = &mut self.shares[index];
        share.owes = false;
        let tells_done = std::mem::take(&mut share.tells_done);
        match (heard(piece), self.stage) {
            (Heard::Tasks(output, holds), Stage::Taking) => self.hand_on(from, output, holds),
            (Heard::Tasks(output, holds), Stage::Popping(at)) if at == index => {
                self.held = None;
                self.hand_on(from, output, holds)
            }
            (Heard::Tasks(output, holds), Stage::Waiting) => {
                if !self.holds_first() {
                    return self.hand_on(from, output, holds);
                }
                self.held = Some((from, receipts_of(&output)));
                self.stage = Stage::Popping(index);
                Next::Pop(index)
            }
            (Heard::Tasks(..), _) if self.is_take() && planted!(SecondGrantKept) => Next::Hear,
            (Heard::Tasks(output, _), _) => Next::GiveBack(output),
            (_, Stage::Answered) => Next::Hear,
            (Heard::Lost, _) => {
                self.stage = Stage::Answered;
                Next::Lost
            }
            (Heard::Reply(_), Stage::Popping(at)) if at != index => Next::Hear,
            (Heard::Reply(_), Stage::Settling) => self.go_on(may_wait),
            (Heard::Reply(Reply::Refused(refusal)), Stage::Looking { .. } | Stage::Waiting)
                if refusal.kind == RefusalKind::TryAgain && !tells_done =>
            {
                self.ownerless = Some(refusal);
                self.hear_nothing(may_wait)
            }
            (Heard::Reply(reply @ Reply::Refused(_)), _) => self.answer(reply),
            (Heard::Reply(Reply::DeadlineSoon), Stage::Waiting) => self.answer(Reply::DeadlineSoon),
            (Heard::Reply(reply), Stage::Looking { is_soon }) => {
                let is_soon = is_soon || matches!(reply, Reply::DeadlineSoon);
                self.stage = Stage::Looking { is_soon };
                if let Reply::Shown(tasks) = reply {
                    let head = tasks.first().map(|task| self.urgency(task));
                    self.shares[index].head = head;
                }
                self.go_on(may_wait)
            }
            (Heard::Reply(_), Stage::Waiting) => self.hear_nothing(may_wait),
            // Somebody else has taken it meanwhile, or its lease is over.
            (Heard::Reply(_), Stage::Taking | Stage::Popping(_)) => {
                self.held = None;
                self.stage = Stage::Settling;
                self.go_on(may_wait)
            }
        }
    }

    /// Goes on after a shard that has nothing.
    fn hear_nothing(&mut self, may_wait: bool) -> Next {
        if self.stage != Stage::Waiting || self.is_owed() {
            return self.go_on(may_wait);
        }
        self.answer_nothing()
    }

    /// Whether it is no reserve.
    const fn is_take(&self) -> bool {
        matches!(self.wish, Wish::Tasks(_))
    }

    /// Whether what is taken after a wait is held before it is popped.
    fn holds_first(&self) -> bool {
        matches!(&self.wish, Wish::Tasks(tasks) if tasks.mode == TakeMode::Pop)
    }

    fn hand_on(&mut self, from: usize, output: Output, holds: Holds) -> Next {
        let Output::Reply { reply, .. } = output else {
            unreachable!("shard {from} was asked for no deliveries")
        };
        self.stage = Stage::Answered;
        Next::Answer(Some(from), reply, holds)
    }

    fn answer(&mut self, reply: Reply) -> Next {
        self.stage = Stage::Answered;
        Next::Answer(None, reply, Holds::default())
    }

    /// Answers that there is nothing, as far as that is known.
    fn answer_nothing(&mut self) -> Next {
        let popped = self.holds_first();
        let nothing = || Reply::Tasks { tasks: Vec::new(), popped };
        let reply = self.ownerless.take().map_or_else(nothing, Reply::Refused);
        self.answer(reply)
    }

    /// Decides once all shards have told their first task.
    fn look_around(&mut self, is_soon: bool, may_wait: bool) -> Next {
        let heads = self.shares.iter().enumerate();
        let heads = heads.filter_map(|(index, share)| Some((share.head?, index)));
        let first = if planted!(LeastUrgentHeadTaken) {
            heads.max()
        } else {
            heads
                .min_by_key(|(head, index)| ((!planted!(FirstShardFirst)).then_some(*head), *index))
        };
        if let Some((_, index)) = first {
            self.stage = Stage::Taking;
            return Next::Take(index);
        }
        if is_soon {
            return self.answer(Reply::DeadlineSoon);
        }
        if self.wait.blocks() && may_wait {
            self.stage = Stage::Waiting;
            // It waits for the next owners too.
            self.ownerless = None;
            return Next::Wait;
        }
        self.answer_nothing()
    }

    fn urgency(&self, task: &TaskRecord) -> Urgency {
        let selection = match &self.wish {
            Wish::Reserve => Selection::DEFAULT,
            Wish::Tasks(tasks) => tasks.selection,
        };
        // A task without a priority is never first.
        let priority = i128::from(task.progress.priority.unwrap_or_default());
        let (put_at, number) = (i128::from(task.put_at.ms()), i128::from(task.number));
        let priority = if selection.from == End::Min { priority } else { -priority };
        match selection.order {
            Order::Oldest => (priority, put_at, number),
            Order::Newest => (priority, -put_at, -number),
        }
    }
}

fn heard(piece: Piece) -> Heard {
    match piece {
        Piece::Output(Output::Reply { reply: reply @ Reply::Refused(_), .. }, _)
        | Piece::Part(Part::Reply(reply)) => Heard::Reply(reply),
        Piece::Output(output, holds) => Heard::Tasks(output, holds),
        // That is what stands for a wait that has ended before its shard was asked.
        Piece::Part(_) => Heard::Reply(Reply::Done),
        Piece::Lost => Heard::Lost,
    }
}

/// Returns the receipts of the tasks that an output hands over.
pub(crate) fn receipts_of(output: &Output) -> Vec<Receipt> {
    match output {
        Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } => {
            tasks.iter().filter_map(TaskRecord::receipt).collect()
        }
        _ => Vec::new(),
    }
}
