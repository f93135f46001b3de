//! What can go wrong with an archive, as sentences for the person who has to see to it.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::StoreError;
use pinpriq_store::reshard::DirectoryError;

use crate::names::LineId;
use crate::place::{ErrorKind, PlaceError};
use crate::source::SourceError;

/// Why an archive could not be written, read or restored.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The place did not do what it was asked.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// What is backed up did not give what it was asked for.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The new data directory could not be written.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// An object is missing, or is not as it was written.
    #[error("{name} is damaged: {what}; nothing was changed. `pinpriq archive verify` lists all")]
    Damaged {
        /// The object.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// What an interrupted backup has left is not as it was written.
    #[error(
        "{name} is damaged: {what}. An interrupted backup has left it, and no backup needs it: \
         remove it, and try again"
    )]
    LeftOver {
        /// The object.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A newer version wrote this object.
    #[error("{name} has what this version does not know ({what}); use the newer version")]
    Newer {
        /// The object.
        name: String,
        /// Its format.
        what: String,
    },
    /// There is no backup in the place.
    #[error("there is no backup in {place}")]
    Empty {
        /// How users name the place.
        place: String,
    },
    /// There is no backup of this line in the place.
    #[error("there is no backup of line {line} in {place}; `pinpriq archive list` shows the lines")]
    NoLine {
        /// How users name the place.
        place: String,
        /// The line.
        line: LineId,
    },
    /// The moment that was asked for lies before the first one that can be restored.
    #[error("the first moment of line {line} that can be restored is {first}")]
    BeforeFirst {
        /// The line.
        line: LineId,
        /// The first moment.
        first: Timestamp,
    },
    /// Another data directory is backed up in this place.
    #[error("{what}; nothing was written")]
    Stranger {
        /// Which, and what to do.
        what: String,
    },
    /// The data directory lacks what a backup of it holds.
    #[error(
        "this is an older copy of a data directory that is backed up here: {what}. Nothing was \
         written. Restore the newest backup instead, or give another place"
    )]
    OlderCopy {
        /// What it lacks.
        what: String,
    },
    /// A server writes its archive here by itself.
    #[error(
        "a server archives in {place} by itself, so there is nothing to back up there; if it does \
         so no longer, as `pinpriq status` tells, give another place"
    )]
    ArchivesItself {
        /// How users name the place.
        place: String,
    },
    /// Somebody else wrote into the place at the same time.
    #[error("{what}; try again when it has ended")]
    Taken {
        /// What happened.
        what: String,
    },
    /// Another server archives here: of both, this one has to stop.
    #[error(
        "another server archives here: {what}. This one archives nothing any more: find out which \
         of both is the right one, stop the other, and give a copy a place of its own"
    )]
    TakenByAnother {
        /// What was found.
        what: String,
    },
    /// The place has less than was followed: it was emptied, is an older copy, or is another one.
    #[error("{what}")]
    LacksFollowed {
        /// What it lacks, and what to do.
        what: String,
    },
    /// What is in the place is not what was expected, for which there is a harmless reason.
    #[error("{what}: what is in the place has to be looked at again")]
    LookAgain {
        /// What happened.
        what: String,
    },
    /// The segments do not say which data directory they belong to.
    #[error(
        "shard {shard} does not say which data directory it belongs to, since an older version \
         wrote it: start the server once with this version"
    )]
    NoIdentity {
        /// The shard.
        shard: usize,
    },
    /// The restored directory could not go on with numbers that were never given.
    #[error("{what}; nothing was written")]
    CannotGoOn {
        /// Why.
        what: String,
    },
    /// The bytes could not be compressed.
    #[error("cannot compress a part of a segment: {what}")]
    Packing {
        /// What the library said.
        what: String,
    },
}

impl ArchiveError {
    /// What kind of thing went wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Place(error) => error.kind(),
            Self::Directory(error) => kind_of_store(&error.source),
            Self::Source(_)
            | Self::Taken { .. }
            | Self::LookAgain { .. }
            | Self::LacksFollowed { .. }
            | Self::Packing { .. } => ErrorKind::Failed,
            Self::Damaged { .. }
            | Self::LeftOver { .. }
            | Self::Newer { .. }
            | Self::Stranger { .. }
            | Self::OlderCopy { .. }
            | Self::TakenByAnother { .. }
            | Self::NoIdentity { .. }
            | Self::CannotGoOn { .. } => ErrorKind::Damaged,
            Self::Empty { .. } | Self::NoLine { .. } | Self::BeforeFirst { .. } => {
                ErrorKind::NothingThere
            }
            Self::ArchivesItself { .. } => ErrorKind::Unusable,
        }
    }

    /// Whether trying again cannot help: a server that gets this must not archive here any more.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Stranger { .. }
                | Self::OlderCopy { .. }
                | Self::TakenByAnother { .. }
                | Self::NoIdentity { .. }
                | Self::CannotGoOn { .. }
                | Self::Newer { .. }
                | Self::ArchivesItself { .. }
                | Self::Place(PlaceError::Bad { .. })
        )
    }

    pub(crate) fn damaged(name: &str, what: impl Into<String>) -> Self {
        Self::Damaged { name: name.to_owned(), what: what.into() }
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::damaged(name, "it is missing")
    }

    pub(crate) fn newer(name: &str, format: u32, known: u32) -> Self {
        Self::Newer { name: name.to_owned(), what: format!("format {format} instead of {known}") }
    }

    /// What the store says about the bytes of a segment that is in this object.
    pub(crate) fn of_segment(name: &str, error: StoreError) -> Self {
        match error {
            StoreError::NewerFormat { version, known, .. } => {
                let what = format!("format version {version} of segments instead of {known}");
                Self::Newer { name: name.to_owned(), what }
            }
            StoreError::NewerRecord { what, .. } => Self::Newer { name: name.to_owned(), what },
            StoreError::Corrupt { offset, what, .. } => {
                Self::damaged(name, format!("at offset {offset} of the segment, {what}"))
            }
            other => Self::damaged(name, other.to_string()),
        }
    }
}

/// What kind of thing went wrong with a data directory.
const fn kind_of_store(error: &StoreError) -> ErrorKind {
    match error {
        StoreError::NotEmpty { .. } => ErrorKind::Unusable,
        other if other.is_of_directory() => ErrorKind::Damaged,
        _ => ErrorKind::Failed,
    }
}
