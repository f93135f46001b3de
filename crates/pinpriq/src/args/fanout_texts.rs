//! The longer texts of the help of `publish` and `listen`.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

use super::task_texts::doing;

/// After the help of `publish`.
pub(super) const AFTER_PUBLISH: &str = doing!(
    "  pinpriq publish news 'the door is open'
  pinpriq publish checks --ttl-ms 10000 < check.json
  pinpriq publish news --lines < news.txt
"
);

/// After the help of `listen`.
pub(super) const AFTER_LISTEN: &str = "\
Examples:
  pinpriq listen news
  pinpriq listen news --json | jq -r .payload
  pinpriq listen news mailer --stay --lease-ms 3600000 --exec ./send-mail

Exit codes:
  0  done: --count tasks were printed or worked on, a signal came, or stdout was closed
  1  no connection at the start
  2  wrong usage
  5  the server refused; stderr says why";
