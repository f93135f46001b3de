//! What can be wrong with a request: a refusal of the engine, or words that are no command.

use super::code::Code;
use crate::refusal::{Refusal, RefusalKind};

/// Why a request was not carried out: a first word for programs, then a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What it is, for programs.
    pub code: Code,
    /// What it is, for people.
    pub sentence: String,
}

impl Fault {
    /// An argument makes no sense.
    #[must_use]
    pub fn bad(sentence: impl Into<String>) -> Self {
        Self { code: RefusalKind::BadArgument.into(), sentence: sentence.into() }
    }

    /// An error with the code that every Redis server uses.
    #[must_use]
    pub fn err(sentence: impl Into<String>) -> Self {
        Self { code: Code::Err, sentence: sentence.into() }
    }

    /// The wrong number of arguments, in the wording of Redis.
    #[must_use]
    pub fn arity(name: &str) -> Self {
        let name = name.to_ascii_lowercase().replace(' ', "|");
        Self::err(format!("wrong number of arguments for '{name}' command"))
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.kind.into(), sentence: refusal.sentence }
    }
}

/// Returns a client's word as part of a sentence: printable, and cut short.
#[must_use]
pub fn shown(word: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    let cut = if word.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    format!("'{}{cut}'", word[..word.len().min(SHOWN_BYTES_MAX)].escape_ascii())
}
