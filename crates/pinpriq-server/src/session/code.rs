//! The first words of refusals, for programs: those of the engine, and two of the RESP door.
//!
//! `host::tally` counts them.

use pinpriq_engine::reply::RefusalKind;

/// The first word of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// A refusal of the engine, or one of the same kind.
    Kind(RefusalKind),
    /// The code that every Redis server uses for an error.
    Err,
    /// There is no such version of RESP.
    NoProto,
}

impl Code {
    /// The number of codes.
    pub(crate) const COUNT: usize = RefusalKind::ALL.len() + 2;

    /// All of them, in the order of their indexes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        RefusalKind::ALL.into_iter().map(Self::Kind).chain([Self::Err, Self::NoProto])
    }

    /// Returns its place among all codes.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Kind(kind) => kind as usize,
            Self::Err => Self::COUNT - 2,
            Self::NoProto => Self::COUNT - 1,
        }
    }

    /// Returns the stable word for programs.
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
