//! The longer texts of the help of the commands that watch a server.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

use super::task_texts::doing;

/// What `status` does.
pub(super) const STATUS: &str = "\
Print a table of the queues: their tasks by state, and how fast tasks come and go.

The rates are watched for a second. Oldest is how long the oldest ready task has been there. The \
last line, (all), is about all queues and all lanes of topics together, shown or not. With --json \
each line is an object; in the last one queue is null.";

/// After the help of `status`.
pub(super) const AFTER_STATUS: &str = doing!(
    "  pinpriq status
  pinpriq status --prefix mail --count 500
  pinpriq status --json | jq 'select(.buried > 0)'
"
);

/// What `top` does.
pub(super) const TOP: &str = "\
Show the state of a server in a terminal: its queues, how many tasks are in which state, how fast \
they come and go, and how long the oldest ready task has been there.

The list can be ordered and filtered. Enter opens a queue and then a task. If the server goes \
away, top says so and tries again. With --once it prints a table and ends, with --json one object \
for each round of figures. Both need two rounds for the rates, so the first line comes after one \
--interval.";

/// After the help of `top`.
pub(super) const AFTER_TOP: &str = doing!(
    "  pinpriq top
  pinpriq top --prefix mail --interval 5s
  pinpriq top --once
  pinpriq top --json | jq '.server.out_per_second'
"
);

/// What `ping` does.
pub(super) const PING: &str = "\
Ask a server whether it answers, for those who watch over it: a container, a script.

The exit code is 0 if it answers within ten seconds. While it loads its tasks it does not. No user \
is needed for that.";

/// After the help of `ping`.
pub(super) const AFTER_PING: &str = doing!(
    "  pinpriq ping
  pinpriq ping --address 10.0.0.1:7251 || echo down
"
);
