//! The first bytes of outputs. The bytes after them are in the other files of this folder.

pub(super) const DELIVERY: u8 = 1;
pub(super) const DONE: u8 = 2;
pub(super) const PUT: u8 = 3;
pub(super) const PUT_OUTCOME: u8 = 4;
pub(super) const SHOWN: u8 = 5;
pub(super) const TASKS: u8 = 6;
pub(super) const TASK: u8 = 7;
pub(super) const STATE: u8 = 8;
pub(super) const DEADLINE: u8 = 9;
pub(super) const COUNT: u8 = 10;
pub(super) const OUTCOME: u8 = 11;
pub(super) const ACKS: u8 = 12;
pub(super) const SETTINGS: u8 = 13;
pub(super) const NAMES: u8 = 14;
pub(super) const FIGURES: u8 = 15;
pub(super) const JOINED: u8 = 16;
pub(super) const MEMBERS: u8 = 17;
pub(super) const REFUSED: u8 = 18;
pub(super) const SCHEDULE: u8 = 30;
pub(super) const PUT_UNIQUE: u8 = 31;
pub(super) const TRANSACTION: u8 = 40;
pub(super) const EXPLAINED: u8 = 41;
pub(super) const SCANNED: u8 = 42;
pub(super) const LEASES: u8 = 43;
pub(super) const EXPORTED: u8 = 50;
