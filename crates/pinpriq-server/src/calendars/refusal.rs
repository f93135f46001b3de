//! Why a cron expression or its zone is refused, in sentences for the person who asked for it.
//!
//! Each says what was given and what is allowed. What was given is shown on one line and shortened.

use super::EXPRESSION_BYTES_MAX;

/// How many characters of a text are shown.
const SHOWN_CHARS_MAX: usize = 48;

/// Why there are no slots. Texts are ready to be shown: quoted, escaped and shortened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The expression is too long.
    #[error("a cron expression has at most {EXPRESSION_BYTES_MAX} bytes, and this one has {0}")]
    TooLong(usize),
    /// The expression has another number of fields.
    #[error(
        "a cron expression has five fields (minute, hour, day of month, month, day of week), and \
         this one has {0}"
    )]
    FieldCount(usize),
    /// A word with `@` that is not known.
    #[error(
        "a cron expression of one word is @hourly, @daily, @midnight, @weekly, @monthly, @yearly \
         or @annually, not {0}"
    )]
    Word(String),
    /// A value is not one of its field.
    #[error("{field} is {allowed}, not {given}")]
    Value {
        /// The name of the field.
        field: &'static str,
        /// The values of the field.
        allowed: &'static str,
        /// The value that was given.
        given: String,
    },
    /// A range goes backwards.
    #[error("a range of {field} goes from the lower to the higher value, unlike {given}")]
    Range {
        /// The name of the field.
        field: &'static str,
        /// The range that was given.
        given: String,
    },
    /// A step is out of range.
    #[error("a step of {field} is 1 to {highest}, not {given}")]
    Step {
        /// The name of the field.
        field: &'static str,
        /// The longest step.
        highest: u8,
        /// The step that was given.
        given: String,
    },
    /// A step follows a single value.
    #[error("a step of {field} follows * or a range, as in {value}-{highest}/{step}, not {given}")]
    Stepless {
        /// The name of the field.
        field: &'static str,
        /// The value before the step.
        value: u8,
        /// The highest value of the field.
        highest: u8,
        /// The step.
        step: u8,
        /// The part of the field that was given.
        given: String,
    },
    /// No date matches the expression.
    #[error("a cron expression matches some date, and {0} matches none")]
    Never(String),
    /// The zone is not known.
    #[error("a zone is an IANA name such as Europe/Berlin or UTC, not {0}")]
    Zone(String),
}

/// Returns a text for a sentence.
pub(crate) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS_MAX).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("\"{}{more}\"", start.escape_debug())
}
