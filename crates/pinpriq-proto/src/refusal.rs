//! Why a command was refused: a word for programs, and a sentence for people.

/// A request that could not be granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// A sentence for people that names the queue, the id and the problem.
    pub sentence: String,
}

/// The kinds of refusals. The first word of a refusal on the wire is [`RefusalKind::word`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RefusalKind {
    /// An argument is not valid.
    BadArgument,
    /// The queue does not exist.
    NoQueue,
    /// The task, the member or the schedule does not exist.
    NotFound,
    /// The id or the queue exists already.
    Exists,
    /// The queue requires ids from the caller.
    IdRequired,
    /// The task is not taken.
    NotTaken,
    /// The task is taken by another connection.
    NotOwner,
    /// The receipt is not of a current lease.
    Stale,
    /// The task is taken.
    Taken,
    /// The state of the task does not allow the operation.
    WrongState,
    /// The payload is too large.
    TooLarge,
    /// The queue is at its capacity.
    Full,
    /// The queue is paused for input.
    Paused,
    /// A bound of the server is reached; try later.
    Busy,
    /// The store failed, so nothing can be changed.
    Store,
    /// The server stops. The engine itself never returns this.
    Closing,
    /// The request needs several shards. The engine itself never returns this.
    CrossShard,
    /// A step of the transaction was refused. The sentence begins with its position, counted from
    /// 1, and the word of its refusal.
    ExecAbort,
    /// The owner of the shard is changing, and the request was not carried out. The engine itself
    /// never returns this.
    TryAgain,
    /// The distributed engine does not answer, and the request was not carried out. The engine
    /// itself never returns this.
    ClusterDown,
    /// The request may have been carried out or not. The engine itself never returns this.
    Unknown,
    /// The user may not do this with this queue or topic.
    NoPerm,
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
