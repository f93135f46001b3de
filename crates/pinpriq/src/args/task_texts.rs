//! The longer texts of the help of the commands on tasks, over RESP.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

/// The exit codes of a command that finds tasks or does not.
macro_rules! finding {
    ($examples:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\nExit codes:\n  0  done\n  1  no connection, or it was lost\n  2  wrong usage\n",
            "  4  there was nothing\n  5  the server refused; stderr says why"
        )
    };
}

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

/// What `pop` does.
pub(super) const POP: &str = "\
Take tasks for good and print them.

A popped task is finished in the same step: it needs no acknowledgement, and it is gone whatever \
becomes of the output. Use take where that must not happen.

Prints the payload of each task on a line; with several queues the name of the queue and a tab \
before. Bytes are printed as take does it, and --json prints all that is known of each task.";

/// After the help of `pop`.
pub(super) const AFTER_POP: &str = finding!(
    "  pinpriq pop jobs
  pinpriq pop urgent jobs --wait-ms 5000
  pinpriq pop jobs --count 10 --json | jq -r .payload
"
);

/// After the help of `ack`.
pub(super) const AFTER_ACK: &str = doing!(
    "  pinpriq ack jobs 17-1-4
  pinpriq ack jobs 17-1-4 18-1-5 19-1-6
"
);

/// What `release` does.
pub(super) const RELEASE: &str = "\
Give taken tasks back, and print the state that each is in then.

The states are R (ready), W (waiting for its delay to pass) and X (gone, since its time to live \
had passed).";

/// After the help of `release`.
pub(super) const AFTER_RELEASE: &str = doing!(
    "  pinpriq release jobs 17-1-4
  pinpriq release jobs 17-1-4 --delay-ms 60000 --priority 9
"
);

/// After the help of `bury`.
pub(super) const AFTER_BURY: &str = doing!(
    "  pinpriq bury jobs 17-1-4 --reason 'the picture is broken'
"
);

/// What `fail` does.
pub(super) const FAIL: &str = "\
Give back taken tasks that failed, and print the state that each is in then.

The queue decides what becomes of a task that fails. It comes back for another attempt, after the \
queue's back-off or --delay-ms, or at once if there is neither: W or R. When it has failed as \
often as the queue allows (`pinpriq queue set --attempts`), it is buried, B, or moved to the queue \
for dead letters, X. X also means that its time to live had passed.";

/// After the help of `fail`.
pub(super) const AFTER_FAIL: &str = doing!(
    "  pinpriq fail jobs 17-1-4 --reason 'no connection'
  pinpriq fail jobs 17-1-4 --delay 10m
"
);

/// What `touch` does.
pub(super) const TOUCH: &str = "\
Renew leases, and print when each ends then, in Unix milliseconds.

A lease without an end, or a task without a time to live, stays as it is; then a - is printed.";

/// After the help of `touch`.
pub(super) const AFTER_TOUCH: &str = doing!(
    "  pinpriq touch jobs 17-1-4
  pinpriq touch jobs --id 17 --by-ms 3600000
"
);

/// What `peek` does.
pub(super) const PEEK: &str = "\
Print tasks of a queue without taking them.

Prints a line for each: its id, a tab, and its payload, as take does.";

/// After the help of `peek`.
pub(super) const AFTER_PEEK: &str = finding!(
    "  pinpriq peek jobs --count 10
  pinpriq peek jobs --state buried --json
"
);

/// After the help of `get`.
pub(super) const AFTER_GET: &str = finding!(
    "  pinpriq get jobs 17
  pinpriq get jobs 17 --json | jq .attempts
"
);

/// What `explain` does.
pub(super) const EXPLAIN: &str = "\
Print why a task is not handed out, or without an id, which task would be next.

The first line is the id, the state, and since when the task is in it, in Unix milliseconds. Each \
further line is a reason with what belongs to it: delayed, taken, buried, expired, paused, limit, \
rate, no-priority, behind (other tasks come first), no-consumer and next. Looking changes nothing.";

/// After the help of `explain`.
pub(super) const AFTER_EXPLAIN: &str = finding!(
    "  pinpriq explain jobs
  pinpriq explain jobs 17 --json | jq '.reasons[].code'
"
);

/// What `scan` does.
pub(super) const SCAN: &str = "\
Print all tasks of a queue, whatever their state, in the order in which they were put.

A task that is there all the time is printed once, whatever becomes of it meanwhile. One that is \
released to the tail may come twice. Looking changes nothing.";

/// After the help of `scan`.
pub(super) const AFTER_SCAN: &str = finding!(
    "  pinpriq scan jobs --json > jobs.jsonl
  pinpriq scan jobs --state waiting
"
);

/// What `leases` does.
pub(super) const LEASES: &str = "\
Print who holds which task: queue, member, id, and of the client its number, name and address, and \
since when and until when, in Unix milliseconds.

Without QUEUE it prints the leases of all queues and lanes.";

/// After the help of `leases`.
pub(super) const AFTER_LEASES: &str = finding!(
    "  pinpriq leases
  pinpriq leases jobs --json | jq .client
"
);

/// What `await` does.
pub(super) const AWAIT: &str = "\
Wait until a task is finished, and print how it ended and the state that it is in.

It ended as acked, buried, expired, killed, dead (it became a dead letter), evicted (to make room \
for others), moved (to another queue) or timeout, which means that it has not ended yet. The state \
is one letter, X where the task is gone.";

/// After the help of `await`.
pub(super) const AFTER_AWAIT: &str = awaiting!(
    "  pinpriq await jobs 17
  pinpriq await jobs 17 --wait-ms 5000 && echo done
",
    "the task was acked"
);

/// After the help of `dig`.
pub(super) const AFTER_DIG: &str = doing!(
    "  pinpriq dig jobs 17
"
);

/// What `plow` does.
pub(super) const PLOW: &str = "\
Bring buried tasks back, the oldest first, and print how many.

Without --count all buried tasks of the queue come back. Their attempts and failures are counted \
from 0 again, so each is tried as often as a new task.";

/// After the help of `plow`.
pub(super) const AFTER_PLOW: &str = doing!(
    "  pinpriq plow jobs --count 100
"
);

/// What `move` does.
pub(super) const MOVE: &str = "\
Move tasks to another queue, the oldest first, and print how many.

They keep state, priority, key, payload, delay and time to live, and are counted as new: no \
attempts and no failures. They have new ids, except where the queue has ids that callers give. It \
ends early where the other queue is full or paused; what was moved stays moved. Repeat the command \
until it prints 0 to move all.";

/// After the help of `move`.
pub(super) const AFTER_MOVE: &str = doing!(
    "  pinpriq move jobs slow-jobs --count 10000
  pinpriq move jobs broken-jobs --state buried
"
);

/// What `redrive` does.
pub(super) const REDRIVE: &str = "\
Move dead letters back to the queues that they come from, the oldest first, and print how many.

Each begins anew in its queue: no attempts, no failures, a new id, the queue's time to live. Only \
ready tasks go. Tasks that were put into QUEUE themselves stay there.";

/// After the help of `redrive`.
pub(super) const AFTER_REDRIVE: &str = doing!(
    "  pinpriq redrive '{jobs}-dead'
  pinpriq redrive '{jobs}-dead' --count 10
"
);

/// What `kill` does.
pub(super) const KILL: &str = "\
Remove tasks whatever their state, and print how many there were.

The tasks are gone at once and for good, with their payloads, also those that somebody is working \
on: their receipts become stale. It does not ask.";

/// After the help of `kill`.
pub(super) const AFTER_KILL: &str = doing!(
    "  pinpriq kill jobs 17 18
"
);

/// After the help of `switch`.
pub(super) const AFTER_SWITCH: &str = doing!(
    "  pinpriq switch jobs 17 --to buried
  pinpriq switch jobs 17 --to waiting --delay-ms 60000
"
);

/// After the help of `snatch`.
pub(super) const AFTER_SNATCH: &str = doing!(
    "  pinpriq snatch jobs 17
"
);

/// After the help of `restart`.
pub(super) const AFTER_RESTART: &str = doing!(
    "  pinpriq restart jobs 17
"
);

/// After the help of `update`.
pub(super) const AFTER_UPDATE: &str = doing!(
    "  pinpriq update jobs 17 --priority 1
  pinpriq update jobs 17 --ttl-ms none --payload 'resize 17.png'
"
);
