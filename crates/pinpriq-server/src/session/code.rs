//! The first words of refusals, for programs: those of the engine, and two of the RESP door.
//!
//! How often each was answered is counted by `host::tally`.

use pinpriq_engine::reply::RefusalKind;

/// The first word of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// A refusal of the engine, or one of the same kind.
    Kind(RefusalKind),
    /// What every Redis server says so.
    Err,
    /// There is no such version of RESP.
    NoProto,
}

impl Code {
    /// How many there are.
    pub(crate) const COUNT: usize = RefusalKind::ALL.len() + 2;

    /// All of them, in the order of their indexes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        RefusalKind::ALL.into_iter().map(Self::Kind).chain([Self::Err, Self::NoProto])
    }

    /// Its place among all.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Kind(kind) => kind as usize,
            Self::Err => Self::COUNT - 2,
            Self::NoProto => Self::COUNT - 1,
        }
    }

    /// The stable word for programs.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.word(),
            Self::Err => "ERR",
            Self::NoProto => "NOPROTO",
        }
    }
}

impl From<RefusalKind> for Code {
    fn from(kind: RefusalKind) -> Self {
        Self::Kind(kind)
    }
}
