//! The one table of what each operation does to a task in each state.
//!
//! Every command calls [`answer`] before it touches a task, and `step.rs` checks every move against
//! the table again. [`listing`] prints the whole table. `docs/internals/states.md` contains that
//! text, and a test drives each cell through the engine. This module knows nothing about the other
//! effects of a transition (indexes, deadlines, counters).

use std::fmt::Write as _;

use pinpriq_proto::reply::{Outcome, RefusalKind};
use pinpriq_proto::task::StateKind::{self, Buried, Done, Ready, Taken, Waiting, Zombie};

/// Something that can happen to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// It is put, under an id of the server or of the caller.
    Put,
    /// It is selected and leased.
    Take,
    /// It is leased by its number, whatever its queue holds back.
    TakeByNumber,
    /// See [`pinpriq_proto::command::Command::TakeOne`].
    TakeById,
    /// It is selected and acknowledged in one step.
    Pop,
    /// A pop that could not be sent is undone.
    PutBack,
    /// See [`pinpriq_proto::command::Command::Ack`].
    Ack(By),
    /// See [`pinpriq_proto::command::Command::Release`].
    Release(By),
    /// See [`pinpriq_proto::command::Command::Bury`].
    Bury(By),
    /// See [`pinpriq_proto::command::Command::Fail`].
    Fail(By),
    /// See [`pinpriq_proto::command::Command::Touch`].
    Touch(By),
    /// See [`pinpriq_proto::command::Command::Start`].
    Start(By),
    /// A delivery that was not started is called back.
    Recall,
    /// See [`pinpriq_proto::command::Command::Update`].
    Update,
    /// See [`pinpriq_proto::command::Command::Await`].
    Await,
    /// See [`pinpriq_proto::command::Command::Dig`].
    Dig,
    /// See [`pinpriq_proto::command::Command::Kick`].
    Kick,
    /// See [`pinpriq_proto::command::Command::Kill`].
    Kill,
    /// See [`pinpriq_proto::command::Command::Cancel`].
    Cancel,
    /// See [`pinpriq_proto::command::Command::Switch`].
    Switch,
    /// See [`pinpriq_proto::command::Command::Snatch`].
    Snatch,
    /// See [`pinpriq_proto::command::Command::Restart`].
    Restart,
    /// The batches that it waits for are done.
    Follow,
    /// It is given another delay: see [`pinpriq_proto::command::BulkChange::Delay`].
    PutOff,
    /// It leaves for another queue: see [`pinpriq_proto::command::Command::Move`].
    Move,
    /// A later put of a unique task replaces it.
    Replace,
    /// It makes room for a more urgent one.
    Evict,
    /// It comes from another queue, as a dead letter or by hand, or from another server.
    Arrive,
    /// Its deadline passes.
    Deadline,
    /// The connection that took it without a TTR ends, or the server was restarted.
    HolderGone,
}

/// How a holder named the task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// By the receipt of the current lease.
    Receipt,
    /// By any other well-formed receipt.
    OldReceipt,
    /// By its bare id.
    Id,
}

/// The state of a task, as seen by the client that asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// X: it is not in the queue.
    Absent,
    /// It is in this state, which is not T.
    Resting(StateKind),
    /// T, and the connection that asks holds the lease.
    TakenHere,
    /// T, and the connection that asks does not hold the lease.
    TakenElsewhere,
}

/// The effect of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The task moves into one of these states; `None` is X.
    Moves(&'static [Option<StateKind>]),
    /// The task stays in its state, and something about it changes.
    Stays,
    /// Nothing happens. This is not a refusal.
    Nothing,
    /// The request blocks.
    Blocks,
    /// The reply is how the task ended.
    Tells(Outcome),
    /// The request is refused.
    Refused(RefusalKind),
    /// This cannot happen.
    Never,
}

const TO_READY: &[Option<StateKind>] = &[Some(Ready), Some(Waiting), None];
const TO_FAILED: &[Option<StateKind>] = &[Some(Ready), Some(Waiting), Some(Buried), None];
const TO_FINISHED: &[Option<StateKind>] = &[None, Some(Zombie), Some(Done)];
const TO_RESTING: &[Option<StateKind>] =
    &[Some(Ready), Some(Waiting), Some(Buried), Some(Zombie), Some(Done), None];

impl Standing {
    /// All standings, in the order of the table's columns.
    pub(crate) const ALL: [Self; 8] = [
        Self::Absent,
        Self::Resting(Ready),
        Self::TakenHere,
        Self::TakenElsewhere,
        Self::Resting(Waiting),
        Self::Resting(Buried),
        Self::Resting(Zombie),
        Self::Resting(Done),
    ];
}

/// Returns what `operation` does to a task with this `standing`.
pub(crate) const fn answer(operation: Operation, standing: Standing) -> Answer {
    match operation {
        Operation::Put => match standing {
            Standing::Absent => Answer::Moves(&[Some(Ready), Some(Waiting), Some(Buried)]),
            _ => Answer::Refused(RefusalKind::Exists),
        },
        Operation::Take => match standing {
            Standing::Resting(Ready) => Answer::Moves(&[Some(Taken)]),
            _ => Answer::Never,
        },
        Operation::TakeByNumber => match standing {
            Standing::Resting(Ready | Waiting | Buried) => Answer::Moves(&[Some(Taken)]),
            _ => Answer::Refused(RefusalKind::NotFound),
        },
        Operation::TakeById => match standing {
            Standing::Resting(Ready | Waiting | Buried) => Answer::Moves(&[Some(Taken)]),
            _ => Answer::Nothing,
        },
        Operation::Kick => match standing {
            Standing::Resting(Waiting | Buried) => Answer::Moves(&[Some(Ready), None]),
            _ => Answer::Refused(RefusalKind::NotFound),
        },
        Operation::Pop => match standing {
            Standing::Resting(Ready) => Answer::Moves(TO_FINISHED),
            _ => Answer::Never,
        },
        Operation::PutBack => match standing {
            Standing::Absent | Standing::Resting(Zombie | Done) => {
                Answer::Moves(&[Some(Ready), None])
            }
            _ => Answer::Nothing,
        },
        Operation::Ack(by) => held(by, standing, Answer::Moves(TO_FINISHED)),
        Operation::Release(by) => held(by, standing, Answer::Moves(TO_READY)),
        Operation::Bury(by) => held(by, standing, Answer::Moves(&[Some(Buried)])),
        Operation::Fail(by) => held(by, standing, Answer::Moves(TO_FAILED)),
        Operation::Move => match standing {
            Standing::Resting(_) => Answer::Moves(&[None]),
            _ => Answer::Never,
        },
        Operation::Replace => match standing {
            Standing::Resting(Ready | Waiting | Buried) => {
                Answer::Moves(&[Some(Ready), Some(Waiting)])
            }
            Standing::TakenHere | Standing::TakenElsewhere => Answer::Refused(RefusalKind::Taken),
            _ => Answer::Never,
        },
        Operation::Evict => match standing {
            Standing::Resting(Ready) => Answer::Moves(&[None]),
            _ => Answer::Never,
        },
        Operation::Arrive => match standing {
            Standing::Absent => {
                Answer::Moves(&[Some(Ready), Some(Waiting), Some(Buried), Some(Zombie), Some(Done)])
            }
            _ => Answer::Never,
        },
        Operation::Touch(By::Id) => match standing {
            Standing::Resting(Ready) => Answer::Stays,
            Standing::Resting(_) => Answer::Nothing,
            _ => held(By::Id, standing, Answer::Stays),
        },
        Operation::Touch(by) | Operation::Start(by) => held(by, standing, Answer::Stays),
        Operation::Recall => match standing {
            Standing::TakenHere | Standing::TakenElsewhere => Answer::Moves(&[Some(Ready), None]),
            _ => Answer::Never,
        },
        _ => by_id(operation, standing),
    }
}

/// The rows of the operations that require the holder of a lease.
const fn held(by: By, standing: Standing, done: Answer) -> Answer {
    match (by, standing) {
        (By::Receipt, Standing::TakenHere | Standing::TakenElsewhere)
        | (By::Id, Standing::TakenHere) => done,
        (By::Receipt, _) => Answer::Never,
        (By::OldReceipt, _) => Answer::Refused(RefusalKind::Stale),
        (By::Id, Standing::TakenElsewhere) => Answer::Refused(RefusalKind::NotOwner),
        (By::Id, Standing::Absent) => Answer::Refused(RefusalKind::NotFound),
        (By::Id, Standing::Resting(_)) => Answer::Refused(RefusalKind::NotTaken),
    }
}

/// The rows of the operations that name a task by its id, and of those that no client requests.
const fn by_id(operation: Operation, standing: Standing) -> Answer {
    use RefusalKind::{NotFound, NotOwner, NotTaken, Taken as IsTaken, WrongState};
    const TAKEN: Answer = Answer::Refused(IsTaken);
    match (operation, standing) {
        (Operation::PutOff, Standing::Resting(Ready)) => Answer::Moves(&[Some(Waiting)]),
        (Operation::PutOff, Standing::Resting(Waiting)) => {
            Answer::Moves(&[Some(Ready), Some(Waiting)])
        }
        // The TTL of a buried task may pass. It then takes effect only when the task is dug up.
        (Operation::Kill, Standing::Absent)
        | (Operation::Restart, Standing::Resting(Ready))
        | (Operation::Deadline, Standing::Resting(Buried))
        | (Operation::Cancel, Standing::Resting(Zombie | Done))
        | (Operation::PutOff, _) => Answer::Nothing,
        (Operation::Kill, _)
        | (Operation::Cancel, Standing::Resting(_))
        | (Operation::Deadline, Standing::Resting(Ready | Zombie)) => Answer::Moves(&[None]),

        (Operation::Deadline, Standing::Absent | Standing::Resting(Done))
        | (Operation::HolderGone, Standing::Absent | Standing::Resting(_)) => Answer::Never,
        (Operation::Deadline, Standing::Resting(_)) => Answer::Moves(&[Some(Ready), None]),
        (Operation::Deadline | Operation::HolderGone, _) => Answer::Moves(TO_FAILED),

        (Operation::Follow, Standing::Resting(Waiting)) => Answer::Moves(TO_READY),
        (Operation::Follow, _) => Answer::Never,

        (_, Standing::Absent) => Answer::Refused(NotFound),

        (Operation::Update, Standing::TakenElsewhere) => Answer::Refused(NotOwner),
        (Operation::Update | Operation::Cancel, _) => Answer::Stays,

        (Operation::Await, Standing::Resting(Buried)) => Answer::Tells(Outcome::Buried),
        (Operation::Await, Standing::Resting(Zombie | Done)) => Answer::Tells(Outcome::Acked),
        (Operation::Await, _) => Answer::Blocks,

        (Operation::Snatch, Standing::TakenHere | Standing::TakenElsewhere) => {
            Answer::Moves(TO_READY)
        }
        (Operation::Snatch, _) => Answer::Refused(NotTaken),

        (_, Standing::TakenHere | Standing::TakenElsewhere) => TAKEN,

        (Operation::Switch, _) => Answer::Moves(TO_RESTING),
        (Operation::Dig, Standing::Resting(Buried)) | (Operation::Restart, _) => {
            Answer::Moves(TO_READY)
        }
        (Operation::Dig, _) => Answer::Refused(WrongState),
        _ => Answer::Never,
    }
}

/// Whether `operation` may move a task from `from` to `to` (`None` is X).
pub(crate) fn permits(
    operation: Operation,
    from: Option<StateKind>,
    to: Option<StateKind>,
) -> bool {
    let standings: &[Standing] = match from {
        None => &[Standing::Absent],
        Some(Taken) => &[Standing::TakenHere, Standing::TakenElsewhere],
        Some(kind) => &[Standing::Resting(kind)],
    };
    standings.iter().any(|standing| match answer(operation, *standing) {
        Answer::Moves(targets) => targets.contains(&to),
        _ => false,
    })
}

/// The rows of the listing, each with its label.
pub(crate) const ROWS: [(&str, Operation); 41] = [
    ("put with that id", Operation::Put),
    ("take", Operation::Take),
    ("take by number", Operation::TakeByNumber),
    ("take by id", Operation::TakeById),
    ("pop", Operation::Pop),
    ("put back", Operation::PutBack),
    ("ack by receipt", Operation::Ack(By::Receipt)),
    ("ack by another receipt", Operation::Ack(By::OldReceipt)),
    ("ack by id", Operation::Ack(By::Id)),
    ("release by receipt", Operation::Release(By::Receipt)),
    ("release by another receipt", Operation::Release(By::OldReceipt)),
    ("release by id", Operation::Release(By::Id)),
    ("bury by receipt", Operation::Bury(By::Receipt)),
    ("bury by another receipt", Operation::Bury(By::OldReceipt)),
    ("bury by id", Operation::Bury(By::Id)),
    ("fail by receipt", Operation::Fail(By::Receipt)),
    ("fail by another receipt", Operation::Fail(By::OldReceipt)),
    ("fail by id", Operation::Fail(By::Id)),
    ("touch by receipt", Operation::Touch(By::Receipt)),
    ("touch by another receipt", Operation::Touch(By::OldReceipt)),
    ("touch by id", Operation::Touch(By::Id)),
    ("start by receipt", Operation::Start(By::Receipt)),
    ("start by another receipt", Operation::Start(By::OldReceipt)),
    ("called back", Operation::Recall),
    ("update", Operation::Update),
    ("await", Operation::Await),
    ("dig", Operation::Dig),
    ("kick", Operation::Kick),
    ("kill", Operation::Kill),
    ("cancel", Operation::Cancel),
    ("switch", Operation::Switch),
    ("snatch", Operation::Snatch),
    ("restart", Operation::Restart),
    ("delayed in bulk", Operation::PutOff),
    ("the batches before it are done", Operation::Follow),
    ("move to another queue", Operation::Move),
    ("put again, to replace it", Operation::Replace),
    ("make room for a more urgent one", Operation::Evict),
    ("arrive by import or from another queue", Operation::Arrive),
    ("its deadline passes", Operation::Deadline),
    ("its holder is gone", Operation::HolderGone),
];

/// Returns the whole table as Markdown: a row for each operation, a column for each standing.
#[must_use]
pub fn listing() -> String {
    let mut text = String::from(
        "| operation | X | R | T, held here | T, held elsewhere | W | B | Z | D |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, operation) in ROWS {
        let _ = write!(text, "| {name} |");
        for standing in Standing::ALL {
            let _ = write!(text, " {} |", describe(answer(operation, standing)));
        }
        text.push('\n');
    }
    text
}

/// Describes one cell of the listing.
fn describe(answer: Answer) -> String {
    match answer {
        Answer::Moves(targets) => {
            let letters: Vec<String> = targets
                .iter()
                .map(|target| target.map_or_else(|| "X".to_owned(), |kind| kind.to_string()))
                .collect();
            letters.join(", ")
        }
        Answer::Stays => "changed in place".to_owned(),
        Answer::Nothing => "=".to_owned(),
        Answer::Blocks => "blocks".to_owned(),
        Answer::Tells(outcome) => outcome.word().to_owned(),
        Answer::Refused(kind) => kind.word().to_owned(),
        Answer::Never => "—".to_owned(),
    }
}
