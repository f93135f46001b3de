//! The longer texts of the help: what the program is for, its exit codes, and how examples and
//! exit codes stand after the help of a command.
//!
//! They are plain text without markup.

/// One line about the program.
pub(super) const ABOUT: &str = "A durable priority queue that programs reach through TCP";

/// What a newcomer reads first.
pub(super) const LONG_ABOUT: &str = "\
pinpriq is a durable priority queue that programs reach through TCP.

Producers put tasks into named queues, with a priority, a delay and a time to live. Consumers \
take the most urgent task under a lease and acknowledge it when they are done; if they do not, it \
goes back to its queue.

Start a server with `pinpriq serve`, then try `pinpriq put jobs hello` and `pinpriq take jobs`, or \
let a worker take them: `pinpriq take jobs --exec ./handle-job`. What is published to a topic goes \
to each of its members: try `pinpriq listen news` and `pinpriq publish news hello`.

The commands speak RESP, as every Redis client does, and `pinpriq backup` speaks HTTP. Only those \
under `pinpriq wire` speak the pinpriq protocol, which takes a few lines in any language \
(docs/protocol/pinpriq.md). There a task is called a packet: it is pushed, lives for 65 seconds at \
most, and is gone when it is popped.

A TIME is a number of milliseconds, or has units: 500ms, 30s, 5m, 1h30m, 2d.";

/// After the help of the whole program.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done; for serve: stopped in order
  1  failed while running; for serve: also an address that is in use or not there yet
  2  wrong usage or configuration
  3  the data directory is locked, damaged, of a newer format or not writable
  3  backup, archive, restore, look: something is damaged, of a newer format, or in use
  3  cluster: a shard is not served, something is wrong, or it is not there
  3  serve with --cluster: the engine has lost data, or is another one
  4  there was nothing: no task to take, to pop, to print; no backup to restore
  5  the server refused what it was asked; stderr says why
  10  await, and put that waits: the task was buried
  11  the same: the task expired
  12  the same: the task was killed
  13  the same: the time was up before the task or the batch had ended
  14  the same: the task became a dead letter
  15  the same: the task was evicted, to make room for others
  16  the same: the task was moved to another queue
  17  the same: the task was cancelled
  18  the same: the task was skipped, since its batches have ended otherwise";

/// The exit codes of a command that is done or refused.
pub(super) const DOING: &str = "\
0  done
1  no connection, or it was lost
2  wrong usage
5  the server refused; stderr says why";

/// What stands after the help of a command: examples, and exit codes, one on each line. A line that
/// does not begin with a code goes on with the one before.
pub(super) fn after(examples: &str, codes: &str) -> String {
    let mut text = "Examples:".to_owned();
    for line in examples.lines() {
        text += "\n  ";
        text += line.trim_start();
    }
    text += "\n\nExit codes:";
    for line in codes.lines().map(str::trim_start) {
        let is_code = line.starts_with(|first: char| first.is_ascii_digit());
        text += if is_code { "\n  " } else { "\n     " };
        text += line;
    }
    text
}
