//! Backups: what a running server has in its journals goes into an archive, and a data directory is
//! made from an archive again, as it was at any moment that the archive reaches.
//!
//! [`place`] is where archives lie: objects under names, none of which ever changes. [`directory`]
//! is a place on a file system, `s3` one in an object store, and [`open`](open()) chooses. An
//! object of segments ([`object`]) holds parts of segments, a [`mark`] says what belongs together,
//! and a [`line`](mod@line) is the history of one data directory. [`backup`] writes marks,
//! [`catalogue`] finds them, [`restore`](mod@restore) makes a directory, [`verify`](mod@verify)
//! reads everything, and [`prune`](mod@prune) removes what is old. An [`archiver`] writes marks on
//! and on for a server that runs. `docs/internals/archive.md` describes every byte.
//!
//! Nothing here opens a socket of its own or reads a clock: how a server is asked for its segments
//! is the business of [`Source`]. What is in a commit is the business of the store.
//!
//! [`follow`] keeps a directory that gets what comes into a place.

pub mod archiver;
pub mod backup;
pub mod catalogue;
pub mod directory;
pub mod error;
mod fetch;
pub mod follow;
pub mod line;
mod listed;
pub mod mark;
#[cfg(feature = "testing")]
pub mod memory;
pub mod names;
pub mod object;
pub mod open;
mod ours;
pub mod place;
pub mod progress;
pub mod prune;
pub mod restore;
#[cfg(feature = "s3")]
pub mod s3;
mod sealed;
pub mod source;
mod spans;
pub mod verify;

pub use archiver::{Archiver, Concluded, Offered, scrub};
pub use backup::{Backup, back_up};
pub use catalogue::{Catalogue, Choice, Highest, LineSummary, Range, Until, Why, highest};
pub use error::ArchiveError;
pub use follow::{Followed, Follower, Round, Turn};
pub use line::{Line, Parent};
pub use mark::{By, Mark};
pub use names::LineId;
pub use open::open;
pub use place::{ErrorKind, Listing, Place, PlaceError};
pub use progress::Progress;
pub use prune::{Pruned, prune};
pub use restore::{Order, Plan, Restored, plan, restore};
pub use source::{CutInfo, SegmentEnd, Source, SourceError};
pub use verify::{Fault, Verified, verify};
