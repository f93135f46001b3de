//! Reports progress, line by line, on stdout.

use std::fmt;
use std::io::Write as _;

/// Prints a line. If it is not read, the exit code still gives the result.
pub(crate) fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
