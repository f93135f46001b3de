//! Details: what is kept beside tasks and queues, each under a number of its own.
//!
//! A detail is written whole whenever it changes, and forgotten at once. A line of the table below
//! declares a kind. Its records in the journal, and how a log is folded, surveyed, resharded and
//! written again, follow from that. Its bytes are in `records/details.rs`, and what it does is
//! decided by the engine.

use crate::batches::BatchRecord;
use crate::named_limits::LimitRecord;
use crate::shares::ShareRecord;
use crate::task::Bytes;
use crate::unique::WindowRecord;

/// What the record of a detail is.
pub trait DetailRecord: Clone + Into<Detail> {
    /// Its kind.
    const KIND: DetailKind;

    /// The record in a detail of this kind.
    fn of(detail: &Detail) -> Option<&Self>;
}

/// Declares the kinds of details: the record of each, the types of its records in the journal
/// (while it is there, and once it is gone), and the name that decides its shard.
macro_rules! details {
    ($(
        $(#[doc = $doc:literal])+
        $kind:ident($record:ident, home = $home:ident): $there:literal, $gone:literal;
    )*) => {
        /// The kinds of details.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum DetailKind {
            $($(#[doc = $doc])+ $kind,)*
        }

        /// A detail as it is now. It replaces the one of its kind and number.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Detail {
            $($(#[doc = $doc])+ $kind($record),)*
        }

        impl DetailKind {
            /// All of them.
            pub const ALL: [Self; [$($there),*].len()] = [$(Self::$kind),*];

            /// The types of its records in the journal: of one that is there, and of the end of
            /// one.
            #[must_use]
            pub const fn types(self) -> (u8, u8) {
                match self {
                    $(Self::$kind => ($there, $gone),)*
                }
            }
        }

        impl Detail {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> DetailKind {
                match self {
                    $(Self::$kind(_) => DetailKind::$kind,)*
                }
            }

            /// Distinguishes it from all others of its kind.
            #[must_use]
            pub const fn number(&self) -> u64 {
                match self {
                    $(Self::$kind(record) => record.number,)*
                }
            }

            /// The name that decides in which shard it is.
            #[must_use]
            pub const fn home(&self) -> &Bytes {
                match self {
                    $(Self::$kind(record) => &record.$home,)*
                }
            }
        }

        $(impl From<$record> for Detail {
            fn from(record: $record) -> Self {
                Self::$kind(record)
            }
        }

        impl DetailRecord for $record {
            const KIND: DetailKind = DetailKind::$kind;

            fn of(detail: &Detail) -> Option<&Self> {
                if let Detail::$kind(record) = detail { Some(record) } else { None }
            }
        })*
    };
}

// Add new ones at the end, with types that were never used.
details! {
    /// A window of a unique task.
    Window(WindowRecord, home = queue): 24, 25;
    /// The rules of its own that a share has.
    Share(ShareRecord, home = queue): 26, 27;
    /// A limit that several queues use together.
    Limit(LimitRecord, home = name): 28, 29;
    /// A batch.
    Batch(BatchRecord, home = name): 30, 31;
}
