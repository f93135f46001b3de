//! The commands and outputs of the engine as bytes.
//!
//! A [`Command`] goes to another shard in a letter, and its [`Output`]s come back in one. Each has
//! exactly one encoding. First comes a byte for its kind. If there are choices, a number follows
//! whose bits say which were made. The fields that they need come last. A usual value takes no
//! room. Numbers are LEB128 in their shortest form, and texts have their length before them. A
//! value that the bits can express must not be written out.
//!
//! ```
//! use pinpriq_proto::command::{Command, Put};
//! use pinpriq_proto::letters::{decode_command, encode_command};
//!
//! let mut letter = Vec::new();
//! let put = Command::Put(Put::new(b"jobs", b"hello"));
//! encode_command(&put, &mut letter);
//! assert_eq!(letter, b"\x01\x00\x04jobs\x05hello");
//! assert_eq!(decode_command(&letter, |command| *command == put), Ok(true));
//! ```
//!
//! Encoding cannot fail. Decoding is total: any bytes give a value or an error, never a panic, and
//! no allocation depends on a length that was only declared. This crate knows nothing about several
//! commands in one letter, where a letter goes, or who may send it. It does not check whether a
//! command makes sense, since the engine does. Both ends are the same build: there is no version,
//! and nothing here may be written to a disk.

mod command;
mod fields;
mod flags;
mod list;
mod output;
mod paused;
mod records;
mod settings;

use crate::command::{Command, Step};
pub use crate::records::{Malformed, primitives};
use crate::reply::Output;

/// Appends a command.
///
/// # Panics
/// If the payload of a task that is put back was left in the store and not read back.
#[inline]
pub fn encode_command(command: &Command<'_>, out: &mut Vec<u8>) {
    command::encode(command, out);
}

/// Decodes one command that fills `bytes` exactly, and calls `then` with it. Strings are borrowed
/// from `bytes`. Lists are in a buffer that lives as long as the call.
#[inline]
pub fn decode_command<R>(
    bytes: &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    command::decode(bytes, then)
}

/// The steps of a transaction, encoded one by one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    bytes: Vec<u8>,
}

impl Steps {
    /// Adds a step.
    pub fn push(&mut self, step: &Step<'_>) {
        command::stepping::put_step(&mut self.bytes, step);
    }

    /// Calls `then` with a transaction of these steps.
    pub fn decode<R>(&self, then: impl FnOnce(&Command<'_>) -> R) -> Result<R, Malformed> {
        command::stepping::take_all(&self.bytes, then)
    }
}

/// Appends an output. Payloads that were left in the store must have been read back before: the
/// `away` of a task is not encoded.
///
/// # Panics
/// If a payload was left in the store and not read back.
pub fn encode_output(output: &Output, out: &mut Vec<u8>) {
    output::encode(output, out);
}

/// Decodes one output that fills `bytes` exactly.
pub fn decode_output(bytes: &[u8]) -> Result<Output, Malformed> {
    output::decode(bytes)
}
