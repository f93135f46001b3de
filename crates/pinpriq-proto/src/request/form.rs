//! How HTTP writes the answer to a command.

/// How an answer is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// No body.
    Nothing,
    /// The id of a task that was put, whether it is new, and how it ended.
    Put,
    /// The same as a line of a batch, without a head.
    Line,
    /// Tasks in an array.
    Tasks,
    /// One task, or none: its payload as it is.
    Octets,
    /// One task, which has to be there.
    Task,
    /// The payload of one task, which has to be there.
    TaskOctets,
    /// A page of tasks with its cursor.
    Page,
    /// The new state of a task.
    State,
    /// The new deadline.
    Deadline,
    /// How a task ended, and its state.
    Outcome,
    /// How many.
    Count,
    /// No body, or an unknown thing if the count is zero.
    Removed,
    /// Why a task is not handed out.
    Explained,
    /// A page of a bulk change.
    Bulk,
    /// A page of leases.
    Leases,
    /// A page of shares.
    Shares,
    /// The reply as the engine gave it, for the handler that has asked.
    Value,
    /// The figures of all queues together.
    Figures,
    /// The members of a topic.
    Members,
    /// A schedule.
    Schedule,
    /// A limit that several queues use together.
    Limit,
    /// A batch.
    Batch,
    /// A batch that was awaited, and whether it is done.
    BatchOutcome,
    /// How many tasks are pending.
    Pending,
    /// The next slot of a schedule.
    Next,
    /// The id of a task that a schedule has put.
    Fired,
    /// The incarnation of a member.
    Joined,
    /// The results for several receipts.
    Answers,
    /// The parts of several commands.
    Multi,
    /// What became of a batch that is one step.
    Atomic,
}
