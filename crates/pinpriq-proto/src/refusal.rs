//! Why a command was refused: a word for programs, and a sentence for people.

/// A request that could not be granted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, pinpriq_derive::Letter)]
#[error("{} {sentence}", kind.word())]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// A sentence for people that names the queue, the id and the problem.
    pub sentence: String,
}

worded! {
    /// The kinds of refusals. The first word of a refusal on the wire is [`RefusalKind::word`].
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
    pub enum RefusalKind {
        /// An argument is not valid.
        BadArgument = 0 => "BADARG",
        /// The queue does not exist.
        NoQueue = 1 => "NOQUEUE",
        /// The task, the member or the schedule does not exist.
        NotFound = 2 => "NOTFOUND",
        /// The id or the queue exists already.
        Exists = 3 => "EXISTS",
        /// The queue requires ids from the caller.
        IdRequired = 4 => "IDREQUIRED",
        /// The task is not taken.
        NotTaken = 5 => "NOTTAKEN",
        /// The task is taken by another connection.
        NotOwner = 6 => "NOTOWNER",
        /// The receipt is not of a current lease.
        Stale = 7 => "STALE",
        /// The task is taken.
        Taken = 8 => "TAKEN",
        /// The state of the task does not allow the operation.
        WrongState = 9 => "WRONGSTATE",
        /// The payload is too large.
        TooLarge = 10 => "TOOLARGE",
        /// The queue is at its capacity.
        Full = 11 => "FULL",
        /// The queue is paused for input.
        Paused = 12 => "PAUSED",
        /// A bound of the server is reached; try later.
        Busy = 13 => "BUSY",
        /// The store failed, so nothing can be changed.
        Store = 14 => "STORE",
        /// The server stops. The engine itself never returns this.
        Closing = 15 => "CLOSING",
        /// The request needs several shards. The engine itself never returns this.
        CrossShard = 16 => "CROSSSHARD",
        /// A step of the transaction was refused. The sentence begins with its position, counted
        /// from 1, and the word of its refusal.
        ExecAbort = 17 => "EXECABORT",
        /// The owner of the shard is changing, and the request was not carried out. One that all
        /// shards are asked for may have been carried out by any of them. The engine itself never
        /// returns this.
        TryAgain = 18 => "TRYAGAIN",
        /// The distributed engine does not answer, and the request was not carried out. One that
        /// all shards are asked for may have been carried out by others. The engine itself never
        /// returns this.
        ClusterDown = 19 => "CLUSTERDOWN",
        /// The request may have been carried out or not. The engine itself never returns this.
        Unknown = 20 => "UNKNOWN",
        /// The user may not do this with this queue or topic.
        NoPerm = 21 => "NOPERM",
        /// The task was cancelled while it is taken, so its lease is not renewed. The sentence is
        /// the reason.
        Cancelled = 22 => "CANCELLED",
        /// The server shows a moment that is over, and changes nothing. The engine itself never
        /// returns this.
        ReadOnly = 23 => "READONLY",
    }

    /// The stable word for programs.
    fn word -> &'static str
}

impl Refusal {
    /// Creates a refusal with its sentence.
    pub fn new(kind: RefusalKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    /// The refusal of a blocked request when the server stops.
    #[must_use]
    pub fn closing() -> Self {
        Self::new(RefusalKind::Closing, "the server is stopping")
    }

    /// The refusal of a request that was not carried out because the engine under the cluster has
    /// not answered for over a second.
    #[must_use]
    pub fn cluster_down() -> Self {
        let sentence = "the engine under the cluster does not answer; nothing was carried out";
        Self::new(RefusalKind::ClusterDown, sentence)
    }
}
