//! What can be wrong with a request: a refusal of the engine, or words that are no command.

use pinpriq_proto::reply::{Refusal, RefusalKind};

use crate::clients::code::Code;
use crate::host::seat::Redirect;

/// Why a request was not carried out: a first word for programs, then a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) sentence: String,
}

impl Fault {
    /// An argument makes no sense.
    pub(crate) fn bad(sentence: impl Into<String>) -> Self {
        Self { code: RefusalKind::BadArgument.into(), sentence: sentence.into() }
    }

    /// An error with the code that every Redis server uses.
    pub(crate) fn err(sentence: impl Into<String>) -> Self {
        Self { code: Code::Err, sentence: sentence.into() }
    }

    /// The wrong number of arguments, in the wording of Redis.
    pub(crate) fn arity(name: &str) -> Self {
        let name = name.to_ascii_lowercase().replace(' ', "|");
        Self::err(format!("wrong number of arguments for '{name}' command"))
    }
}

impl From<Redirect> for Fault {
    /// In the wording of Redis, which cluster clients know.
    fn from(redirect: Redirect) -> Self {
        match redirect {
            Redirect::Moved(slot, address) => {
                Self { code: Code::Moved, sentence: format!("{slot} {address}") }
            }
            Redirect::CrossSlot => {
                let sentence = "Keys in request don't hash to the same slot".to_owned();
                Self { code: Code::CrossSlot, sentence }
            }
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.kind.into(), sentence: refusal.sentence }
    }
}
