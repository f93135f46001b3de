//! The first words of refusals, for programs: those of the engine, and those of the
//! doors for RESP and HTTP.
//!
//! What they count belongs to the server.

use crate::refusal::RefusalKind;

/// The first word of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// A refusal of the engine, or one of the same kind.
    Kind(RefusalKind),
    /// The code that every Redis server uses for an error.
    Err,
    /// There is no such version of RESP.
    NoProto,
    /// Another node of the cluster has the queue, and this client wants to ask it.
    Moved,
    /// The queues of the request may be at several nodes.
    CrossSlot,
    /// The path of a request over HTTP knows other methods.
    Method,
    /// The body of a request over HTTP has the wrong type.
    MediaType,
    /// The body of a request over HTTP did not arrive in time.
    Late,
    /// No user has signed in.
    NoAuth,
    /// The password or the token is wrong.
    WrongPass,
}

impl Code {
    /// Those that the engine does not know.
    const OTHERS: [Self; 9] = [
        Self::Err,
        Self::NoProto,
        Self::Moved,
        Self::CrossSlot,
        Self::Method,
        Self::MediaType,
        Self::Late,
        Self::NoAuth,
        Self::WrongPass,
    ];

    /// The number of codes.
    pub const COUNT: usize = RefusalKind::ALL.len() + Self::OTHERS.len();

    /// All of them, in the order of their indexes.
    pub fn all() -> impl Iterator<Item = Self> {
        RefusalKind::ALL.into_iter().map(Self::Kind).chain(Self::OTHERS)
    }

    /// Returns the code with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::all().find(|code| code.word() == word)
    }

    /// Returns its place among all codes.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Kind(kind) => kind as usize,
            Self::Err => Self::COUNT - 9,
            Self::NoProto => Self::COUNT - 8,
            Self::Moved => Self::COUNT - 7,
            Self::CrossSlot => Self::COUNT - 6,
            Self::Method => Self::COUNT - 5,
            Self::MediaType => Self::COUNT - 4,
            Self::Late => Self::COUNT - 3,
            Self::NoAuth => Self::COUNT - 2,
            Self::WrongPass => Self::COUNT - 1,
        }
    }

    /// Returns the stable word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.word(),
            Self::Err => "ERR",
            Self::NoProto => "NOPROTO",
            Self::Moved => "MOVED",
            Self::CrossSlot => "CROSSSLOT",
            Self::Method => "METHOD",
            Self::MediaType => "MEDIATYPE",
            Self::Late => "LATE",
            Self::NoAuth => "NOAUTH",
            Self::WrongPass => "WRONGPASS",
        }
    }
}

impl From<RefusalKind> for Code {
    fn from(kind: RefusalKind) -> Self {
        Self::Kind(kind)
    }
}
