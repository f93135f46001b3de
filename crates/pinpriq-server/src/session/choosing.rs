//! A take over the queues of several shards: what was heard, and what to do next.
//!
//! First, each shard tells the task that would be taken first there, and the shard with the most
//! urgent one of all is asked to hand it over. If it has fewer than are wanted, the shard with the
//! next most urgent one adds to them. If none has any, the client waits in all of them.
//! The first that hands a task over gives the answer, and the waits elsewhere end. What another one
//! hands over meanwhile goes back. A pop that waits only holds its task, under a lease, until the
//! shard learns that it is chosen: so what goes back was never gone.
//!
//! This module decides, and `home::desk::choosing` writes the letters.

use std::rc::Rc;

use pinpriq_proto::command::{End, Order, Selection, TakeMode, Wait};
use pinpriq_proto::limits::TASKS_PER_ANSWER_MAX;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{Receipt, RequestId, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::Holds;

use crate::letters::letter::{Part, Piece};

/// A take over several shards that is under way.
pub(crate) struct Choosing {
    pub(crate) request: RequestId,
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
    /// What the answer has already, while further shards add to it.
    gathered: Gathered,
    stage: Stage,
}

/// What an answer has already.
#[derive(Clone, Copy, Default)]
struct Gathered {
    tasks: usize,
    /// The number of tasks, or of groups if these are wanted.
    count: u32,
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
pub(crate) type Urgency = (i128, i128, i128);

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
    /// This is a part of the answer. The share at this index must add to it, or it is complete.
    Add(Output, Holds, Option<usize>),
    /// The answer is complete with the parts that it has.
    Complete,
    /// What the answer has must go back, and this is the answer instead.
    Withdraw(Reply),
    /// There never is an answer.
    Lost,
    /// The shard must have this back.
    GiveBack(Output),
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
    pub(crate) fn new(
        request: RequestId,
        (wish, shares): (Wish, Vec<Share>),
        (wait, now): (Wait, Timestamp),
    ) -> Self {
        let until = match wait {
            Wait::For(span) => Some(now.after(span)),
            Wait::No | Wait::Forever => None,
        };
        let stage = Stage::Looking { is_soon: false };
        let (held, ownerless, gathered) = (None, None, Gathered::default());
        Self { request, wish, shares, held, wait, until, ownerless, gathered, stage }
    }

    /// Returns how long it waits from now on.
    pub(crate) fn wait(&self, now: Timestamp) -> Wait {
        self.until.map_or(self.wait, |until| Wait::For(until.since(now)))
    }

    /// Whether there is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.stage == Stage::Answered
    }

    /// Whether the answer has tasks, and further shards add to it.
    pub(crate) const fn is_growing(&self) -> bool {
        self.gathered.tasks > 0
    }

    /// Returns how many tasks or groups the answer still lacks.
    pub(crate) fn lacks(&self) -> u32 {
        let Wish::Tasks(tasks) = &self.wish else { return 1 };
        let room = TASKS_PER_ANSWER_MAX.saturating_sub(self.gathered.tasks);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        tasks.count.saturating_sub(self.gathered.count).min(room)
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
            (Heard::Tasks(output, holds), Stage::Taking) => self.add(from, output, holds),
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
            (Heard::Reply(Reply::Refused(refusal)), Stage::Taking)
                if self.is_growing() && self.may_lose(&refusal) =>
            {
                self.stage = Stage::Answered;
                Next::Withdraw(Reply::Refused(refusal))
            }
            (Heard::Reply(_), Stage::Taking) if self.is_growing() => self.fill(),
            (Heard::Reply(reply @ Reply::Refused(_)), _) => self.answer(reply),
            (Heard::Reply(Reply::DeadlineSoon), Stage::Waiting) => self.answer(Reply::DeadlineSoon),
            (Heard::Reply(reply), Stage::Looking { is_soon }) => {
                let is_soon = is_soon || matches!(reply, Reply::DeadlineSoon);
                self.stage = Stage::Looking { is_soon };
                if let Reply::Shown(tasks) = reply {
                    let selection = self.selection();
                    let head = tasks.first().map(|task| urgency(selection, task));
                    self.shares[index].head = head;
                }
                self.go_on(may_wait)
            }
            (Heard::Reply(_), Stage::Waiting) => self.hear_nothing(may_wait),
            // Another client has taken it meanwhile, or its lease is over.
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

    /// Adds tasks to the answer, and asks the next shard if it lacks some.
    fn add(&mut self, from: usize, output: Output, holds: Holds) -> Next {
        let was_growing = self.is_growing();
        self.count(&output);
        // An answer has payloads on the disk of one shard at most.
        let is_enough = !self.is_take() || self.lacks() == 0 || !holds.is_empty();
        match self.next_share().filter(|_| !is_enough) {
            Some(index) => Next::Add(output, holds, Some(index)),
            None if was_growing => {
                self.stage = Stage::Answered;
                Next::Add(output, holds, None)
            }
            None => self.hand_on(from, output, holds),
        }
    }

    /// Asks the next shard to add to the answer, which is complete if there is none.
    pub(crate) fn fill(&mut self) -> Next {
        if let Some(index) = self.next_share() {
            return Next::Take(index);
        }
        self.stage = Stage::Answered;
        Next::Complete
    }

    /// Counts the tasks of an output, or its groups if these are wanted.
    fn count(&mut self, output: &Output) {
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
        self.gathered.tasks += tasks.len();
        self.gathered.count = self.gathered.count.saturating_add(count);
    }

    /// Whether tasks may be lost that a shard has popped before this refusal.
    fn may_lose(&self, refusal: &Refusal) -> bool {
        let is_open = matches!(refusal.kind, RefusalKind::Unknown | RefusalKind::Store);
        self.holds_first() && is_open
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
        self.gathered = Gathered::default();
        if let Some(index) = self.next_share() {
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

    /// Returns the share with the most urgent first task of those that were not asked for it.
    fn next_share(&mut self) -> Option<usize> {
        let heads = self.shares.iter().enumerate();
        let heads = heads.filter_map(|(index, share)| Some((share.head?, index)));
        let (_, index) = heads.min()?;
        self.shares[index].head = None;
        Some(index)
    }

    const fn selection(&self) -> Selection {
        match &self.wish {
            Wish::Reserve => Selection::DEFAULT,
            Wish::Tasks(tasks) => tasks.selection,
        }
    }
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

pub(crate) fn heard(piece: Piece) -> Heard {
    match piece {
        Piece::Output(Output::Reply { reply: reply @ Reply::Refused(_), .. }, _)
        | Piece::Part(Part::Reply(reply)) => Heard::Reply(reply),
        Piece::Output(output, holds) => Heard::Tasks(output, holds),
        // That is what stands for a wait that has ended before its shard was asked.
        Piece::Part(_) => Heard::Reply(Reply::Done),
        Piece::Lost | Piece::Members(_) => Heard::Lost,
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
