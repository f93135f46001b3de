//! The longer texts of the help of the commands on queues, over RESP.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

use super::task_texts::doing;

/// After the help of `queue create`.
pub(super) const AFTER_CREATE: &str = doing!(
    "  pinpriq queue create jobs --ttr-ms 60000 --capacity 100000
  pinpriq queue create orders --ids given --after-ack zombie --zombie-ms 3600000
"
);

/// After the help of `queue set`.
pub(super) const AFTER_SET: &str = doing!(
    "  pinpriq queue set jobs --ttl-ms none
  pinpriq queue set jobs --attempts 5 --backoff 1s --dead-letter '{jobs}-dead'
"
);

/// After the help of `queue show`.
pub(super) const AFTER_SHOW: &str = doing!(
    "  pinpriq queue show jobs
"
);

/// After the help of `queue list`.
pub(super) const AFTER_LIST: &str = doing!(
    "  pinpriq queue list --prefix mail
"
);

/// What `queue truncate` does.
pub(super) const TRUNCATE: &str = "\
Remove all tasks of a queue, and print how many there were. Its settings stay.

The tasks are gone at once and for good, whatever their state, also those that somebody is working \
on. It does not ask.";

/// After the help of `queue truncate`.
pub(super) const AFTER_TRUNCATE: &str = doing!(
    "  pinpriq queue truncate jobs
"
);

/// What `queue drop` does.
pub(super) const DROP: &str = "\
Remove a queue with all its tasks and its settings, and print how many tasks there were.

The tasks are gone at once and for good, whatever their state, also those that somebody is working \
on. It does not ask. A later put makes a new queue of the same name, with the usual settings.";

/// After the help of `queue drop`.
pub(super) const AFTER_DROP: &str = doing!(
    "  pinpriq queue drop jobs
"
);

/// After the help of `queue pause`.
pub(super) const AFTER_PAUSE: &str = doing!(
    "  pinpriq queue pause jobs        # neither puts nor takes
  pinpriq queue pause jobs in     # puts are refused
  pinpriq queue pause jobs out    # takers see an empty queue
  pinpriq queue pause jobs --for 5m
"
);

/// After the help of `queue resume`.
pub(super) const AFTER_RESUME: &str = doing!(
    "  pinpriq queue resume jobs
"
);

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

The list can be ordered and filtered. Enter opens a queue and then a task, p pauses a queue, e \
says why a queue or a task stands still, ? lists all keys. If the server goes away, top says so \
and tries again. With --once it prints a table and ends, with --json one object for each round of \
figures. Both need two rounds for the rates, so the first line comes after one --interval.";

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

/// What `stats` does.
pub(super) const STATS: &str = "\
Print the figures of a queue, or of all queues together.

Among them: how many tasks are in each state, how often tasks went from one state to another since \
the queue came to be or the server started, how long the oldest ready task has been there, and how \
many consumers are blocked.";

/// After the help of `stats`.
pub(super) const AFTER_STATS: &str = doing!(
    "  pinpriq stats jobs
  pinpriq stats --json | jq .present
"
);
