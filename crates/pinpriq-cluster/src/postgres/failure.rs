//! What an error of PostgreSQL says about the statement that met it. Sends nothing.

use std::error::Error as _;

use pinpriq_tls::Options;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

/// What is known of a statement that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It did nothing, and may be sent again.
    Again,
    /// It did nothing: the server has no room.
    Full,
    /// It did nothing: the tables are not what they should be.
    Conflict,
    /// It may have done something, or may do it yet.
    Unknown,
}

/// Why a statement did not succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// What happened, for people.
    pub(crate) why: String,
}

impl Failure {
    pub(crate) const fn unknown(why: String) -> Self {
        Self { kind: Kind::Unknown, why }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: error.as_db_error().map_or(Kind::Unknown, kind), why: explain(&error) }
    }
}

/// Only what PostgreSQL raises as an `ERROR`, and only before the commit, is sure to have done
/// nothing. A `FATAL` may end a session after the commit. A cancelled statement (57014) is not
/// listed, since a request to cancel may arrive at any time.
fn kind(error: &DbError) -> Kind {
    if error.parsed_severity() != Some(Severity::Error) {
        return Kind::Unknown;
    }
    match error.code().code() {
        // A conflict with another transaction, a deadlock, a lock that is not free.
        "40001" | "40P01" | "55P03" => Kind::Again,
        // Insufficient resources, as a full disk.
        code if code.starts_with("53") => Kind::Full,
        // A violated constraint.
        code if code.starts_with("23") => Kind::Conflict,
        _ => Kind::Unknown,
    }
}

/// What the options of an address are called.
const TLS_OPTIONS: Options = Options { roots: "sslrootcert", identity: "sslcert and sslkey" };

/// Returns an error with its causes, for people.
pub(crate) fn explain(error: &Error) -> String {
    if let Some(sentence) = pinpriq_tls::explain(error, TLS_OPTIONS) {
        return sentence;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
