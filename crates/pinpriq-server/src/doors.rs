//! The doors: each is a codec of one protocol, with a mapping to commands and one from replies.
//!
//! A door holds no shard and decides nothing: it asks a desk. [`DOORS`] lists them all.

pub(crate) mod door;
mod pinpriq;
pub(crate) mod resp;

use self::door::Door;
use crate::config::{Limits, PinpriqOptions};
use crate::session::about::{Dialect, Manners};

/// What doors can be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoorOptions {
    /// For the pinpriq door.
    pub(crate) pinpriq: PinpriqOptions,
    /// The bounds, for all.
    pub(crate) limits: Limits,
}

/// A kind of door.
pub(crate) struct DoorKind {
    /// What it is called.
    pub(crate) name: &'static str,
    /// How its clients are dealt with.
    pub(crate) manners: fn(&DoorOptions) -> Manners,
    /// Opens one for a connection, whose answers begin in this dialect.
    pub(crate) open: fn(&DoorOptions, Dialect) -> Box<dyn Door>,
}

/// All of them.
static DOORS: [&DoorKind; 2] = [&pinpriq::KIND, &resp::KIND];

/// The kind of this name.
pub(crate) fn kind_of(name: &str) -> &'static DoorKind {
    let Some(kind) = DOORS.iter().find(|kind| kind.name == name) else {
        unreachable!("no door is called {name}")
    };
    kind
}
