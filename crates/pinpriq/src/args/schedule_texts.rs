//! The longer texts of the help of the commands on schedules, over RESP.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

use super::task_texts::doing;

/// What `schedule set` does.
pub(super) const SET: &str = "\
Put a task into a queue again and again, and print the next slot, in Unix milliseconds.

A slot is a moment at which the schedule is due: after a fixed time, or as a cron expression says. \
The payload is sent byte for byte: a line end at the end of stdin is part of it.

A schedule of that name is replaced. It keeps its figures and its pause. A program that sets its \
schedules whenever it starts should give --at: without it, the time of --every begins anew.

With several shards, give schedule and queue a common part in braces.";

/// After the help of `schedule set`.
pub(super) const AFTER_SET: &str = doing!(
    "  pinpriq schedule set beat health check --every 30s
  pinpriq schedule set '{mail}-nightly' mail digest --cron '30 2 * * *' \\
      --zone Europe/Berlin
  pinpriq schedule set backup disk --cron @daily --overlap skip < backup.json
"
);

/// After the help of `schedule show`.
pub(super) const AFTER_SHOW: &str = doing!(
    "  pinpriq schedule show beat
  pinpriq schedule show beat --json | jq .next_at
"
);

/// After the help of `schedule list`.
pub(super) const AFTER_LIST: &str = doing!(
    "  pinpriq schedule list --prefix mail
"
);

/// After the help of `schedule pause`.
pub(super) const AFTER_PAUSE: &str = doing!(
    "  pinpriq schedule pause beat
"
);

/// After the help of `schedule resume`.
pub(super) const AFTER_RESUME: &str = doing!(
    "  pinpriq schedule resume beat
"
);

/// After the help of `schedule drop`.
pub(super) const AFTER_DROP: &str = doing!(
    "  pinpriq schedule drop beat
"
);

/// After the help of `schedule fire`.
pub(super) const AFTER_FIRE: &str = doing!(
    "  pinpriq schedule fire beat
"
);
