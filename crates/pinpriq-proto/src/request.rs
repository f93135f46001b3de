//! Requests as words: what each command looks like, and how its words and options become values.
//!
//! [`table`] has every command. [`parts`] takes a request apart by its entry there, and
//! [`Command::words`](crate::command::Command::words) puts one together. What a command does with
//! the
//! values is not decided here.

mod alphabet;
pub mod by_hand;
pub mod code;
pub mod cursors;
pub mod fault;
pub mod form;
pub mod options;
pub mod parts;
pub mod reading;
pub mod settings;
pub mod spec;
pub mod table;
pub(crate) mod writing;

/// What expressions on declarations may name.
pub(crate) mod declared {
    pub(crate) use super::fault::Fault;
    pub(crate) use super::form::Form;
    pub(crate) use super::options::{self, Opt};
    pub(crate) use super::parts::Parts;
    pub(crate) use super::reading::{Arguments, Key, Room, Row, Value, joined, total};
    pub(crate) use super::spec::{Access, Group, Spec, Word};
}
