//! The longer texts of the help: what a command is for, examples, exit codes.
//!
//! Each is plain text without markup, at most 80 columns wide where lines must not be joined.

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

The commands speak RESP, as every Redis client does. Only those under `pinpriq wire` speak the \
pinpriq protocol, which takes a few lines in any language (docs/protocol/pinpriq.md). There a task \
is called a packet: it is pushed, lives for 65 seconds at most, and is gone when it is popped.

A TIME is a number of milliseconds, or has units: 500ms, 30s, 5m, 1h30m, 2d.";

/// After the help of the whole program.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done; for serve: stopped in order
  1  failed while running; for serve: also an address that is in use or not there yet
  2  wrong usage or configuration
  3  the data directory is locked, damaged, of a newer format or not writable
  3  cluster: a shard is not served, something is wrong, or it is not there
  3  serve with --cluster: the engine has lost data, or is another one
  4  there was nothing: no task to take, to pop, to print
  5  the server refused what it was asked; stderr says why
  10  await, and put that waits: the task was buried
  11  the same: the task expired
  12  the same: the task was killed
  13  the same: the time was up before the task had ended
  14  the same: the task became a dead letter
  15  the same: the task was evicted, to make room for others
  16  the same: the task was moved to another queue";

/// After the help of `serve`.
pub(super) const AFTER_SERVE: &str = "\
Examples:
  pinpriq serve
  pinpriq serve --users /etc/pinpriq/users.toml --resp 0.0.0.0:7251 --pinpriq off
  pinpriq serve --config /etc/pinpriq.toml --log-format json
  PINPRIQ_DURABILITY=interval pinpriq serve

A configuration file:
  data = \"/var/lib/pinpriq\"
  durability = \"interval\"
  connections-max = 2000

Exit codes:
  0  stopped in order
  1  failed while running, for example because the disk refused a write
  2  wrong usage or configuration
  3  the data directory is locked, damaged, of a newer format or not writable";

/// After the help of `check`.
pub(super) const AFTER_CHECK: &str = "\
Examples:
  pinpriq check /var/lib/pinpriq
  pinpriq check /var/lib/pinpriq --json
  pinpriq check /var/lib/pinpriq/shard-03

Exit codes; with several shards the highest that one of them has:
  0  no damage
  1  a file could not be read
  2  wrong usage
  3  damaged, unfinished, of a newer format, or no data directory at all";

/// After the help of `salvage`.
pub(super) const AFTER_SALVAGE: &str = "\
Examples:
  pinpriq salvage /var/lib/pinpriq /var/lib/pinpriq-salvaged

Exit codes:
  0  the new directory is complete, even if the report lists losses
  1  a file could not be read or written; do not use the new directory
  2  wrong usage, also a new directory that is not empty
  3  the damaged directory is in use, of a newer format, or no data directory at all";

/// After the help of `reshard`.
pub(super) const AFTER_RESHARD: &str = "\
Examples:
  pinpriq reshard /var/lib/pinpriq /var/lib/pinpriq-4 --shards 4

Exit codes:
  0  the new directory is complete
  1  a file could not be read or written; remove the new directory
  2  wrong usage, also a new directory that is not empty
  3  the old directory is in use, damaged, of a newer format, or no data directory at all";

/// After the help of `bench`.
pub(super) const AFTER_BENCH: &str = "\
Examples:
  pinpriq bench
  pinpriq bench mixed --connections 64 --depth 16 --pid $(pgrep -x pinpriq)
  pinpriq bench mixed --rate 20000 --seconds 60
  pinpriq bench drain --backlog 1000000 --priorities 1000 --json
  pinpriq bench pop --door pinpriq --depth 64

Exit codes:
  0  measured
  1  no connection, it was lost, or an answer was wrong
  2  wrong usage
  5  measured, but the server refused some of the requests, or it refused the backlog";

/// After the help of `completions`.
pub(super) const AFTER_COMPLETIONS: &str = "\
Examples:
  pinpriq completions bash > /etc/bash_completion.d/pinpriq
  pinpriq completions fish > ~/.config/fish/completions/pinpriq.fish";

/// After the help of `man`.
pub(super) const AFTER_MAN: &str = "\
Examples:
  pinpriq man | man -l -
  pinpriq man --dir /usr/local/share/man/man1";
