//! What is wrong with bytes that were to be decoded.

/// Why bytes could not be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// The bytes end too early.
    #[error("it is cut short")]
    Short,
    /// The kind is not known.
    #[error("{what} {kind} is not known: a newer version wrote it")]
    UnknownKind {
        /// What was decoded: a record, a command or an output.
        what: &'static str,
        /// The byte of the kind.
        kind: u8,
    },
    /// A field that this program does not know, since a newer version wrote it.
    #[error("the field {tag} of {what} is not known: a newer version wrote it")]
    UnknownField {
        /// What has the field.
        what: &'static str,
        /// The tag of the field.
        tag: u8,
    },
    /// An attribute that this program does not know, since a newer version wrote it.
    #[error("the attribute {0} is not known: a newer version wrote it")]
    UnknownAttribute(u8),
    /// A field has a value that is not allowed, or is not in its only valid form.
    #[error("the field {0} is out of range")]
    OutOfRange(&'static str),
    /// Bytes follow after the end.
    #[error("{0} bytes follow after its end")]
    Rest(usize),
}
