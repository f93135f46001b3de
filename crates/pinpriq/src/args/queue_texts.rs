//! The longer texts of the help of the commands that watch a server.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

use super::task_texts::doing;

/// After the help of `status`.
pub(super) const AFTER_STATUS: &str = doing!(
    "  pinpriq status
  pinpriq status --prefix mail --count 500
  pinpriq status --json | jq 'select(.buried > 0)'
"
);

/// After the help of `top`.
pub(super) const AFTER_TOP: &str = doing!(
    "  pinpriq top
  pinpriq top --prefix mail --interval 5s
  pinpriq top --once
  pinpriq top --json | jq '.server.out_per_second'
"
);

/// After the help of `ping`.
pub(super) const AFTER_PING: &str = doing!(
    "  pinpriq ping
  pinpriq ping --address 10.0.0.1:7251 || echo down
"
);
