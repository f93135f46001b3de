//! Reports progress, line by line, on stdout.

use std::fmt;
use std::io::Write as _;

/// Prints a line. If nobody reads it, the exit code still gives the result.
pub(crate) fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
