//! The longer texts of the help of the commands that put and take tasks.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// The exit codes of a command that is done or refused.
macro_rules! doing {
    ($examples:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\nExit codes:\n  0  done\n  1  no connection, or it was lost\n  2  wrong usage\n",
            "  5  the server refused; stderr says why"
        )
    };
}

/// The exit codes of a command that waits for the end of a task.
macro_rules! awaiting {
    ($examples:literal, $done:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\nExit codes:\n  0  ",
            $done,
            "\n  1  no connection, or it was lost\n  2  wrong usage\n",
            "  5  the server refused; stderr says why\n  10  the task was buried\n",
            "  11  the task expired\n  12  the task was killed\n",
            "  13  the time was up before the task had ended\n",
            "  14  the task became a dead letter\n",
            "  15  the task was evicted, to make room for others\n",
            "  16  the task was moved to another queue"
        )
    };
}

pub(super) use doing;

/// After the help of `put`.
pub(super) const AFTER_PUT: &str = awaiting!(
    "  pinpriq put jobs 'resize 17.png' --priority -2
  pinpriq put mails --delay-ms 60000 --ttl-ms 3600000 < mail.json
  pinpriq put jobs --lines < jobs.txt > ids.txt
  pinpriq put jobs 'build' --wait-ms -1
  pinpriq put uploads 17.png --unique 17.png --window 1h
",
    "the task was put; with --wait-ms: it was acked"
);

/// After the help of `take`.
pub(super) const AFTER_TAKE: &str = "\
Examples:
  pinpriq take jobs --wait-ms 5000
  pinpriq take jobs --json --count 10 | jq -r .payload
  pinpriq take urgent jobs --exec ./handle-job --jobs 4 --timeout 10m
  pinpriq take jobs --exec 'curl --fail --data @- http://example.com/' --once

Exit codes:
  0  done; for --exec: --count tasks were worked on, --once found no more, or a signal came
  1  no connection, or it was lost
  2  wrong usage
  4  there was nothing to take (without --exec)
  5  the server refused; stderr says why";
