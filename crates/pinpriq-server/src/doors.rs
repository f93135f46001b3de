//! The doors: each is a codec of one protocol, with a mapping to commands and one from replies.
//!
//! A door holds no shard and decides nothing: it asks a desk. [`kind_of`] lists them all.

pub(crate) mod door;
mod pinpriq;
pub(crate) mod resp;

use self::door::Door;
use crate::config::{DoorName, Limits, PinpriqOptions};
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
    /// Its name.
    pub(crate) name: DoorName,
    /// How its clients are dealt with.
    pub(crate) manners: fn(&DoorOptions) -> Manners,
    /// Opens one for a connection, whose answers begin in this dialect.
    pub(crate) open: fn(&DoorOptions, Dialect) -> Box<dyn Door>,
}

/// The kind of this name.
pub(crate) const fn kind_of(name: DoorName) -> &'static DoorKind {
    match name {
        DoorName::Pinpriq => &pinpriq::KIND,
        DoorName::Resp => &resp::KIND,
    }
}
