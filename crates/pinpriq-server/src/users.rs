//! Who may do what: users with their rules, passwords, tokens and limits, and the file that holds
//! them.
//!
//! A file is read into [`Users`], which answers who a client is and what it may do. An
//! [`Editor`] changes the text of a file and keeps its comments; [`store`] reads and writes the
//! file itself. Which command needs which right is not known here. Here are no sockets, no clock
//! and no threads.

mod change;
mod edit;
mod file;
mod limits;
mod name;
mod password;
mod pattern;
mod quote;
mod rights;
mod rule;
pub mod store;
mod token;
mod user;
mod verdict;

pub use change::Change;
pub use edit::{EditError, Editor};
pub use file::{FILE_BYTES_MAX, RULES_MAX, ReadError, TOKENS_MAX, USERS_MAX, read};
pub use limits::{Assignment, Limit, Limits, SHARE, WrongLimit};
pub use name::{NAME_BYTES_MAX, Name, WrongName};
pub use password::{
    NoHash, PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN, Password, PasswordHash, WrongHash,
    WrongPassword,
};
pub use pattern::{PATTERN_BYTES_MAX, Pattern, WrongPattern};
pub use pinpriq_proto::rights::Right;
pub use rights::Rights;
pub use rule::{Rule, WrongRule};
pub use token::{NoToken, TOKEN_PREFIX, Token, TokenDigest, WrongDigest};
pub use user::{SameToken, User, Users};
pub use verdict::{Lack, Verdict, judge};
