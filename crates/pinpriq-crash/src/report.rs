//! Says how things go, line by line, on stdout.

use std::fmt;
use std::io::Write as _;

/// Says a line. If nobody reads it the exit code still tells.
pub(crate) fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
