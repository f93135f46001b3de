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
pub(crate) mod malformed;
pub mod primitives;
pub mod settings;
pub mod task;

pub use self::malformed::Malformed;

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
