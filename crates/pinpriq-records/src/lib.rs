//! Tasks as bytes: what the journal and the letters between shards have in common.
//!
//! Numbers are LEB128 in their shortest form, and texts have their length before them. What only
//! some tasks have is an *attribute*: a tag and its value, left out where it is the usual one.
//! Attributes stand in a fixed order, with the byte 0 behind the last. So a new
//! attribute costs nothing where it is not used, and a program that does not know it refuses it.
//!
//! Encoding cannot fail. Decoding is total: any bytes give a value or an error, never a panic, and
//! nothing is allocated from a length that the bytes merely declare. Where a record is kept, what
//! stands around it and when it counts are not known here.

#[cfg(planted)]
#[macro_use]
extern crate pinpriq_planted;

/// Whether a bug was planted. In a build for use there is none: see `docs/planted.md`.
#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

pub mod primitives;
pub mod settings;
pub mod task;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// They end too early.
    #[error("it is cut short")]
    Short,
    /// Nothing of that sort has this kind.
    #[error("there is no {what} of the kind {kind}")]
    UnknownKind {
        /// Of what sort: a record, a command or an output.
        what: &'static str,
        /// The byte that says the kind.
        kind: u8,
    },
    /// An attribute that this program does not know: a newer one wrote it.
    #[error("the attribute {0} is not known: a newer version wrote it")]
    UnknownAttribute(u8),
    /// A field holds what it cannot hold, or holds it in another form than the one it has.
    #[error("the field {0} is out of range")]
    OutOfRange(&'static str),
    /// Something follows that does not belong to it.
    #[error("{0} bytes follow after its end")]
    Rest(usize),
}
