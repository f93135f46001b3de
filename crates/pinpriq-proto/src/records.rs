//! Tasks as bytes: what the journal and the letters between shards share.
//!
//! Numbers are LEB128 in their shortest form, and texts have their length before them. A field that
//! only some tasks need is an *attribute*: a tag and its value, left out if the value is the usual
//! one. Attributes are in a fixed order, and the byte 0 follows the last one. So a new
//! attribute costs nothing where it is not used, and a program that does not know it refuses it.
//!
//! Encoding cannot fail. Decoding is total: any bytes give a value or an error, never a panic, and
//! no allocation depends on a length that was only declared. This crate knows nothing about where a
//! record is kept, what surrounds it, or when it counts.

pub mod details;
pub mod primitives;
pub mod settings;
pub mod task;

use crate::carried::Carried;
use crate::letters::{Arena, Letter};
use crate::named_limits::LimitRecord;
use crate::schedule::{Course, Plan, Scheduled};
use crate::task::{Origin, TaskId};

/// Gives types the same bytes in records as in letters.
macro_rules! recorded {
    ($($type:ty),+) => {$(
        impl $type {
            /// Appends it to a record.
            pub fn put_in(&self, out: &mut Vec<u8>) {
                self.put(out);
            }

            /// Takes what [`Self::put_in`] appends.
            pub fn take_from(input: &mut &[u8]) -> Result<Self, Malformed> {
                let (arena, whole) = (Arena::default(), *input);
                let mut rest = whole;
                let taken = Self::take(&mut rest, &arena)?;
                *input = &whole[whole.len() - rest.len()..];
                Ok(taken)
            }
        }
    )+};
}

recorded!(TaskId, Origin, Scheduled, Plan, Course, LimitRecord, Carried);

/// Why bytes could not be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// The bytes end too early.
    #[error("it is cut short")]
    Short,
    /// The kind is not known.
    #[error("{what} {kind} is not known: a newer version wrote it")]
    UnknownKind {
        /// What was decoded: a record, a command or an output.
        what: &'static str,
        /// The byte of the kind.
        kind: u8,
    },
    /// A field that this program does not know, since a newer version wrote it.
    #[error("the field {tag} of {what} is not known: a newer version wrote it")]
    UnknownField {
        /// What has the field.
        what: &'static str,
        /// The tag of the field.
        tag: u8,
    },
    /// An attribute that this program does not know, since a newer version wrote it.
    #[error("the attribute {0} is not known: a newer version wrote it")]
    UnknownAttribute(u8),
    /// A field has a value that is not allowed, or is not in its only valid form.
    #[error("the field {0} is out of range")]
    OutOfRange(&'static str),
    /// Bytes follow after the end.
    #[error("{0} bytes follow after its end")]
    Rest(usize),
}
