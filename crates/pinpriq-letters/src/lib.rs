//! What the engine is asked and what it answers, as bytes.
//!
//! A [`Command`] goes to another shard in a letter, and its [`Output`]s come back in one. Each has
//! exactly one encoding: a byte that says its kind; where there are choices, a number whose bits
//! say which were made; and then what they ask for. What is usual takes no room. Numbers are
//! LEB128 in their shortest form, texts have their length before them, and what the bits could
//! have told may not be spelled out.
//!
//! ```
//! use pinpriq_engine::command::{Command, Put};
//! use pinpriq_letters::{decode_command, encode_command};
//!
//! let mut letter = Vec::new();
//! let put = Command::Put(Put::new(b"jobs", b"hello"));
//! encode_command(&put, &mut letter);
//! assert_eq!(letter, b"\x01\x00\x04jobs\x05hello");
//! assert_eq!(decode_command(&letter, |command| *command == put), Ok(true));
//! ```
//!
//! Encoding cannot fail. Decoding is total: any bytes give a value or an error, never a panic, and
//! nothing is allocated from a length that the bytes merely declare. Several commands in one
//! letter, where a letter goes, and who may send it are not known here; nor is it checked whether
//! a command makes sense, which is the engine's business. Both ends are of the same build: there
//! is no version, and nothing here may be written to a disk.

mod command;
mod fields;
mod flags;
mod list;
mod output;
mod records;
mod settings;

use pinpriq_engine::command::Command;
use pinpriq_engine::reply::Output;
pub use pinpriq_records::Malformed;

/// Appends the command.
///
/// # Panics
/// If the payload of a task that is put back was left in the store and not read back.
#[inline]
pub fn encode_command(command: &Command<'_>, out: &mut Vec<u8>) {
    command::encode(command, out);
}

/// Decodes one command that fills `bytes` exactly, and calls `then` with it: strings are borrowed
/// from `bytes`, lists stand in a buffer that lives as long as the call.
#[inline]
pub fn decode_command<R>(
    bytes: &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    command::decode(bytes, then)
}

/// Appends the output. Payloads that were left in the store must have been read back before (a
/// task's `away` is not carried).
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
