//! The longer texts of the help of `publish` and `listen`.
//!
//! As in `texts.rs`: plain text, at most 80 columns wide where lines must not be joined.

use super::task_texts::doing;

/// What `publish` does.
pub(super) const PUBLISH: &str = "\
Publish a task to all members of a topic, and print how many lanes took it.

Each member that has joined the topic gets the task into its own lane, all of them or none, and it \
is as durable as the server was told to make it when the number is printed. Without members the \
number is 0, and nothing is kept. A lane that is full or paused for input takes nothing and counts \
what it missed (`pinpriq stats TOPIC --member MEMBER`).

The payload is sent byte for byte: a line end at the end of stdin is part of it. With --lines each \
line of stdin is published, many of them under way at a time; after a refusal no more are read.";

/// After the help of `publish`.
pub(super) const AFTER_PUBLISH: &str = doing!(
    "  pinpriq publish news 'the door is open'
  pinpriq publish checks --ttl-ms 10000 < check.json
  pinpriq publish news --lines < news.txt
"
);

/// What `listen` does.
pub(super) const LISTEN: &str = "\
Join a topic, and print what is published or work on it, until told to stop.

Prints the payload of each task on a line, or with --json an object with all that is known of it, \
and acknowledges the task once it is printed. With --exec it runs CMD for each task instead, and \
acknowledges the task or gives it back just as `pinpriq take --exec` does; PINPRIQ_MEMBER tells \
CMD whose task it is. Stderr tells under which name the topic was joined.

While the command runs it gives signs of life over a connection of its own. If it was away for \
longer than its lease all the same, say because it was suspended or the network was down, then its \
membership has ended, with what was in its lane; the command joins again, says so, and goes on \
with what is published from then on. A lost connection is opened again, after longer and longer \
pauses.

SIGTERM and SIGINT let what is under way finish, and then the member leaves the topic; stderr \
tells what was left in its lane, which is gone then. A lane with buried tasks is kept for an hour \
at least, or until `pinpriq leave`. With --stay it does not leave: the lane goes on collecting \
until the lease ends, and the next run with the same name and topic finds it. Two runs under one \
name share one lane: each task goes to one of them.";

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
