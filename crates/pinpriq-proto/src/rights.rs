//! Which rights there are, and which a command needs.
//!
//! [`Command::each_need`](crate::command::Command::each_need) tells what a command needs. Who has
//! which rights, and how users sign in, is not known here.

mod needs;
mod right;

pub use needs::Need;
pub use right::Right;
