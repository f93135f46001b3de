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

/// The kinds of refusals. The first word of a refusal on the wire is [`RefusalKind::word`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
pub enum RefusalKind {
    /// An argument is not valid.
    BadArgument = 0,
    /// The queue does not exist.
    NoQueue = 1,
    /// The task, the member or the schedule does not exist.
    NotFound = 2,
    /// The id or the queue exists already.
    Exists = 3,
    /// The queue requires ids from the caller.
    IdRequired = 4,
    /// The task is not taken.
    NotTaken = 5,
    /// The task is taken by another connection.
    NotOwner = 6,
    /// The receipt is not of a current lease.
    Stale = 7,
    /// The task is taken.
    Taken = 8,
    /// The state of the task does not allow the operation.
    WrongState = 9,
    /// The payload is too large.
    TooLarge = 10,
    /// The queue is at its capacity.
    Full = 11,
    /// The queue is paused for input.
    Paused = 12,
    /// A bound of the server is reached; try later.
    Busy = 13,
    /// The store failed, so nothing can be changed.
    Store = 14,
    /// The server stops. The engine itself never returns this.
    Closing = 15,
    /// The request needs several shards. The engine itself never returns this.
    CrossShard = 16,
    /// A step of the transaction was refused. The sentence begins with its position, counted from
    /// 1, and the word of its refusal.
    ExecAbort = 17,
    /// The owner of the shard is changing, and the request was not carried out. The engine itself
    /// never returns this.
    TryAgain = 18,
    /// The distributed engine does not answer, and the request was not carried out. The engine
    /// itself never returns this.
    ClusterDown = 19,
    /// The request may have been carried out or not. The engine itself never returns this.
    Unknown = 20,
    /// The user may not do this with this queue or topic.
    NoPerm = 21,
}

impl RefusalKind {
    /// All kinds.
    pub const ALL: [Self; 22] = [
        Self::BadArgument,
        Self::NoQueue,
        Self::NotFound,
        Self::Exists,
        Self::IdRequired,
        Self::NotTaken,
        Self::NotOwner,
        Self::Stale,
        Self::Taken,
        Self::WrongState,
        Self::TooLarge,
        Self::Full,
        Self::Paused,
        Self::Busy,
        Self::Store,
        Self::Closing,
        Self::CrossShard,
        Self::ExecAbort,
        Self::TryAgain,
        Self::ClusterDown,
        Self::Unknown,
        Self::NoPerm,
    ];

    /// The stable word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BadArgument => "BADARG",
            Self::NoQueue => "NOQUEUE",
            Self::NotFound => "NOTFOUND",
            Self::Exists => "EXISTS",
            Self::IdRequired => "IDREQUIRED",
            Self::NotTaken => "NOTTAKEN",
            Self::NotOwner => "NOTOWNER",
            Self::Stale => "STALE",
            Self::Taken => "TAKEN",
            Self::WrongState => "WRONGSTATE",
            Self::TooLarge => "TOOLARGE",
            Self::Full => "FULL",
            Self::Paused => "PAUSED",
            Self::Busy => "BUSY",
            Self::Store => "STORE",
            Self::Closing => "CLOSING",
            Self::CrossShard => "CROSSSHARD",
            Self::ExecAbort => "EXECABORT",
            Self::TryAgain => "TRYAGAIN",
            Self::ClusterDown => "CLUSTERDOWN",
            Self::Unknown => "UNKNOWN",
            Self::NoPerm => "NOPERM",
        }
    }
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
