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

/// What `put` does.
pub(super) const PUT: &str = "\
Put a task into a queue, and print its id.

The id is printed once the task is as durable as the server was told to make it. The payload is \
sent byte for byte: a line end at the end of stdin is part of it. With --lines each line of stdin \
becomes a task, many of them under way at a time; an answer comes for each of them, in order. \
After a refusal no more lines are read. With --wait-ms the command prints, after the id, how the \
task ended: acked, buried, expired, killed, dead, evicted, moved or timeout. The exit code says so \
too; of several tasks it is that of the first which was not acked.

With --unique the word new or duplicate follows the id. A duplicate is not put: the id is that of \
the first task.";

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

/// What `take` does.
pub(super) const TAKE: &str = "\
Take tasks under a lease and print them, or work on them.

Prints a line for each task: its receipt, a tab, and its payload; with several queues the name of \
the queue and a tab before. To a file or a pipe the bytes go as they are; on a terminal those that \
cannot be printed are shown as escapes. A payload with line ends is better read with --json: its \
objects have all that is known of a task. In them whatever is no text, such as a payload or a \
name, is in Base64 under the same name with _base64 behind it.

A lease ends with --ttr-ms, whatever the queue says, so that it outlives this command. Finish the \
task with ack, or give it back with release; otherwise it goes back by itself when the lease ends.

With --exec the command becomes a worker. For each task it runs CMD with sh -c, gives it the \
payload on stdin, and tells it about the task in PINPRIQ_QUEUE, PINPRIQ_ID, PINPRIQ_RECEIPT, \
PINPRIQ_ATTEMPTS (1 at first), PINPRIQ_FAILURES (0 at first), PINPRIQ_KEY (only if there is a key) \
and PINPRIQ_MEMBER (only in a lane); PINPRIQ_RESP_ADDRESS says where the server is. Exit code 0 \
acknowledges the task. 65 (EX_DATAERR) buries it at once. 75 (EX_TEMPFAIL) releases it with a \
delay that doubles with each attempt; that is no failure. Any other end is a failure. The last \
line of CMD's stderr is in the reason. Stderr tells of every task that was not acknowledged.

The queue decides what becomes of a task that failed: how often it may fail, when it comes back, \
and whether it is buried in the end or becomes a dead letter (`pinpriq queue set --help`). Where \
the queue sets no back-off, the task comes back after a second, and after twice as long each \
further time, up to a day. Where the queue sets no attempts, the worker buries the task at its \
fifth failure. With --backoff-ms or --attempts-max the worker decides instead, but a task that has \
failed as often as the queue allows is never tried again. A task that failed that often already, \
because its workers died, is buried without running CMD.

While CMD runs, its lease is renewed each third of --ttr-ms. If the lease is lost all the same, \
CMD gets SIGTERM and the task is left alone. At --timeout CMD gets SIGTERM, and 10 seconds later \
SIGKILL; that is a failure. A lost connection is opened again, after longer and longer pauses; \
what CMD came to is then told once more.

SIGTERM and SIGINT let running commands finish and then end the worker; a second one kills them \
and gives their tasks back. CMD and what it starts are a process group of their own, so that a key \
press at the terminal does not reach them.";

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
